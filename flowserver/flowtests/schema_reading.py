"""Reads the JSON Schemas in a flow test file: mistakes in them have their places in the file."""

from collections.abc import Callable
from random import Random
from typing import Final

from flowserver.base.json_values import JsonObject
from flowserver.flowtests.choices import Choices
from flowserver.flowtests.real_calls import NotAvailable
from flowserver.flowtests.schema_values import object_for, unusable_parts
from flowserver.flowtests.schemas import Schema, SchemaInvalid
from flowserver.language.diagnostics import Report
from flowserver.language.graph import Span
from flowserver.language.nodes import ListNode, MapNode, Node, to_json

CompileSchema = Callable[[JsonObject], Schema]
"""Raises SchemaInvalid, and NotAvailable where schemas are not applied."""

TRIES: Final = 20
"""How many values are made until one fits the schema."""


class SchemaReader:
    """Reads schemas; mistakes go into the report."""

    def __init__(self, report: Report, compile_schema: CompileSchema) -> None:
        self._report = report
        self._compile = compile_schema

    def read(self, node: MapNode, *, is_needed: bool = True) -> Schema | None:
        """The schema; None if it was reported. Unless it is needed, None also where schemas are not applied."""
        document = to_json(node)
        assert isinstance(document, dict)
        try:
            return self._compile(document)
        except SchemaInvalid as error:
            self._report.error("bad-value", _place(node, error.path), f"this is no JSON Schema: {error}")
        except NotAvailable as error:
            if is_needed:
                self._report.error("bad-value", node.span, str(error), error.hint)
        return None

    def read_for_inputs(self, node: MapNode) -> Schema | None:
        """A schema by which inputs are made; None if it was reported, or where schemas are not applied."""
        schema = self.read(node, is_needed=False)
        if schema is None:
            return None
        unusable = list(unusable_parts(schema.document))
        for message, path in unusable:
            self._report.error("bad-value", _place(node, path), message, "leave it out, or list `examples`")
        tries = (Choices(Random(number)) for number in range(TRIES))  # noqa: S311 - no secret
        if not unusable and object_for(schema, tries) is None:
            self._report.error("bad-value", node.span, "no object was found that fits this schema")
        return schema


def _place(node: Node, path: tuple[str | int, ...]) -> Span:
    """The place of what a path leads to; of what is around it where it leads to nothing."""
    span = node.span
    for part in path:
        if isinstance(node, MapNode):
            entry = next((each for each in node.entries if each.name == part), None)
            if entry is None:
                return span
            node, span = entry.value, entry.key_span
        elif isinstance(node, ListNode) and isinstance(part, int):
            node = node.items[part]
            span = node.span
    return span
