"""Rules about the steps that undo work after an error: that they run if they are needed, and only then."""

import re
from collections.abc import Iterable
from typing import Final

from flowserver.analysis.rules import PathStep
from flowserver.analysis.subject import Subject
from flowserver.analysis.ways import reached
from flowserver.language.arrows import LEAVE, Arrow, Way, arrows_from, options_of
from flowserver.language.diagnostics import shown
from flowserver.language.graph import ChoiceStep, FunctionTarget, PassStep, Step, StepList, TaskStep, WaitStep
from flowserver.machine.retry_and_catch import ALL_ERRORS

_UNDO: Final = re.compile(r"(?i)^(?:cancel|undo|rollback|roll_back|compensate|refund|revert|release)")

_RELEASE: Final = re.compile(r"(?i)^release")
_ACQUIRE: Final = re.compile(r"(?i)^(?:acquire|obtain|claim|lease|lock|take)")


def check_compensation(subject: Subject) -> None:
    """Look at the steps to which a catch leads, in every list."""
    for steps in subject.flow.lists:
        _check_list(subject, steps)


def _check_list(subject: Subject, steps: StepList) -> None:
    normal = reached(subject, steps, {0}, _without_error)
    caught = {
        arrow.end: arrow for index in sorted(normal) for arrow in arrows_from(steps, index) if arrow.way is Way.CAUGHT
    }
    if not caught:
        return
    _check_undo_on_success(subject, steps, normal, set(caught))
    _check_undo_by_choice(subject, steps, normal & set(caught))
    _check_on_the_way(subject, steps, reached(subject, steps, set(caught), _without_error) - normal)
    undoing = {goal for goal in caught if goal not in normal and _undoes(subject, steps, goal, normal)}
    after = _after_protected(steps, undoing)
    for index in sorted(normal):
        step = steps.steps[index]
        if not isinstance(step, TaskStep) or any(ALL_ERRORS in rule.errors for rule in step.catch):
            continue
        first = after.get(index)
        if first is not None and first != index and subject.is_entered(steps, index):
            goal = next(arrow.end for arrow in arrows_from(steps, first) if arrow.end in undoing)
            _report_skipped(subject, steps.steps[first], step, steps.steps[goal])


def _report_skipped(subject: Subject, before: Step, step: Step, undo: Step) -> None:
    message = f"if {shown(step.name)} fails, {shown(undo.name)} does not run, although {shown(before.name)} has"
    path = (
        subject.path_step(before, "is done"),
        subject.path_step(step, "fails with an error that nothing catches"),
        subject.path_step(undo, "does not run"),
    )
    hint = f"add a catch for `{ALL_ERRORS}` that leads to the steps that undo the work"
    subject.report("compensation-skipped", subject.places.name_of(step.span), message, hint, path)


def _check_undo_by_choice(subject: Subject, steps: StepList, goals: set[int]) -> None:
    """Look at places to which a catch leads, and success, too: a choice there may tell them apart, and undo work."""
    undoes: dict[int, Step] = {}
    """What is undone after an error that leads to a place."""
    choices: set[int] = set()
    is_taken = take_for_use(steps.steps)
    for goal in sorted(goals):
        index = _choice_after(steps, goal)
        choice = None if index is None else steps.steps[index]
        if index is not None and isinstance(choice, ChoiceStep):
            ways = [_undo_on(steps, choice, arrow) for arrow in subject.arrows_of(steps)[index]]
            undo = next((undo for undo in ways if undo is not None), None)
            if undo is not None:
                undoes[goal] = undo
                choices.add(index)
                if None not in ways and not ends_use(undo, is_taken=is_taken):
                    _report_undo_on_each_option(subject, choice, undo)
    after, before = _after_protected(steps, set(undoes)), _leading_to(subject, steps, choices)
    for index, first in sorted(after.items()):
        step = steps.steps[index]
        may_fail = isinstance(step, TaskStep) and not any(ALL_ERRORS in rule.errors for rule in step.catch)
        is_between = first != index and index in before and subject.is_entered(steps, index)
        if may_fail and is_between and not undoes_by_name(step):
            goal = next(arrow.end for arrow in arrows_from(steps, first) if arrow.end in undoes)
            _report_skipped(subject, steps.steps[first], step, undoes[goal])


def _report_undo_on_each_option(subject: Subject, choice: ChoiceStep, undo: Step) -> None:
    message = f"{shown(undo.name)} also runs when nothing failed: each option of {shown(choice.name)} undoes work"
    path = (subject.path_step(choice, "is reached when nothing failed"), subject.path_step(undo, "may run"))
    hint = "add an option for success, or a `default`, that leads past the steps that undo"
    subject.report("undo-on-success", subject.places.name_of(choice.span), message, hint, path)


def _leading_to(subject: Subject, steps: StepList, goals: set[int]) -> set[int]:
    """The positions from which ways without an error lead to one of some positions."""
    before: dict[int, list[int]] = {}
    for index in range(len(steps.steps)):
        for arrow in subject.arrows_of(steps)[index]:
            if _without_error(arrow):
                before.setdefault(arrow.end, []).append(index)
    found, todo = set(goals), list(goals)
    for index in todo:
        new = [each for each in before.get(index, ()) if each not in found]
        found.update(new)
        todo.extend(new)
    return found


