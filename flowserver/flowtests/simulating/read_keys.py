"""Which keys a flow reads of its input, and of the result of each task."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final

from flowserver.expressions.conditions import paths_in
from flowserver.expressions.paths import Path
from flowserver.expressions.references import Reference, Root
from flowserver.flowtests.simulating.key_kinds import KeyKinds, paths_in_params
from flowserver.flowtests.step_paths import lists_of
from flowserver.language.graph import (
    ChoiceStep,
    Flow,
    ForeachStep,
    Mappings,
    ParallelStep,
    Step,
    StepList,
    TaskStep,
    WaitStep,
)

Keys = dict[str, bool]
"""Names in the order in which the definition has them, each with whether mappings of other steps put it out before a
step reads it."""


KEYS_MAX: Final = 200
"""Keys of one result: those that are read next after its step."""


@dataclass(frozen=True, slots=True)
class _ListKeys:
    """What is read of the local of one list of steps."""

    order: list[str]
    """The keys in the order in which they are read first."""
    first_read: dict[str, int]
    """By key the position of the step that reads it first."""
    put_out: dict[str, list[int]]
    """By key the positions of the steps whose mappings put it out."""

    def after(self, index: int) -> Keys:
        """The keys that a step's result can have, those first that are read next."""
        begin = bisect_right(self.order, index, key=self.first_read.__getitem__)
        found = islice(chain(self.order[begin:], self.order[:begin]), KEYS_MAX)
        return {key: self._is_others(key, index) for key in found}

    def _is_others(self, key: str, index: int) -> bool:
        return any(at != index and at < self.first_read[key] for at in self.put_out.get(key, ()))


class ReadKeys:
    """The keys that are read in one flow."""

    def __init__(self, flow: Flow, kinds: KeyKinds) -> None:
        self._kinds = kinds
        self._tasks: dict[int, tuple[_ListKeys, int]] = {}
        """By the identity of the task: what is read in its list, and its position there."""
        self._of_results: dict[int, Keys] = {}
        self._note_tasks(flow.root, dict(self._mapped(flow.output_mappings, Root.LOCAL)))
        given = flow.input_mappings
        self.of_input: Keys = self._outer(flow.root) if given is None else dict(self._mapped(given, Root.INPUT))

    def of_result(self, step: TaskStep) -> Keys:
        """The keys that are read of what a task's call returns."""
        if id(step) not in self._of_results:
            keys, index = self._tasks[id(step)]
            own = step.output_mappings
            self._of_results[id(step)] = keys.after(index) if own is None else dict(self._mapped(own, Root.LOCAL))
        return self._of_results[id(step)]

    def _note_tasks(self, steps: StepList, left: Keys) -> None:
        """Note the tasks in a list; `left` are the keys that are read of what the list leaves."""
        keys = self._keys_of(steps, left)
        for index, step in enumerate(steps.steps):
            own = step.output_mappings
            if isinstance(step, TaskStep):
                self._tasks[id(step)] = keys, index
            is_list = isinstance(step, (ParallelStep, ForeachStep))
            read = keys.after(index) if own is None and not is_list else None
            for _, inner in lists_of(step):
                self._note_tasks(inner, read or dict(self._mapped(own, Root.LOCAL, 1 if is_list else 0)))

    def _keys_of(self, steps: StepList, left: Keys) -> _ListKeys:
        first_read: dict[str, int] = {}
        put_out: dict[str, list[int]] = {}
        for index, step in enumerate(steps.steps):
            for key in self._local(step):
                first_read.setdefault(key, index)
            for key in _put_out(step):
                put_out.setdefault(key, []).append(index)
        for key in left:
            first_read.setdefault(key, len(steps.steps))
        return _ListKeys(sorted(first_read, key=first_read.__getitem__), first_read, put_out)

    def _local(self, step: Step) -> Keys:
        """The keys that a step reads of the `$local` of its list."""
        if step.input_mappings is not None:
            return dict(self._mapped(step.input_mappings, Root.LOCAL))
        return self._own(step)

    def _outer(self, steps: StepList) -> Keys:
        """The keys that the steps of a list read of its input."""
        found: Keys = {}
        for step in steps.steps:
            given = step.input_mappings
            found |= self._own(step) if given is None else dict(self._mapped(given, Root.INPUT))
        return found

    def _own(self, step: Step) -> Keys:
        """The keys that are read of a step's own input."""
        found: Keys = dict(self._mapped(step.output_mappings, Root.INPUT))
        if isinstance(step, TaskStep):
            found |= dict(self._mapped(step.error_mappings, Root.INPUT))
        found |= dict(_firsts(_paths_of(step), 0))
        for _, inner in lists_of(step):
            found |= self._outer(inner)
        if isinstance(step, ForeachStep):
            found.pop(step.item, None)
            found.pop(step.index or "", None)
        return found

    def _mapped(self, mappings: Mappings | None, root: Root, position: int = 0) -> Iterator[tuple[str, bool]]:
        """The keys that mappings read of a root; if a root is mapped whole, the keys that are read of the target."""
        for mapping in mappings or ():
            if isinstance(mapping.source, Reference) and mapping.source.root is root:
                yield from _firsts([mapping.source.path], position)
                if len(mapping.source.path.segments) == position:
                    yield from ((key, False) for key in self._kinds.of(mapping.target).members)


def _put_out(step: Step) -> set[str]:
    """The keys that a step's mappings put out."""
    found = {mapping.target for mapping in step.output_mappings or ()}
    if isinstance(step, TaskStep):
        found |= {mapping.target for mapping in step.error_mappings or ()}
    return found


def _paths_of(step: Step) -> Iterator[Path]:
    match step:
        case ChoiceStep(options=options):
            for option in options:
                if option.condition is not None:
                    yield from paths_in(option.condition)
        case ForeachStep(collection=collection):
            yield collection
        case WaitStep(duration=duration, timestamp=timestamp):
            yield from (each for each in (duration, timestamp) if isinstance(each, Path))
        case TaskStep(service_params=params):
            yield from paths_in_params(params or {})


def _firsts(paths: Iterable[Path], position: int) -> Iterator[tuple[str, bool]]:
    for path in paths:
        segment = path.segments[position] if len(path.segments) > position else None
        if isinstance(segment, str):
            yield segment, False
