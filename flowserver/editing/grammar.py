"""The kind of each object in a file, by the tables of the two languages: one way down a tree for both."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from flowserver.flowtests import fields as flow_tests
from flowserver.language.fields import FLOW, HOLDS, OBJECTS, STEP, STEPS, Field, ObjectKind
from flowserver.language.nodes import MapNode, Node, ScalarNode


@dataclass(frozen=True, slots=True)
class Keys:
    """A mapping whose keys are no attributes: parameters of a call, or what flow tests have by steps and resources."""

    attribute: str


Kind = ObjectKind | Keys | None
"""The kind of a node; None for one without attributes."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """The root's kind, and the kind of a node by the kind around it and the attribute that holds it."""

    root: ObjectKind
    inner: Callable[[Kind, str, MapNode], Kind]


def attribute_of(node: Node, name: str) -> Node | None:
    """The value of a key of a mapping."""
    if isinstance(node, MapNode):
        for entry in node.entries:
            if entry.name == name:
                return entry.value
    return None


def text_of(node: Node | None) -> str:
    """The text of a scalar, else ""."""
    return node.text if isinstance(node, ScalarNode) else ""


def field_of(kind: Kind, name: str) -> Field | None:
    """An attribute of a kind."""
    return kind.fields.get(name) if isinstance(kind, ObjectKind) else None


ANY_STEP: Final = ObjectKind("a step", STEPS["pass"].fields)
"""A step whose type is not known, or not yet written."""


def is_step(kind: Kind) -> bool:
    """Whether it is that of a step."""
    return kind is ANY_STEP or any(kind is step for step in STEPS.values())


def _in_flow(around: Kind, attribute: str, node: MapNode) -> Kind:
    if not isinstance(around, ObjectKind) or attribute not in around.fields:
        return None
    if attribute == "serviceParams":
        return Keys(attribute)
    held = HOLDS.get(attribute)
    if held == STEP:
        return STEPS.get(text_of(attribute_of(node, "type")), ANY_STEP)
    return OBJECTS.get(held or "")


_TABLES_OF: Final = {"calls": flow_tests.CALLS, "compensated": flow_tests.UNDO}


def _in_flow_test(around: Kind, attribute: str, node: MapNode) -> Kind:
    if isinstance(around, Keys):
        if around.attribute in _TABLES_OF:
            return _TABLES_OF[around.attribute]
        real = attribute_of(node, "real")
        if real is not None:
            return flow_tests.real_kind(around.attribute, text_of(real))
        return flow_tests.TABLES[around.attribute]
    if around is None or attribute not in around.fields:
        return None
    if attribute in flow_tests.TABLES or attribute in _TABLES_OF:
        return Keys(attribute)
    if attribute == "always" and (around is flow_tests.EXPECT or around is flow_tests.SIMULATION):
        return flow_tests.CLAIM
    return flow_tests.OBJECTS.get(flow_tests.HOLDS.get(attribute, ""))


DEFINITION: Final = Grammar(FLOW, _in_flow)
FLOW_TEST: Final = Grammar(flow_tests.FILE, _in_flow_test)
