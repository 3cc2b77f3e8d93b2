"""The steps of a definition by path: `pack[].label`, `ship[1].book`, `check.refund`. A test names steps so."""

from collections.abc import Iterator

from flowserver.base.step_paths import agree, is_path, without_numbers
from flowserver.language.graph import Flow, Step, StepList, TaskStep
from flowserver.language.picture import nested, place_of_list


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
    return ((place_of_list(kind, index), steps) for kind, index, steps in nested(step))


def tasks_of(flow: Flow) -> Iterator[TaskStep]:
    """The task steps of a flow, in all its lists."""
    for steps in flow.lists:
        for step in steps.steps:
            if isinstance(step, TaskStep):
                yield step


def step_at(flow: Flow, path: str) -> Step | None:
    """The step of a path, with the numbers of iterations; None if the flow has none there."""
    return next((step for each, step in walk(flow) if agree(path, each)), None)


class StepsByPath:
    """The steps of some flows, for many look-ups by path."""

    def __init__(self, *flows: Flow) -> None:
        self._steps: dict[str, list[tuple[str, Step]]] = {}
        for path, step in (each for flow in flows for each in walk(flow)):
            self._steps.setdefault(without_numbers(path), []).append((path, step))

    def find(self, path: str) -> Step | None:
        """As `step_at`."""
        return next((step for _, step in self.all(path)), None)

    def all(self, path: str) -> Iterator[tuple[str, Step]]:
        """The steps that a path can mean, each with its own path: in two branches if it leaves their numbers open."""
        return ((each, step) for each, step in self._steps.get(without_numbers(path), ()) if agree(path, each))

    def path_of(self, path: str) -> str:
        """The path of the step in the definition: with the numbers of branches, without those of iterations."""
        return next((each for each, _ in self.all(path)), path)


def names_step(wanted: str, path: str, name: str) -> bool:
    """Whether a step's name or path in a test means the step at this path."""
    return agree(path, wanted) if is_path(wanted) else wanted == name
