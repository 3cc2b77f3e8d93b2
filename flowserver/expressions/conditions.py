"""Conditions of choice steps: compile once, then ask whether one holds for an input.

The grammar is in `condition_parser`, the meaning of operators on values in `comparisons`.
"""

from dataclasses import dataclass

from flowserver.base.json_values import Json
from flowserver.expressions.comparisons import compare, negative, truth
from flowserver.expressions.condition_nodes import And, Compare, Literal, Node, Not, Or, Select
from flowserver.expressions.condition_parser import parse_condition
from flowserver.expressions.paths import Missing, find


@dataclass(frozen=True, slots=True)
class Condition:
    """A compiled condition."""

    text: str
    tree: Node


def compile_condition(text: str) -> Condition:
    """Compile a condition; raises ExpressionError with the place of the mistake."""
    return Condition(text, parse_condition(text))


def holds(condition: Condition, value: Json) -> bool:
    """Whether the condition is true for the step's input `value`.

    Never raises, for any JSON value; takes time in proportion to the condition's text times the input's size.
    """
    return truth(_evaluate(condition.tree, value))


def _evaluate(node: Node, value: Json) -> Json | Missing:
    match node:
        case Literal():
            return node.value
        case Select():
            return find(node.path, value)
        case Compare():
            return _compare(node, value)
        case And():
            return all(truth(_evaluate(operand, value)) for operand in node.operands)
        case Or():
            return any(truth(_evaluate(operand, value)) for operand in node.operands)
        case Not():
            return not truth(_evaluate(node.operand, value))
    return negative(_evaluate(node.operand, value))


def _compare(node: Compare, value: Json) -> bool:
    (operator, operand), *more = node.rest
    result = compare(operator, _evaluate(node.first, value), _evaluate(operand, value))
    for next_operator, next_operand in more:
        result = compare(next_operator, result, _evaluate(next_operand, value))
    return result
