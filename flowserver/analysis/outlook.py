"""What is worth knowing of a flow and no mistake: which errors of tasks end it, and how many iterations fit."""

from collections.abc import Iterator
from dataclasses import dataclass

from flowserver.analysis.shapes import Array, Document, Scalar, Shape
from flowserver.analysis.subject import Subject
from flowserver.language.graph import ForeachStep, TaskStep
from flowserver.machine.retry_and_catch import ALL_ERRORS

_LEAST_BYTES = {"text": 2, "number": 1, "boolean": 4, "null": 4}
"""Of a scalar as JSON."""


@dataclass(frozen=True, slots=True)
class Uncaught:
    """A task whose errors end the execution, except those that its catch rules name."""

    step: str
    line: int
    caught: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fit:
    """A foreach whose results do not fit into a step's data for every collection that is allowed."""

    step: str
    line: int
    item_bytes: int
    """What each iteration leaves at least, as JSON."""
    items_max: int
    """With more iterations the execution fails."""


def uncaught_errors(subject: Subject) -> Iterator[Uncaught]:
    """The tasks that may be entered and do not catch all errors; an error that nothing catches ends the execution."""
    for steps, index, step in subject.steps():
        if isinstance(step, TaskStep) and subject.is_entered(steps, index):
            caught = sorted({name for rule in step.catch for name in rule.errors})
            if ALL_ERRORS not in caught:
                yield Uncaught(step.name, subject.places.name_of(step.span).line, tuple(caught))


def fits(subject: Subject) -> Iterator[Fit]:
    """The foreach steps whose iterations leave so much that fewer fit than a collection may have.

    A foreach gathers what `$local` is at the end of each iteration; the list counts as data of the step.
    """
    limits = subject.limits
    for _, _, step, facts in subject.entered():
        if isinstance(step, ForeachStep) and isinstance(facts.result, Array) and facts.result.item is not None:
            each = least_bytes(facts.result.item)
            items = (limits.step_data_bytes_max - 1) // (each + 1)  # with the brackets, and a comma between two
            if items < limits.foreach_items_max:
                yield Fit(step.name, subject.places.name_of(step.span).line, each, items)


def least_bytes(shape: Shape) -> int:
    """The fewest bytes that a value of the shape has as compact JSON."""
    match shape:
        case Scalar(kind):
            return _LEAST_BYTES[kind]
        case Document(parts):
            sure = [len(key.encode()) + 3 + least_bytes(part.shape) for key, part in parts.items() if part.is_sure]
            return 2 + sum(sure) + max(0, len(sure) - 1)
        case Array():
            return 2
    return 1
