"""The ways through a list of steps: where control can go after each of them. A goto never leaves its list."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from flowserver.language.graph import ChoiceStep, FailStep, Option, StepList, SucceedStep, TaskStep

LEAVE: Final = -1
"""The position of what comes after a list."""

NOTHING_TAKEN: Final = Option(None, None, None)
"""What a choice without a default does if no condition is true."""


class Way(StrEnum):
    """How control leaves a step."""

    DONE = "done"
    OPTION = "option"
    CAUGHT = "caught"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Arrow:
    """One way from a step to another, or out of the list; positions count from 0, or are LEAVE."""

    start: int
    end: int
    way: Way
    number: int = 0
    """Which option or catch rule, from 0; the default comes after the options."""


def arrows_from(steps: StepList, index: int) -> Iterator[Arrow]:
    """The ways from the step at a position."""
    step = steps.steps[index]
    after = LEAVE if step.end or index + 1 == len(steps.steps) else index + 1
    match step:
        case FailStep():
            yield Arrow(index, LEAVE, Way.FAILED)
        case SucceedStep():
            yield Arrow(index, LEAVE, Way.DONE)
        case ChoiceStep():
            for number, option in enumerate(taken_options(step)):
                end = steps.position[option.goto] if option.goto is not None else after
                yield Arrow(index, end, Way.OPTION, number)
        case TaskStep():
            yield Arrow(index, after, Way.DONE)
            for number, rule in enumerate(step.catch):
                yield Arrow(index, steps.position[rule.goto], Way.CAUGHT, number)
        case _:
            yield Arrow(index, after, Way.DONE)


def options_of(step: ChoiceStep) -> tuple[Option, ...]:
    """The options of a choice and its default, which does nothing if there is none."""
    return (*step.options, step.default or NOTHING_TAKEN)


def taken_options(step: ChoiceStep) -> Iterator[Option]:
    """The options that may be taken: none after an option whose condition is always true."""
    for option in options_of(step):
        yield option
        if option.is_always_taken:
            return
