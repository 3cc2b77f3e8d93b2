"""Reads the properties that a test, or the simulation of a file, expects of runs."""

from collections.abc import Iterator

from flowserver.expressions.conditions import Condition, compile_condition, paths_in
from flowserver.flowtests.condition_names import COUNTS
from flowserver.flowtests.fields import CLAIM, PROPERTIES_MAX, UNDO
from flowserver.flowtests.properties import FACTS, Always, AtMostOnce, Compensated, Never, OutputFits, Property
from flowserver.flowtests.schema_reading import SchemaReader
from flowserver.language.attributes import AttributeReader, Attributes
from flowserver.language.diagnostics import shown
from flowserver.language.nodes import ListNode, MapNode, Node, ScalarNode


def read_properties(
    reader: AttributeReader, found: Attributes, schemas: SchemaReader, *, is_simulation: bool = False
) -> tuple[Property, ...]:
    """The properties among attributes; mistakes go into the report of the reader."""
    return (*_Reader(reader, found).read(), *_schemas(found, schemas, is_needed=not is_simulation))


def _schemas(found: Attributes, schemas: SchemaReader, *, is_needed: bool) -> Iterator[Property]:
    node = found.get("outputSchema", MapNode)
    schema = None if node is None else schemas.read(node, is_needed=is_needed)
    if schema is not None:
        yield OutputFits(schema, found.key_span("outputSchema"))


class _Reader:
    def __init__(self, reader: AttributeReader, found: Attributes) -> None:
        self._reader = reader
        self._report = reader.report
        self._found = found

    def read(self) -> Iterator[Property]:
        """Each of them."""
        for item in self._texts("never"):
            yield Never(item.text, item.span)
        for item in self._texts("atMostOnce"):
            yield AtMostOnce(item.text, item.span)
        yield from self._compensated()
        yield from self._always()

    def _texts(self, name: str) -> Iterator[ScalarNode]:
        node = self._found.get(name, ListNode)
        if node is not None and name == "atMostOnce":
            self._check_length(name, node)
        for item in node.items if node else ():
            if isinstance(item, ScalarNode) and isinstance(item.value, str):
                yield item
            else:
                self._report.error("wrong-type", item.span, f"`{name}` is a list of the names or paths of steps")

    def _check_length(self, name: str, node: ListNode | MapNode) -> None:
        entries = node.items if isinstance(node, ListNode) else node.entries
        if not entries:
            self._report.error("empty-list", node.span, f"`{name}` needs at least one entry")
        if len(entries) > PROPERTIES_MAX:
            self._report.error("bad-value", node.span, f"`{name}` has at most {PROPERTIES_MAX} entries")

    def _compensated(self) -> Iterator[Property]:
        node = self._found.get("compensated", MapNode)
        if node is not None:
            self._check_length("compensated", node)
        for entry in node.entries if node else ():
            undo = entry.value
            if isinstance(undo, ScalarNode) and isinstance(undo.value, str):
                yield Compensated(entry.name, undo.text, span=entry.key_span)
            elif isinstance(undo, MapNode):
                attributes = self._reader.read(undo, UNDO)
                by = None if attributes is None else self._reader.text(attributes, "by")
                if attributes is not None and by is not None:
                    when = self._condition(attributes.any("when"))
                    flag = attributes.get("mayFail", ScalarNode)
                    may_fail = flag is not None and flag.value is True
                    yield Compensated(entry.name, by, when, entry.key_span, may_fail)
            else:
                message = "what undoes a step is the name of a step, or a mapping with `by`"
                self._report.error("wrong-type", undo.span, message)

    def _always(self) -> Iterator[Property]:
        node = self._found.get("always", ListNode)
        if node is not None:
            self._check_length("always", node)
        for item in node.items if node else ():
            then: Node | None = item
            if_: Condition | None = None
            if isinstance(item, MapNode):
                attributes = self._reader.read(item, CLAIM)
                then = None if attributes is None else attributes.any("then")
                if_ = None if attributes is None else self._condition(attributes.any("if"))
            condition = self._condition(then)
            if condition is not None:
                yield Always(condition, if_, item.span)

    def _condition(self, node: Node | None) -> Condition | None:
        """The condition, which reads what there is."""
        if node is None:
            return None
        if not isinstance(node, ScalarNode) or not isinstance(node.value, str):
            self._report.error("wrong-type", node.span, "a condition is a text", "write it in quotes")
            return None
        condition = self._reader.compiled(node, compile_condition, "bad-condition")
        for path in () if condition is None else paths_in(condition):
            first = path.segments[0] if path.segments else None
            if first is not None and first not in FACTS:
                message = f"{shown(path.text)} reads nothing: a run has {', '.join(FACTS)}"
                hint = self._reader.work.similar(str(first), FACTS)
                self._report.error("bad-value", node.span, message, hint)
            elif first in COUNTS and len(path.segments) > 2:
                message = f"{shown(path.text)} reads nothing: `{first}` is a number for each step"
                self._report.error("bad-value", node.span, message, 'write a path in brackets: `["pack[].label"]`')
        return condition
