"""When two values are equal, ordered, contained or true. Total: defined for every pair of values.

Numbers compare as doubles, texts by their bytes in UTF-8 (which is Python's order of code points).
A number and a numeric text, or a boolean and the text `true` or `false`, compare after conversion.
`null` counts as missing. Every other mix of types is unequal and unordered.
Every value compared is counted on a fuel. OutOfFuel is the only error.
"""

import re
from collections.abc import Callable
from operator import ge, gt, le, lt
from typing import Any, Final

from flowserver.base.json_values import Json
from flowserver.expressions.condition_nodes import Operator
from flowserver.expressions.fuel import Fuel
from flowserver.expressions.paths import MISSING, Missing

TEXT_PIECE: Final = 64
"""Characters of a text that count as one value: a text may have to be read as a number."""

_NUMERIC = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z")
_BOOLEANS = {"true": True, "false": False}
_ORDERS: dict[Operator, Callable[[Any, Any], bool]] = {
    Operator.LESS: lt,
    Operator.LESS_OR_EQUAL: le,
    Operator.GREATER: gt,
    Operator.GREATER_OR_EQUAL: ge,
}


def compare(operator: Operator, left: Json | Missing, right: Json | Missing, fuel: Fuel) -> bool:
    """Whether `left operator right`; with a missing or null operand only `!=` is true. Raises OutOfFuel."""
    if operator is Operator.IN:
        return contains(right, left, fuel)
    fuel.spend(1 + _pieces(left) + _pieces(right))
    if left is MISSING or right is MISSING or left is None or right is None:
        return operator is Operator.NOT_EQUAL
    left, right = _converted(left, right)
    if operator is Operator.EQUAL:
        return equal(left, right, fuel)
    if operator is Operator.NOT_EQUAL:
        return not equal(left, right, fuel)
    return _orderable(left, right) and _ORDERS[operator](left, right)


def truth(value: Json | Missing) -> bool:
    """A value as an operand of `!`, `&&` and `||`: `true`, numbers other than 0 and the text `true` are true."""
    if isinstance(value, str):
        return value == "true"
    if isinstance(value, (int, float)):  # also booleans
        return value != 0
    return False


def negative(value: Json | Missing) -> float | Missing:
    """The value of the prefix `-` for a number or a numeric text; MISSING for any other value."""
    number = _number(value)
    return MISSING if number is None else -number


def contains(collection: Json | Missing, item: Json | Missing, fuel: Fuel) -> bool:
    """Whether an element of a list equals `item`, or `item` is a key of an object. Raises OutOfFuel."""
    if isinstance(collection, list):
        return any(compare(Operator.EQUAL, item, element, fuel) for element in collection)
    return isinstance(collection, dict) and isinstance(item, str) and item in collection


def equal(left: Json, right: Json, fuel: Fuel) -> bool:
    """Equality by content: numbers as doubles, nothing converted. Not recursive, so depth cannot hurt.

    Raises OutOfFuel before it looks at members that the fuel has no room for.
    """
    pairs = [(left, right)]
    while pairs:
        one, other = pairs.pop()
        if isinstance(one, dict) and isinstance(other, dict):
            fuel.spend(len(one))
            if one.keys() != other.keys():
                return False
            pairs.extend((one[key], other[key]) for key in one)
        elif isinstance(one, list) and isinstance(other, list):
            if len(one) != len(other):
                return False
            fuel.spend(len(one))
            pairs.extend(zip(one, other, strict=True))
        elif not _equal_scalars(one, other):
            return False
    return True


def _equal_scalars(left: Json, right: Json) -> bool:
    if _is_number(left) and _is_number(right):
        return _double(left) == _double(right)
    return type(left) is type(right) and bool(left == right)


def _pieces(value: Json | Missing) -> int:
    return len(value) // TEXT_PIECE if isinstance(value, str) else 0


def _orderable(left: Json, right: Json) -> bool:
    return (isinstance(left, str) and isinstance(right, str)) or (_is_number(left) and _is_number(right))


def _converted(left: Json, right: Json) -> tuple[Json, Json]:
    """Numbers as doubles, and a text converted to the type of the other side where possible."""
    if _is_number(left) or _is_number(right):
        one, other = _number(left), _number(right)
        return (left, right) if one is None or other is None else (one, other)
    if isinstance(left, bool):
        return left, _boolean(right)
    if isinstance(right, bool):
        return _boolean(left), right
    return left, right


def _boolean(value: Json) -> Json:
    return _BOOLEANS.get(value, value) if isinstance(value, str) else value


def _is_number(value: Json | Missing) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _number(value: Json | Missing) -> float | None:
    if _is_number(value):
        return _double(value)
    return float(value) if isinstance(value, str) and _NUMERIC.match(value) else None


def _double(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:  # an integer beyond every double
        return float("inf") if number > 0 else float("-inf")
