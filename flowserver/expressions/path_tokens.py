"""Cuts a path into the tokens that jsonpath-ng's grammar reads.

The library's own lexer drops the meaning of escapes (`"\\n"` becomes `n`), reserves the key `where`, knows
few letters outside ASCII and skips blanks. This lexer does not, and it refuses each token outside the
language's subset at its place. The grammar checks the order of tokens.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from flowserver.expressions.errors import ExpressionError
from flowserver.expressions.strings import read_string

IDENTIFIER = re.compile(r"[^\W\d]\w*")
"""A key that needs no brackets: a letter or `_`, then letters, digits or `_`, of any script."""

_PUNCTUATION = re.compile(r"\.\.|[$.\[\]*]")
_BARE_KEY = re.compile(r"[^.\[\]\"'*()?,\s=<>!&|]+")
_ANNOTATION = re.compile(r"[^\[\]\"'*()?,\s=<>!&|]+")
_INTEGER = re.compile(r"[0-9]{1,9}(?![0-9])")  # nine digits: no list is that long

_REFUSED = {
    "..": "recursive descent `..` is not supported",
    "-": "negative indexes are not supported",
    ":": "slices are not supported",
    ",": "only one key or index may stand in brackets",
    "?": "filters are not supported",
    "(": "scripts and filters are not supported",
    "@": "filters are not supported",
    "'": "keys are quoted with double quotes",
}


@dataclass(frozen=True, slots=True)
class Token:
    """The attributes of a token that jsonpath-ng's parser reads; `lexpos` is the 0-based offset."""

    type: str
    value: str | int
    lexpos: int
    lineno: int = 1
    quoted: bool = False
    lexer: None = None

    @property
    def col(self) -> int:
        """The library's name for the place within the line."""
        return self.lexpos


def path_tokens(text: str) -> Iterator[Token]:
    """The tokens of a path in order; raises ExpressionError at the first token outside the subset."""
    offset = 0
    previous = ""
    while offset < len(text):
        token, offset = _next_token(text, offset)
        _check_place(text, token, previous)
        previous = token.type
        yield token


def _check_place(text: str, token: Token, previous: str) -> None:
    """Refuse what the library's wider grammar would read as a key, with a more precise error."""
    is_bare = token.type == "ID" and not token.quoted
    if previous == "." and token.type == "*":
        raise ExpressionError("`*` is written in brackets, without a dot: [*]", token.lexpos)
    if token.type == "$" and (error := in_brackets(text, token.lexpos)):
        raise error
    if previous == "." and not is_bare:
        raise in_brackets(text, token.lexpos) or ExpressionError("a key is expected after the dot", token.lexpos)
    if previous == "$" and is_bare:
        raise ExpressionError("here a path begins with `$` alone, which is the step's input", token.lexpos)
    if previous == "[" and is_bare:
        raise ExpressionError("a key in brackets is written in double quotes", token.lexpos)


def _next_token(text: str, start: int) -> tuple[Token, int]:
    if text[start] == '"':
        value, end = read_string(text, start)
        return Token("ID", value, start, quoted=True), end
    if found := _INTEGER.match(text, start):
        return Token("NUMBER", int(found[0]), start), found.end()
    if found := IDENTIFIER.match(text, start):
        return Token("ID", found[0], start), found.end()
    found = _PUNCTUATION.match(text, start)
    if found is None or found[0] in _REFUSED:
        raise _refusal(text, start)
    return Token(found[0], found[0], start), found.end()


def in_brackets(text: str, offset: int) -> ExpressionError | None:
    """The refusal of a character that a key has only in brackets, with the key; None if this is not in a key.

    A key that begins with `@` goes to the end, as `@odata.type` does; other keys go to the next dot or bracket.
    """
    start = text.rfind(".", 0, offset + 1) + 1
    found = (_ANNOTATION if text.startswith("@", start) else _BARE_KEY).match(text, start)
    if not start or found is None or "[" in text[start:offset] or not start <= offset < found.end():
        return None
    key = json.dumps(found[0], ensure_ascii=False)
    return ExpressionError(f"a key with `{text[offset]}` is written in brackets, without a dot: [{key}]", offset)


def _refusal(text: str, start: int) -> ExpressionError:
    if error := in_brackets(text, start):
        return error
    if text[start] == "-" and not text.startswith("[", start - 1):
        return ExpressionError("unexpected character '-' in a path", start)
    for mark, message in _REFUSED.items():
        if text.startswith(mark, start):
            return ExpressionError(message, start)
    if text[start].isspace():
        return ExpressionError("blanks are not allowed in a path", start)
    if text[start].isdigit():
        return ExpressionError("an index is a number from 0 to 999999999", start)
    return ExpressionError(f"unexpected character {text[start]!r} in a path", start)
