"""The steps of a definition by path: `pack[].label`, `ship[1].book`, `check.refund`. A test names steps so."""

import re
from collections.abc import Iterator
from typing import Final

from flowserver.language.graph import ChoiceStep, Flow, ForeachStep, ParallelStep, Step, StepList, TaskStep
from flowserver.machine.event_paths import is_path, matches_path

_NUMBER: Final = re.compile(r"\[[0-9]*\]")


def walk(flow: Flow) -> Iterator[tuple[str, Step]]:
    """Each step with its path, in the order of the definition. `[]` is every iteration of a foreach."""
    yield from _walk("", flow.root)


def _walk(within: str, steps: StepList) -> Iterator[tuple[str, Step]]:
    for step in steps.steps:
        path = f"{within}{step.name}"
        yield path, step
        for before, inner in lists_of(step):
            yield from _walk(f"{path}{before}.", inner)


def lists_of(step: Step) -> Iterator[tuple[str, StepList]]:
    """The lists in a step, each with what it adds to the step's path."""
    match step:
        case ChoiceStep(options=options, default=default):
            for option in (*options, *([default] if default else [])):
                if option.steps is not None:
                    yield "", option.steps
        case ParallelStep(branches=branches):
            for number, branch in enumerate(branches):
                yield f"[{number}]", branch
        case ForeachStep(steps=steps):
            yield "[]", steps


def tasks_of(flow: Flow) -> Iterator[TaskStep]:
    """The task steps of a flow, in all its lists."""
    for steps in flow.lists:
        for step in steps.steps:
            if isinstance(step, TaskStep):
                yield step


def step_at(flow: Flow, path: str) -> Step | None:
    """The step of a path, with the numbers of iterations; None if the flow has none there."""
    return next((step for each, step in walk(flow) if matches_path(path, each, is_exact=True)), None)


class StepsByPath:
    """The steps of a flow, for many look-ups by path."""

    def __init__(self, flow: Flow) -> None:
        self._steps: dict[str, list[tuple[str, Step]]] = {}
        for path, step in walk(flow):
            self._steps.setdefault(general(path), []).append((path, step))

    def find(self, path: str) -> Step | None:
        """As `step_at`."""
        some = self._steps.get(general(path), ())
        return next((step for each, step in some if matches_path(path, each, is_exact=True)), None)


def general(path: str) -> str:
    """The path without numbers, as two paths of one step have it in common."""
    return _NUMBER.sub("[]", path)


def names_step(wanted: str, path: str, name: str) -> bool:
    """Whether a step's name or path in a test means the step at this path."""
    return matches_path(path, wanted, is_exact=True) if is_path(wanted) else wanted == name
