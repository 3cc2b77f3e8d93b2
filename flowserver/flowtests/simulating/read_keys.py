"""Which keys a flow reads of its input, and of the result of each task."""

from collections.abc import Iterable, Iterator

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


class ReadKeys:
    """The keys that are read in one flow."""

    def __init__(self, flow: Flow, kinds: KeyKinds) -> None:
        self._kinds = kinds
        self._of_results: dict[int, Keys] = {}
        """By the identity of the task."""
        self._note_results(flow.root, dict(self._mapped(flow.output_mappings, Root.LOCAL)))
        given = flow.input_mappings
        self.of_input: Keys = self._outer(flow.root) if given is None else dict(self._mapped(given, Root.INPUT))

    def of_result(self, step: TaskStep) -> Keys:
        """The keys that are read of what a task's call returns."""
        return self._of_results[id(step)]

    def _note_results(self, steps: StepList, after: Keys) -> None:
        """Note the results of the tasks in a list; `after` are the keys that are read of what the list leaves."""
        read = {**after}
        first_read: dict[str, int] = {}
        put_out: dict[str, list[int]] = {}
        for index, step in enumerate(steps.steps):
            mine = self._local(step)
            read |= mine
            first_read = dict.fromkeys(mine, index) | first_read
            for key in _put_out(step):
                put_out.setdefault(key, []).append(index)
        before_read = {key: [at for at in put_out.get(key, ()) if at < first_read.get(key, at + 1)] for key in read}
        for index, step in enumerate(steps.steps):
            own = step.output_mappings
            if isinstance(step, TaskStep):
                mixed = {key: any(at != index for at in before_read[key]) for key in read}
                self._of_results[id(step)] = mixed if own is None else dict(self._mapped(own, Root.LOCAL))
            is_list = isinstance(step, (ParallelStep, ForeachStep))
            left = read if own is None and not is_list else dict(self._mapped(own, Root.LOCAL, 1 if is_list else 0))
            for _, inner in lists_of(step):
                self._note_results(inner, left)

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
