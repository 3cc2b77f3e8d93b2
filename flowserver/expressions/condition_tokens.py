"""Cuts a condition into tokens, each with its offset. Knows nothing of their order."""

import re
from dataclasses import dataclass
from enum import Enum
from typing import Any

from flowserver.expressions.errors import ExpressionError
from flowserver.expressions.path_tokens import IDENTIFIER, in_brackets
from flowserver.expressions.paths import compile_path
from flowserver.expressions.strings import read_string


class Kind(Enum):
    """What a token is."""

    VALUE = "value"
    PATH = "path"
    MARK = "mark"
    END = "end"


@dataclass(frozen=True, slots=True)
class Token:
    """`value` is the constant, the compiled path, or the text of the operator or parenthesis."""

    kind: Kind
    value: Any
    offset: int


_BLANK = re.compile(r"[ \t\r\n]*")
_MARK = re.compile(r"==|!=|<=|>=|&&|\|\||[<>!\-()]")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?(?![\w.])", re.ASCII)
_PATH = re.compile(r'\$(?:\.[^\W\d]\w*|\[(?:"(?:[^"\\]|\\.)*"|[^"\]])*\])*', re.DOTALL)
_WORD = re.compile(r"[^\s()=<>!&|]*")
_WORDS: dict[str, bool] = {"true": True, "false": False}

_HINTS = {
    "and": "use `&&`",
    "or": "use `||`",
    "not": "use `!`",
    "null": "there is no null constant; a missing or null path is simply not true",
    "True": "write `true`",
    "False": "write `false`",
}


def condition_tokens(text: str) -> list[Token]:
    """All tokens of a condition, the last of kind END; raises ExpressionError."""
    tokens: list[Token] = []
    offset = _skip_blanks(text, 0)
    while offset < len(text):
        token, end = _next_token(text, offset)
        tokens.append(token)
        offset = _skip_blanks(text, end)
    tokens.append(Token(Kind.END, "", len(text)))
    return tokens


def _skip_blanks(text: str, start: int) -> int:
    found = _BLANK.match(text, start)
    return found.end() if found else start


def _next_token(text: str, start: int) -> tuple[Token, int]:
    character = text[start]
    if character == "$":
        return _path(text, start)
    if character == '"':
        value, end = read_string(text, start)
        return Token(Kind.VALUE, value, start), end
    if character == "`":
        return _raw_string(text, start)
    if found := _NUMBER.match(text, start):
        return Token(Kind.VALUE, float(found[0]), start), found.end()
    if found := _MARK.match(text, start):
        return Token(Kind.MARK, found[0], start), found.end()
    if found := IDENTIFIER.match(text, start):
        return _word(found[0], start, is_called=text.startswith("(", found.end())), found.end()
    raise ExpressionError(_refusal(text, start), start)


def _path(text: str, start: int) -> tuple[Token, int]:
    found = _PATH.match(text, start)
    end = found.end() if found else start
    if text.startswith((".", "[", "*"), end):
        end = max(end + 2, _skip_word(text, end + 1))  # not a path: the path parser reports what is wrong with it
    elif text.startswith(tuple("-+*/%:@#$~^"), end):
        error = in_brackets(text[: _skip_word(text, end)], end)
        advice = f"; {error.message}" if error else ""
        raise ExpressionError(f"`{text[end]}` is not an operator{advice}", end)
    elif word := IDENTIFIER.match(text, end):
        raise ExpressionError(f"`${word[0]}` is not known here: conditions read the step's input as `$`", start)
    try:
        return Token(Kind.PATH, compile_path(text[start:end]), start), end
    except ExpressionError as error:
        raise error.shifted(start) from None


def _skip_word(text: str, start: int) -> int:
    found = _WORD.match(text, start)
    return found.end() if found else start


def _raw_string(text: str, start: int) -> tuple[Token, int]:
    end = text.find("`", start + 1)
    if end < 0:
        raise ExpressionError("the closing quote is missing", start)
    return Token(Kind.VALUE, text[start + 1 : end], start), end + 1


def _word(word: str, start: int, *, is_called: bool) -> Token:
    if word in _WORDS:
        return Token(Kind.VALUE, _WORDS[word], start)
    if word == "in":
        return Token(Kind.MARK, word, start)
    otherwise = (
        "functions are not supported" if is_called else f"a text is written in double quotes, a key as `$.{word}`"
    )
    hint = _HINTS.get(word, otherwise)
    raise ExpressionError(f"unexpected word `{word}`: {hint}", start)


def _refusal(text: str, start: int) -> str:
    character = text[start]
    if character == "'":
        return "a text is written in double quotes or back quotes"
    if character == "=":
        return "`=` is not an operator; did you mean `==`?"
    if character in "&|":
        return f"`{character}` is not an operator; did you mean `{character * 2}`?"
    if character in "+*/%":
        return "arithmetic is not supported"
    if character.isdigit():
        return "not a number: digits, at most one dot, and digits after it"
    return f"unexpected character {character!r}"
