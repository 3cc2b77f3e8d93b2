"""Reads step lists: what all steps have, and which function reads the rest of each kind."""

from collections.abc import Callable
from typing import Final

from flowserver.base.names import is_name
from flowserver.language.attributes import AttributeReader, Attributes
from flowserver.language.control_steps import read_choice, read_foreach, read_parallel
from flowserver.language.diagnostics import CheckingStopped, shown
from flowserver.language.fields import STEPS
from flowserver.language.graph import PassStep, Span, Step, StepList
from flowserver.language.hints import Hint
from flowserver.language.mappings import read_mappings
from flowserver.language.nodes import ListNode, MapNode, Node, ScalarNode
from flowserver.language.outline import ListOutline, Located
from flowserver.language.simple_steps import read_fail, read_pass, read_succeed, read_wait
from flowserver.language.step_context import StepBasics, StepContext
from flowserver.language.task_step import read_task

READERS: Final[dict[str, Callable[[StepContext, Attributes, StepBasics], Step | None]]] = {
    "task": read_task,
    "wait": read_wait,
    "pass": read_pass,
    "choice": read_choice,
    "parallel": read_parallel,
    "foreach": read_foreach,
    "succeed": read_succeed,
    "fail": read_fail,
}
assert set(READERS) == set(STEPS)


class StepsReader:
    """Reads all lists of one definition and numbers them in the order in which they begin.

    A step that cannot be read is reported and replaced by an empty pass step, so that reading goes on. Use the graph
    only if nothing was reported. `outlines` runs parallel to `lists`.
    """

    def __init__(self, reader: AttributeReader) -> None:
        self.outlines: list[ListOutline] = []
        self._reader = reader
        self._lists: dict[int, StepList] = {}
        self._step_count = 0

    @property
    def lists(self) -> tuple[StepList, ...]:
        """The lists that were read, by number."""
        return tuple(self._lists[number] for number in sorted(self._lists))

    def read_list(self, node: ListNode) -> StepList:
        """Read one list and all that it holds."""
        list_id = len(self.outlines)
        outline = ListOutline()
        self.outlines.append(outline)
        context = StepContext(self._reader, outline, self.read_list)
        steps = tuple(self._step(item, context) for item in node.items)
        position = {step.name: index for index, step in enumerate(steps)}
        self._lists[list_id] = StepList(list_id, steps, position)
        return self._lists[list_id]

    def _step(self, node: Node, context: StepContext) -> Step:
        self._count(node.span)
        name = self._name(node)
        context.outline.names.append(name)
        nothing = PassStep(name=name.text, span=node.span)
        kind = self._kind(node)
        attributes = self._reader.read(node, STEPS[kind]) if kind else None
        if kind is None or attributes is None:
            return nothing
        return READERS[kind](context, attributes, self._basics(attributes, name.text)) or nothing

    def _count(self, span: Span) -> None:
        self._step_count += 1
        maximum = self._reader.limits.definition_steps_max
        if self._step_count == maximum + 1:
            self._reader.report.error("too-many-steps", span, f"a definition has at most {maximum} steps")
            raise CheckingStopped

    def _name(self, node: Node) -> Located:
        found = _scalar(node, "name")
        if found is None:
            return Located("", node.span)
        if isinstance(found.value, str) and not is_name(found.text):
            message = f"{shown(found.text)} is not a step name"
            self._reader.report.error("bad-name", found.span, message, Hint.STEP_NAME.of())
        return Located(found.text, found.span)

    def _kind(self, node: Node) -> str | None:
        """The step's type, or None if it was reported."""
        report = self._reader.report
        if not isinstance(node, MapNode):
            report.error("wrong-type", node.span, "a step must be a mapping")
            return None
        kind = _scalar(node, "type")
        if kind is None:
            head = node.entries[0].key_span if node.entries else node.span
            report.error("missing-attribute", head, "a step needs `type`")
            return None
        if kind.text not in STEPS:
            hint = self._reader.work.similar(kind.text, STEPS) or Hint.STEP_TYPES.of(types=", ".join(STEPS))
            report.error("unknown-step-type", kind.span, f"{shown(kind.text)} is not a type of step", hint)
            return None
        return kind.text

    def _basics(self, attributes: Attributes, name: str) -> StepBasics:
        end = attributes.get("end", ScalarNode)
        return StepBasics(
            name=name,
            span=attributes.span,
            end=end is not None and end.value is True,
            input_mappings=read_mappings(self._reader, attributes, "inputMappings"),
            output_mappings=read_mappings(self._reader, attributes, "outputMappings"),
        )


def _scalar(node: Node, name: str) -> ScalarNode | None:
    """An attribute of a step whose kind, and so whose table, is not known yet."""
    for entry in node.entries if isinstance(node, MapNode) else ():
        if entry.name == name and isinstance(entry.value, ScalarNode):
            return entry.value
    return None
