"""The steps that a condition of a run names: `$.calls.Ship`, `$.entered["pack[].label"]`, `"Ship" in $.path`."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from flowserver.expressions.condition_nodes import Operator
from flowserver.expressions.condition_tokens import Kind, Token, condition_tokens
from flowserver.expressions.errors import ExpressionError
from flowserver.expressions.path_tokens import path_tokens

PATH: Final = "path"
CALLS: Final = "calls"
COUNTS: Final = ("entered", "succeeded", CALLS)
"""The members of the document of a run that count by step."""
_COMPARING: Final = (Operator.IN, Operator.EQUAL, Operator.NOT_EQUAL)


class NamedStep(NamedTuple):
    """A step's name or path, and where it is in the condition without its quotes."""

    fact: str
    """The member of the run that it is of: one of COUNTS, or PATH."""
    text: str
    start: int
    is_quoted: bool


def steps_named_in(condition: str) -> Iterator[NamedStep]:
    """Every step that the condition names, in its order; none if it is no condition."""
    try:
        tokens = condition_tokens(condition)
    except ExpressionError:
        return
    for number, token in enumerate(tokens):
        if token.kind is Kind.PATH:
            yield from _counted(token)
        elif token.kind is Kind.VALUE and _is_compared_with_path(tokens, number):
            text = token.value
            if isinstance(text, str) and condition.startswith(text, token.offset + 1):
                yield NamedStep(PATH, text, token.offset + 1, is_quoted=True)


def _counted(token: Token) -> Iterator[NamedStep]:
    keys = [each for each in path_tokens(token.value.text) if each.type == "ID"][:2]
    segments = token.value.segments[:2]
    if len(keys) < 2 or segments != (keys[0].value, keys[1].value) or keys[0].value not in COUNTS:
        return
    start = token.offset + keys[1].lexpos + keys[1].quoted
    yield NamedStep(str(keys[0].value), str(keys[1].value), start, keys[1].quoted)


def _is_compared_with_path(tokens: list[Token], number: int) -> bool:
    """Whether a text is compared with steps of the path; a text on the left can be looked for in all of them."""
    after = tokens[number + 1 : number + 3]
    if len(after) == 2 and after[0].value in _COMPARING and _is_of_path(after[1]):
        return True
    before = tokens[max(0, number - 2) : number]
    return len(before) == 2 and before[1].value in _COMPARING[1:] and _is_of_path(before[0])


def _is_of_path(token: Token) -> bool:
    return token.kind is Kind.PATH and token.value.segments[:1] == (PATH,)
