"""The arguments of the functions that each read one kind of step."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypedDict

from flowserver.language.attributes import AttributeReader, Attributes
from flowserver.language.graph import Mappings, Span, StepList
from flowserver.language.nodes import ListNode, ScalarNode
from flowserver.language.outline import ListOutline, Located


class StepBasics(TypedDict):
    """What every step has, as keyword arguments of its class."""

    name: str
    span: Span
    end: bool
    input_mappings: Mappings | None
    output_mappings: Mappings | None


@dataclass(frozen=True, slots=True)
class StepContext:
    """The context of a step: the reader of attributes, the list that contains the step, the reader of nested lists."""

    reader: AttributeReader
    outline: ListOutline
    read_list: Callable[[ListNode], StepList]

    def steps(self, attributes: Attributes) -> StepList | None:
        """The nested list of an object, or None if there is none; an empty one is reported."""
        node = attributes.get("steps", ListNode)
        if node is None:
            return None
        if not node.items:
            self.reader.report.error("empty-list", node.span, "`steps` needs at least one step")
        return self.read_list(node)

    def goto(self, attributes: Attributes) -> str | None:
        """The `goto` of an object, or None; whether it names a sibling is checked when all lists are read."""
        node = attributes.get("goto", ScalarNode)
        if node is None:
            return None
        self.outline.gotos.append(Located(node.text, node.span))
        return node.text
