"""Reads what a test expects."""

import re
from collections.abc import Iterator
from typing import Final

from flowserver.base.durations import duration_seconds
from flowserver.flowtests.cases import Bound, Expectation, ExpectedCalls
from flowserver.flowtests.fields import CALLS, EXPECT, OPERATORS, STATUSES, TIMES_MAX
from flowserver.flowtests.property_reading import read_properties
from flowserver.flowtests.schema_reading import SchemaReader
from flowserver.language.attributes import AttributeReader, Attributes
from flowserver.language.diagnostics import shown
from flowserver.language.nodes import Entry, ListNode, MapNode, Node, ScalarNode
from flowserver.machine.state import Status

_BOUND: Final = re.compile(rf"{OPERATORS}\s*(\S+)")
_BOUND_HINT: Final = "write a comparison with a duration, such as `< 3d`"


def read_expectation(reader: AttributeReader, node: MapNode, schemas: SchemaReader) -> Expectation:
    """The expectation; mistakes go into the report of the reader."""
    found = reader.read(node, EXPECT)
    if found is None:
        return Expectation(node.span)
    _check_status(reader, found)
    status = found.get("status", ScalarNode)
    if "error" in found.written or (status is not None and status.text != Status.SUCCEEDED):
        for name in ("output", "outputIncludes"):
            if name in found.written:
                message = "an execution that does not succeed has no output"
                reader.report.error("exactly-one", found.key_span(name), message, "check `error` and `cause`")
    took = found.any("took")
    return Expectation(
        span=found.span,
        status=status,
        output=found.get("output", MapNode),
        output_includes=found.get("outputIncludes", MapNode),
        error=found.get("error", ScalarNode),
        cause=found.get("cause", ScalarNode),
        cause_includes=found.get("causeIncludes", ScalarNode),
        path=_texts(reader, found, "path"),
        path_includes=_texts(reader, found, "pathIncludes"),
        calls=tuple(_calls(reader, found)),
        took=tuple(_bounds(reader, took)),
        took_span=None if took is None else took.span,
        properties=read_properties(reader, found, schemas),
    )


def _check_status(reader: AttributeReader, found: Attributes) -> None:
    node = found.get("status", ScalarNode)
    if node is not None and node.text not in STATUSES:
        hint = reader.work.similar(node.text, STATUSES)
        reader.report.error("bad-value", node.span, f"`status` must be one of {', '.join(STATUSES)}", hint)


def _texts(reader: AttributeReader, found: Attributes, name: str) -> ListNode | None:
    """A list whose entries are texts."""
    node = found.get(name, ListNode)
    for item in node.items if node else ():
        if not isinstance(item, ScalarNode) or not isinstance(item.value, str):
            reader.report.error("wrong-type", item.span, f"`{name}` is a list of the names or paths of steps")
    return node


def _calls(reader: AttributeReader, found: Attributes) -> Iterator[ExpectedCalls]:
    node = found.get("calls", MapNode)
    for entry in node.entries if node else ():
        calls = _expected_calls(reader, entry)
        if calls is not None:
            yield calls


def _expected_calls(reader: AttributeReader, entry: Entry) -> ExpectedCalls | None:
    node = entry.value
    if isinstance(node, ListNode):
        return ExpectedCalls(entry.name, entry.key_span, len(node.items), node)
    if isinstance(node, MapNode):
        return _described_calls(reader, entry, node)
    if isinstance(node, ScalarNode) and type(node.value) is int and 0 <= node.value <= TIMES_MAX:
        return ExpectedCalls(entry.name, entry.key_span, node.value)
    message = "the calls of a step are a number, a list of inputs, or a mapping with `count` and `inputs`"
    reader.report.error("wrong-type", node.span, message)
    return None


def _described_calls(reader: AttributeReader, entry: Entry, node: MapNode) -> ExpectedCalls | None:
    found = reader.read(node, CALLS)
    if found is None:
        return None
    exact = found.get("inputs", ListNode)
    inputs = exact or found.get("inputsInclude", ListNode)
    count = reader.whole(found, "count")
    if count is None and inputs is not None:
        count = len(inputs.items)
    return ExpectedCalls(entry.name, entry.key_span, count, inputs, exact is not None)


def _bounds(reader: AttributeReader, node: Node | None) -> Iterator[Bound]:
    items = node.items if isinstance(node, ListNode) else () if node is None else (node,)
    for item in items:
        text = item.text if isinstance(item, ScalarNode) else ""
        match = _BOUND.fullmatch(text.strip())
        seconds = None if match is None else duration_seconds(match[2])
        if match is None or seconds is None:
            reader.report.error("bad-value", item.span, f"{shown(text)} is no bound of a duration", _BOUND_HINT)
        else:
            yield Bound(match[1] or "=", round(seconds * 1000))
