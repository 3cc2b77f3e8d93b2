"""The table of attributes, from which the reference page is generated."""

from types import MappingProxyType

import pytest

from flowserver.base.limits import Limits
from flowserver.language.attributes import AttributeReader
from flowserver.language.check_cost import Work
from flowserver.language.diagnostics import Report
from flowserver.language.fields import KINDS, STEPS, Field, ObjectKind, Shape
from flowserver.language.graph import Span
from flowserver.language.nodes import ListNode, MapNode, Node, ScalarNode
from flowserver.language.source import read_source
from flowserver.language.steps import READERS

SPAN = Span(1, 1, 1, 2)


def scalar(value: str | int | float | bool | None) -> ScalarNode:
    return ScalarNode(value, str(value), SPAN)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.title)
def test_every_kind_is_described(kind: ObjectKind) -> None:
    assert kind.title.startswith(("a ", "an "))
    for name, field in kind.fields.items():
        assert field.name == name
        assert field.doc.endswith(".")
        assert field.shapes


def test_there_are_eight_kinds_of_steps_with_names() -> None:
    assert len(STEPS) == 8
    for kind in STEPS.values():
        assert kind.fields["type"].required
        assert kind.fields["name"].required


@pytest.mark.parametrize("name", ["retry", "catch", "errorMappings", "timeoutSeconds", "pattern", "serviceParams"])
def test_only_tasks_handle_errors(name: str) -> None:
    assert [step for step, kind in STEPS.items() if name in kind.fields] == ["task"]


NODES: dict[str, Node] = {
    "text": scalar("a"),
    "whole": scalar(1),
    "fraction": scalar(1.5),
    "boolean": scalar(True),
    "null": scalar(None),
    "list": ListNode((), SPAN),
    "map": MapNode((), SPAN),
}


@pytest.mark.parametrize(
    ("shape", "fitting"),
    [
        (Shape.TEXT, {"text"}),
        (Shape.WHOLE, {"whole"}),
        (Shape.NUMBER, {"whole", "fraction"}),
        (Shape.BOOLEAN, {"boolean"}),
        (Shape.LIST, {"list"}),
        (Shape.MAP, {"map"}),
        (Shape.ANY, set(NODES)),
    ],
)
def test_shapes(shape: Shape, fitting: set[str]) -> None:
    assert {name for name, node in NODES.items() if shape.fits(node)} == fitting


def test_fields_are_optional_unless_they_say_so() -> None:
    assert Field("a", (Shape.ANY,), "Anything.").required is False


def test_every_kind_of_step_has_its_reader() -> None:
    assert READERS.keys() == STEPS.keys()


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("{all: 1}", []),
        ("{some: 1}", []),
        ("{}", []),
        ("{some: 1, all: 1}", ["only one of `all` and `some` can be given"]),
    ],
)
def test_only_one_of_two_attributes_may_be_given(text: str, messages: list[str]) -> None:
    fields = {name: Field(name, (Shape.WHOLE,), "A number.") for name in ("all", "some")}
    kind = ObjectKind("a thing", MappingProxyType(fields), at_most_one=(("all", "some"),))
    report, work = Report(), Work()
    node = read_source(text, Limits(), report, work, frozenset())
    AttributeReader(report, Limits(), work).read(node, kind)
    assert [found.message for found in report.diagnostics()] == messages
