"""Warnings about control flow: unreachable steps and endless loops.

Works list by list on a graph without errors; a goto never leaves its list.
"""

from collections.abc import Iterator

from flowserver.language.arrows import LEAVE, arrows_from, options_of
from flowserver.language.diagnostics import Report, shown
from flowserver.language.graph import (
    ChoiceStep,
    Flow,
    ForeachStep,
    ParallelStep,
    Pattern,
    Step,
    StepList,
    TaskStep,
    WaitStep,
)
from flowserver.language.hints import Hint
from flowserver.language.outline import ListOutline


def check_reachability(flow: Flow, outlines: list[ListOutline], report: Report) -> None:
    """Warn of unreachable steps and endless loops in every list."""
    for steps, outline in zip(flow.lists, outlines, strict=True):
        arrows = {index: {each.end for each in arrows_from(steps, index)} for index in range(len(steps.steps))}
        reached = _reached_from(0, arrows)
        for index, name in enumerate(outline.names):
            if index not in reached:
                report.warning("unreachable-step", name.span, f"no way leads to the step {shown(name.text)}")
        trapped = reached - _reached_from(LEAVE, _reversed(arrows))
        if trapped and not any(pauses(steps.steps[index]) for index in trapped):
            name = outline.names[_loop_start(trapped, arrows)]
            message = f"from the step {shown(name.text)} on, this loops without end and without waiting"
            report.warning("endless-loop", name.span, message, Hint.PAUSE_OR_EXIT.of())


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


def pauses(step: Step) -> bool:
    """Whether a step takes time: it waits, or it holds a step that does."""
    match step:
        case WaitStep():
            return True
        case TaskStep():
            return step.pattern is Pattern.WAIT_FOR_CALLBACK
        case _:
            return any(pauses(inner) for nested in nested_lists(step) for inner in nested.steps)


def nested_lists(step: Step) -> Iterator[StepList]:
    """The step lists that a step holds."""
    match step:
        case ChoiceStep():
            for option in options_of(step):
                if option.steps:
                    yield option.steps
        case ParallelStep():
            yield from step.branches
        case ForeachStep():
            yield step.steps
