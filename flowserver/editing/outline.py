"""The steps of a definition as they are written, also of one with errors: names, gotos, paths, what holds what."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from flowserver.base.step_paths import without_numbers
from flowserver.editing.grammar import attribute_of, text_of
from flowserver.language.nodes import ListNode, MapNode, Node, ScalarNode


@dataclass(frozen=True, slots=True, eq=False)
class StepList:
    """A list of steps; `holder` is the step around it, and `label` says which of the holder's lists it is."""

    node: ListNode
    label: str
    holder: "StepEntry | None"
    steps: list["StepEntry"] = field(default_factory=list)

    def named(self, name: str) -> "StepEntry | None":
        """The first step of that name."""
        return next((step for step in self.steps if step.name == name), None)


@dataclass(frozen=True, slots=True, eq=False)
class StepEntry:
    """A step; `path` names it as flow tests do: `pack[].label`, `ship[1].book`."""

    node: MapNode
    type: str
    name: str
    name_node: ScalarNode | None
    path: str
    within: StepList
    gotos: tuple[ScalarNode, ...]
    """Those of its options and catch rules, which name steps of its own list."""
    lists: list[StepList] = field(default_factory=list)


class Outline:
    """The steps of a definition. `by_name` and `by_path` have the steps of each name and path, without numbers."""

    def __init__(self, root: Node | None) -> None:
        self.lists: list[StepList] = []
        self.by_name: dict[str, list[StepEntry]] = {}
        self.by_path: dict[str, list[StepEntry]] = {}
        steps = None if root is None else attribute_of(root, "steps")
        if isinstance(steps, ListNode):
            self._read(steps, "", "", None)

    def steps(self) -> Iterator[StepEntry]:
        """Every step."""
        for steps in self.lists:
            yield from steps.steps

    def by_name_node(self, node: Node) -> StepEntry | None:
        """The step whose name this is."""
        return next((step for step in self.steps() if step.name_node is node), None)

    def by_goto(self, node: Node) -> StepEntry | None:
        """The step that has this goto."""
        return next((step for step in self.steps() if any(goto is node for goto in step.gotos)), None)

    def by_node(self, node: Node) -> StepEntry | None:
        """The step that this mapping is."""
        return next((step for step in self.steps() if step.node is node), None)

    def _read(self, node: ListNode, label: str, prefix: str, holder: StepEntry | None) -> None:
        within = StepList(node, label, holder)
        self.lists.append(within)
        if holder is not None:
            holder.lists.append(within)
        for item in node.items:
            if isinstance(item, MapNode):
                self._step(item, prefix, within)

    def _step(self, node: MapNode, prefix: str, within: StepList) -> None:
        name = attribute_of(node, "name")
        name_node = name if isinstance(name, ScalarNode) else None
        path = prefix + text_of(name)
        kind = text_of(attribute_of(node, "type"))
        step = StepEntry(node, kind, text_of(name), name_node, path, within, tuple(_gotos(node)))
        within.steps.append(step)
        self.by_name.setdefault(step.name, []).append(step)
        self.by_path.setdefault(without_numbers(path), []).append(step)
        for label, before, steps in _lists_of(node):
            self._read(steps, label, f"{path}{before}.", step)


def _gotos(node: MapNode) -> Iterator[ScalarNode]:
    for holder in (*_items(node, "choices"), *_items(node, "catch"), attribute_of(node, "default")):
        goto = None if holder is None else attribute_of(holder, "goto")
        if isinstance(goto, ScalarNode):
            yield goto


def _lists_of(node: MapNode) -> Iterator[tuple[str, str, ListNode]]:
    """The lists in a step: a label, what it adds to the step's path, the list."""
    for option in _items(node, "choices"):
        yield from _list(option, text_of(attribute_of(option, "condition")), "")
    if (default := attribute_of(node, "default")) is not None:
        yield from _list(default, "default", "")
    for number, branch in enumerate(_items(node, "branches")):
        yield from _list(branch, f"branch {number}", f"[{number}]")
    yield from _list(node, "each", "[]")


def _list(holder: Node, label: str, before: str) -> Iterator[tuple[str, str, ListNode]]:
    steps = attribute_of(holder, "steps")
    if isinstance(steps, ListNode):
        yield label, before, steps


def _items(node: MapNode, name: str) -> tuple[Node, ...]:
    found = attribute_of(node, name)
    return found.items if isinstance(found, ListNode) else ()