def _choice_after(steps: StepList, index: int) -> int | None:
    """The position of the choice to which a step leads past steps that make no calls."""
    passed: set[int] = set()
    while index != LEAVE and index not in passed:
        if isinstance(steps.steps[index], ChoiceStep):
            return index
        if not isinstance(steps.steps[index], (PassStep, WaitStep)):
            return None
        passed.add(index)
        index = next(arrow.end for arrow in arrows_from(steps, index))
    return None


def _undo_on(steps: StepList, choice: ChoiceStep, arrow: Arrow) -> Step | None:
    """The step that undoes work, by its name, with which an option begins, or to which it leads."""
    nested = options_of(choice)[arrow.number].steps
    begins = [] if nested is None else [nested.steps[0]]
    begins += [] if arrow.end == LEAVE else [steps.steps[arrow.end]]
    return next((step for step in begins if undoes_by_name(step)), None)


def _undoes(subject: Subject, steps: StepList, goal: int, normal: set[int]) -> bool:
    """Whether a catch leads to a task that undoes work, or reports the error, and then to no normal step."""
    if reached(subject, steps, {goal}, _without_error) & normal:
        return False
    return isinstance(steps.steps[goal], TaskStep) or any(
        isinstance(steps.steps[arrow.end], TaskStep) and arrow.end not in normal
        for arrow in arrows_from(steps, goal)
        if arrow.end != LEAVE
    )


def _check_on_the_way(subject: Subject, steps: StepList, undoing: set[int]) -> None:
    """Report the tasks between an error and the steps that undo its work which can fail themselves."""
    for index in sorted(undoing):
        step = steps.steps[index]
        if not isinstance(step, TaskStep) or undoes_by_name(step) or _handles_all(step):
            continue
        next_ones = {arrow.end for arrow in arrows_from(steps, index) if _without_error(arrow)}
        after = sorted(reached(subject, steps, next_ones, _without_error) & undoing - {index})
        undo = next((steps.steps[each] for each in after if undoes_by_name(steps.steps[each])), None)
        if undo is not None and subject.is_entered(steps, index):
            message = f"if {shown(step.name)} fails, {shown(undo.name)} does not run, which would undo earlier work"
            path = (
                subject.path_step(step, "fails with an error that nothing catches"),
                subject.path_step(undo, "does not run"),
            )
            hint = f"undo first, or add a catch for `{ALL_ERRORS}` that leads to {shown(undo.name)}"
            subject.report("compensation-skipped", subject.places.name_of(step.span), message, hint, path)


def _handles_all(step: TaskStep) -> bool:
    return any(ALL_ERRORS in rule.errors for rule in step.catch) or any(
        ALL_ERRORS in policy.errors for policy in step.retry
    )


def _without_error(arrow: Arrow) -> bool:
    return arrow.way is not Way.CAUGHT


def _after_protected(steps: StepList, undoing: set[int]) -> dict[int, int]:
    """The steps after the success of a task whose catch leads to steps that undo, each with one such task."""
    found: dict[int, int] = {}
    for index, step in enumerate(steps.steps):
        arrows = list(arrows_from(steps, index))
        if isinstance(step, TaskStep) and any(each.way is Way.CAUGHT and each.end in undoing for each in arrows):
            todo = [each.end for each in arrows if each.way is Way.DONE]
            while todo:
                position = todo.pop()
                if position != LEAVE and position not in found:
                    found[position] = index
                    todo.extend(each.end for each in arrows_from(steps, position) if each.way is not Way.CAUGHT)
    return found


def _check_undo_on_success(subject: Subject, steps: StepList, normal: set[int], caught: set[int]) -> None:
    is_taken = take_for_use(steps.steps)
    for index in sorted(normal & caught):
        step = steps.steps[index]
        before = steps.steps[index - 1] if index else None
        falls_in = before is not None and index - 1 in normal and not before.end and _goes_to(steps, index - 1, index)
        if isinstance(step, TaskStep) and falls_in and undoes_by_name(step) and not ends_use(step, is_taken=is_taken):
            assert before is not None
            path: tuple[PathStep, ...] = (
                subject.path_step(before, "is done"),
                subject.path_step(step, "runs, although nothing failed"),
            )
            message = f"{shown(step.name)} also runs after {shown(before.name)} when nothing failed"
            span = subject.places.name_of(step.span)
            subject.report("undo-on-success", span, message, "put a `succeed` step before it, or `end: true`", path)


def undoes_by_name(step: Step) -> bool:
    """Whether a step undoes work, by what it or its function is called."""
    function = step.target.function if isinstance(step, TaskStep) and isinstance(step.target, FunctionTarget) else ""
    return names_undoing(step.name) or names_undoing(function)


def names_undoing(name: str) -> bool:
    """Whether the name of a step or function says that it undoes work."""
    return _UNDO.match(name) is not None


def take_for_use(steps: Iterable[Step]) -> bool:
    """Whether one of the steps takes what another one gives back after success, too: `AcquireLock`."""
    return any(_ACQUIRE.match(step.name) for step in steps)


def ends_use(step: Step, *, is_taken: bool) -> bool:
    """Whether a step gives back what is taken for a use (`take_for_use`), as `ReleaseLock` does."""
    return is_taken and _RELEASE.match(step.name) is not None


def _goes_to(steps: StepList, index: int, goal: int) -> bool:
    return any(arrow.end == goal and arrow.way is Way.DONE for arrow in arrows_from(steps, index))
