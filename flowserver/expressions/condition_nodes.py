"""The tree of a compiled condition. Plain data; `conditions` defines what a node means."""

from dataclasses import dataclass
from enum import StrEnum

from flowserver.expressions.paths import Path


class Operator(StrEnum):
    """The comparison operators; all of them bind equally and to the left."""

    EQUAL = "=="
    NOT_EQUAL = "!="
    LESS = "<"
    LESS_OR_EQUAL = "<="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="
    IN = "in"


@dataclass(frozen=True, slots=True)
class Literal:
    """A string, a number (always a double) or a boolean."""

    value: str | float | bool


@dataclass(frozen=True, slots=True)
class Select:
    """The value of a path in the step's input."""

    path: Path


@dataclass(frozen=True, slots=True)
class Not:
    """`!operand`."""

    operand: "Node"


@dataclass(frozen=True, slots=True)
class Negate:
    """`-operand`."""

    operand: "Node"


@dataclass(frozen=True, slots=True)
class Compare:
    """`first operator operand operator operand …`, read from the left; at least one pair.

    A chain is one node, so that the depth of a tree is the depth of its parentheses and prefixes.
    """

    first: "Node"
    rest: tuple[tuple[Operator, "Node"], ...]


@dataclass(frozen=True, slots=True)
class And:
    """`a && b && …`; at least two operands."""

    operands: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Or:
    """`a || b || …`; at least two operands."""

    operands: tuple["Node", ...]


Node = Literal | Select | Not | Negate | Compare | And | Or
