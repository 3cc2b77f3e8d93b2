"""Generated JSON values, paths and conditions, and the text of a condition's tree."""

import json
from typing import Any

from hypothesis import strategies as st

from flowserver.expressions.condition_nodes import And, Compare, Literal, Negate, Node, Not, Operator, Or, Select
from flowserver.expressions.paths import EVERY, Path, Segment

KEYS = st.sampled_from(["a", "b", "where", "in", "été", "k-1", "*", "", "0", 'q"\\\n'])
TEXTS = st.one_of(KEYS, st.sampled_from(["1", "-2.5e3", "true", "false", ".5", "1.", "inf", "nan", "x`"]), st.text())
NUMBERS = st.one_of(st.integers(), st.integers(min_value=10**400), st.floats(allow_nan=False, allow_infinity=False))
SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS)
JSON_VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=20,
)


def _is_bare(key: str) -> bool:
    return key.isidentifier()


def print_path(segments: tuple[Segment, ...]) -> str:
    """A path's text; keys that need no brackets are written with a dot."""
    return "$" + "".join(_print_segment(segment) for segment in segments)


def _print_segment(segment: Segment) -> str:
    if segment is EVERY:
        return "[*]"
    if isinstance(segment, int):
        return f"[{segment}]"
    return f".{segment}" if _is_bare(segment) else f"[{json.dumps(segment)}]"


SEGMENTS = st.lists(st.one_of(KEYS, st.integers(0, 3), st.just(EVERY)), max_size=4).map(tuple)
PATHS = SEGMENTS.map(lambda segments: Path(print_path(segments), segments))

LITERALS = st.one_of(
    st.booleans(), st.integers(0, 2**53).map(float), st.decimals(0, 1000, places=2).map(float), TEXTS
).map(Literal)


def _wider(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    pairs = st.lists(st.tuples(st.sampled_from(Operator), inner), min_size=1, max_size=2).map(tuple)
    return st.one_of(
        inner.map(Not), inner.map(Negate), several.map(And), several.map(Or), st.builds(Compare, inner, pairs)
    )


TREES: st.SearchStrategy[Node] = st.recursive(st.one_of(LITERALS, PATHS.map(Select)), _wider, max_leaves=12)


def print_condition(node: Node) -> str:
    """A condition's text, with parentheses around every operand that is not a single word."""
    match node:
        case Literal():
            return _print_literal(node.value)
        case Select():
            return node.path.text
        case Not():
            return "!" + _operand(node.operand)
        case Negate():
            return "-" + _operand(node.operand)
        case Compare():
            rest = "".join(f" {operator} {_operand(operand)}" for operator, operand in node.rest)
            return _operand(node.first) + rest
        case And() | Or():
            mark = " && " if isinstance(node, And) else " || "
            return mark.join(_operand(operand) for operand in node.operands)


def _operand(node: Node) -> str:
    text = print_condition(node)
    return text if isinstance(node, (Literal, Select)) else f"({text})"


def _print_literal(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:f}" if value % 1 else f"{value:.0f}"
    return json.dumps(value)
