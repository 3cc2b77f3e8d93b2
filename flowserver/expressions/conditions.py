"""Conditions of choice steps: compiled once, evaluated for each input.

The grammar is in `condition_parser`, the meaning of operators on values in `comparisons`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from flowserver.base.json_values import Json
from flowserver.expressions.comparisons import compare, negative, truth
from flowserver.expressions.condition_nodes import And, Compare, Literal, Negate, Node, Not, Or, Select
from flowserver.expressions.condition_parser import parse_condition
from flowserver.expressions.fuel import Fuel, OutOfFuel
from flowserver.expressions.paths import Missing, Path, find

CONDITION_VALUES_MAX: Final = 100_000
"""The fuel of a condition: any one comparison of documents of 262,144 bytes fits, thousands do not."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A compiled condition."""

    text: str
    tree: Node


def compile_condition(text: str) -> Condition:
    """Compile a condition; raises ExpressionError with the place of the mistake."""
    return Condition(text, parse_condition(text))


def paths_in(condition: Condition) -> Iterator[Path]:
    """The paths that a condition reads, in their order."""
    return _paths(condition.tree)


def _paths(node: Node) -> Iterator[Path]:
    match node:
        case Select(path):
            yield path
        case Not(operand) | Negate(operand):
            yield from _paths(operand)
        case And(operands) | Or(operands):
            for operand in operands:
                yield from _paths(operand)
        case Compare(first, rest):
            for operand in (first, *(operand for _, operand in rest)):
                yield from _paths(operand)


def holds(condition: Condition, value: Json, fuel: Fuel | None = None) -> bool:
    """Whether the condition is true for the step's input `value`.

    Never raises, for any JSON value. Every part of the condition that is evaluated, every element that `[*]`
    selects and every value that is compared (a long text is several) counts on `fuel`, which is
    CONDITION_VALUES_MAX if none is given. A condition that uses it up is false; `fuel.is_spent` is then true.
    """
    try:
        return truth(_evaluate(condition.tree, value, fuel or Fuel(CONDITION_VALUES_MAX)))
    except OutOfFuel:
        return False


def _evaluate(node: Node, value: Json, fuel: Fuel) -> Json | Missing:
    fuel.spend(1)
    match node:
        case Literal():
            return node.value
        case Select():
            return find(node.path, value, fuel)
        case Compare():
            return _compare(node, value, fuel)
        case And():
            return all(truth(_evaluate(operand, value, fuel)) for operand in node.operands)
        case Or():
            return any(truth(_evaluate(operand, value, fuel)) for operand in node.operands)
        case Not():
            return not truth(_evaluate(node.operand, value, fuel))
    return negative(_evaluate(node.operand, value, fuel))


def _compare(node: Compare, value: Json, fuel: Fuel) -> bool:
    (operator, operand), *more = node.rest
    result = compare(operator, _evaluate(node.first, value, fuel), _evaluate(operand, value, fuel), fuel)
    for next_operator, next_operand in more:
        result = compare(next_operator, result, _evaluate(next_operand, value, fuel), fuel)
    return result
