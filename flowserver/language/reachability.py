"""Warnings about control flow: unreachable steps and endless loops.

Works list by list on a graph without errors; a goto never leaves its list.
"""

from collections.abc import Iterator
from typing import Final

from flowserver.language.diagnostics import Report, shown
from flowserver.language.graph import (
    ChoiceStep,
    FailStep,
    Flow,
    ForeachStep,
    Option,
    ParallelStep,
    Pattern,
    Step,
    StepList,
    SucceedStep,
    TaskStep,
    WaitStep,
)
from flowserver.language.outline import ListOutline

_LEAVE: Final = -1  # the position of what comes after a list


def check_reachability(flow: Flow, outlines: list[ListOutline], report: Report) -> None:
    """Warn of unreachable steps and endless loops in every list."""
    for steps, outline in zip(flow.lists, outlines, strict=True):
        arrows = {index: set(_next_positions(steps, index)) for index in range(len(steps.steps))}
        reached = _reached_from(0, arrows)
        for index, name in enumerate(outline.names):
            if index not in reached:
                report.warning("unreachable-step", name.span, f"no way leads to the step {shown(name.text)}")
        trapped = reached - _reached_from(_LEAVE, _reversed(arrows))
        if trapped and not any(_pauses(steps.steps[index]) for index in trapped):
            name = outline.names[_loop_start(trapped, arrows)]
            message = f"from the step {shown(name.text)} on, this loops without end and without waiting"
            report.warning("endless-loop", name.span, message, "add a wait step, or a way out")


_Arrows = dict[int, set[int]]


def _reached_from(start: int, arrows: _Arrows) -> set[int]:
    reached = {start}
    todo = [start]
    while todo:
        found = arrows.get(todo.pop(), set()) - reached
        reached |= found
        todo.extend(found)
    return reached


def _loop_start(trapped: set[int], arrows: _Arrows) -> int:
    """The first step that a later step, or the step itself, leads back to. A list without an exit always has one."""
    return min(end for start in trapped for end in arrows[start] if end <= start)


def _reversed(arrows: _Arrows) -> _Arrows:
    backwards: _Arrows = {}
    for start, ends in arrows.items():
        for end in ends:
            backwards.setdefault(end, set()).add(start)
    return backwards


def _next_positions(steps: StepList, index: int) -> Iterator[int]:
    """Where control can go after a step: positions in the list, or _LEAVE."""
    step = steps.steps[index]
    after = _LEAVE if step.end or index + 1 == len(steps.steps) else index + 1
    match step:
        case SucceedStep() | FailStep():
            yield _LEAVE
        case ChoiceStep():
            for option in _taken_options(step):
                yield steps.position[option.goto] if option.goto is not None else after
        case TaskStep():
            yield after
            yield from (steps.position[rule.goto] for rule in step.catch)
        case _:
            yield after


_FALL_THROUGH: Final = Option(None, None, None)


def _taken_options(step: ChoiceStep) -> Iterator[Option]:
    """The options that may be taken: none after an option whose condition is always true."""
    for option in (*step.options, step.default or _FALL_THROUGH):
        yield option
        if option.is_always_taken:
            return


def _pauses(step: Step) -> bool:
    """Whether a step takes time: it waits, or it holds a step that does."""
    match step:
        case WaitStep():
            return True
        case TaskStep():
            return step.pattern is Pattern.WAIT_FOR_CALLBACK
        case _:
            return any(_pauses(inner) for nested in nested_lists(step) for inner in nested.steps)


def nested_lists(step: Step) -> Iterator[StepList]:
    """The step lists that a step holds."""
    match step:
        case ChoiceStep():
            for option in (*step.options, step.default or _FALL_THROUGH):
                if option.steps:
                    yield option.steps
        case ParallelStep():
            yield from step.branches
        case ForeachStep():
            yield step.steps
