"""What tests of a definition can reach: its steps, every option of a choice and its fall-through, retries, catches."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from flowserver.base.limits import Limits
from flowserver.flowtests.cases import Source
from flowserver.flowtests.step_paths import lists_of
from flowserver.language.check_cost import Work
from flowserver.language.diagnostics import Report
from flowserver.language.graph import ChoiceStep, ForeachStep, ParallelStep, Span, Step, StepList, TaskStep
from flowserver.language.nodes import ListNode, MapNode, Node
from flowserver.language.parser import STORED_LIMITS
from flowserver.language.source import read_source
from flowserver.machine.steps.choice import DEFAULT_OPTION

FALL_THROUGH: Final = -2
"""The number of the way past a choice whose options are not taken and which has no default."""


class Kind(StrEnum):
    """Kinds of points, as reports name them."""

    STEP = "steps"
    OPTION = "options"
    RETRY = "retries"
    CATCH = "catches"


PointKey = tuple[int, Kind, int]
"""The identity of the step, the kind, and the number of the option, policy or rule."""


@dataclass(frozen=True, slots=True)
class Point:
    """One of them; `title` says what it is: `option 2 of step Check`."""

    kind: Kind
    span: Span
    title: str
    step: Step
    number: int = 0

    @property
    def key(self) -> PointKey:
        """By which it is counted."""
        return id(self.step), self.kind, self.number


class Points:
    """The points of a definition in order of place, and the places of its mappings."""

    def __init__(self, source: Source, limits: Limits) -> None:
        large = replace(limits, definition_characters_max=STORED_LIMITS.definition_characters_max)
        root = read_source(source.text, large, Report(), Work(), frozenset({"resourceArn"}))
        self.mappings: dict[tuple[int, str, int], Span] = {}
        """By the identity of the step or the flow, the attribute and the position."""
        self._note_mappings(source.flow, root)
        self.all = tuple(sorted(self._of_list(source.flow.root, _get(root, "steps")), key=_place))

    def _of_list(self, steps: StepList, node: Node | None) -> Iterator[Point]:
        items = node.items if isinstance(node, ListNode) else ()
        for step, item in zip(steps.steps, items, strict=True):
            self._note_mappings(step, item)
            yield Point(Kind.STEP, step.span, f"step {step.name}", step)
            if isinstance(step, ChoiceStep):
                yield from _of_choice(step, item)
            elif isinstance(step, TaskStep):
                yield from _of_task(step, item)
            for (_, inner), inner_node in zip(lists_of(step), _list_nodes(step, item), strict=True):
                yield from self._of_list(inner, inner_node)

    def _note_mappings(self, owner: object, node: Node) -> None:
        for attribute in ("inputMappings", "outputMappings", "errorMappings"):
            mappings = _get(node, attribute)
            for position, entry in enumerate(mappings.items if isinstance(mappings, ListNode) else ()):
                self.mappings[id(owner), attribute, position] = entry.span


def _of_choice(step: ChoiceStep, node: Node) -> Iterator[Point]:
    for number, option in enumerate(_items(node, "choices")):
        yield Point(Kind.OPTION, option.span, f"option {number + 1} of step {step.name}", step, number)
    if any(option.is_always_taken for option in step.options):
        return
    default = _get(node, "default")
    if default is not None:
        yield Point(Kind.OPTION, default.span, f"the default of step {step.name}", step, DEFAULT_OPTION)
    else:
        yield Point(Kind.OPTION, step.span, f"the way past step {step.name} without an option", step, FALL_THROUGH)


def _of_task(step: TaskStep, node: Node) -> Iterator[Point]:
    for number, entry in enumerate(_items(node, "retry")):
        yield Point(Kind.RETRY, entry.span, f"retry policy {number + 1} of step {step.name}", step, number)
    for number, entry in enumerate(_items(node, "catch")):
        yield Point(Kind.CATCH, entry.span, f"catch rule {number + 1} of step {step.name}", step, number)


def _list_nodes(step: Step, node: Node) -> Iterator[Node | None]:
    """The nodes of `lists_of`, in the same order."""
    if isinstance(step, ChoiceStep):
        for option in (*_items(node, "choices"), *([default] if (default := _get(node, "default")) else [])):
            if (steps := _get(option, "steps")) is not None:
                yield steps
    elif isinstance(step, ParallelStep):
        yield from (_get(branch, "steps") for branch in _items(node, "branches"))
    elif isinstance(step, ForeachStep):
        yield _get(node, "steps")


def _get(node: Node, name: str) -> Node | None:
    entries = node.entries if isinstance(node, MapNode) else ()
    return next((entry.value for entry in entries if entry.name == name), None)


def _items(node: Node, name: str) -> tuple[Node, ...]:
    found = _get(node, name)
    return found.items if isinstance(found, ListNode) else ()


def _place(point: Point) -> tuple[int, int]:
    return point.span.line, point.span.column
