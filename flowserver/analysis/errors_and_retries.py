"""Rules about errors: rules that never match, errors that leave no trace, undoing that is skipped."""

import re
from collections.abc import Callable
from difflib import get_close_matches
from typing import Final

from flowserver.analysis.rules import PathStep
from flowserver.analysis.subject import Subject
from flowserver.language.arrows import LEAVE, Arrow, Way, arrows_from
from flowserver.language.diagnostics import shown
from flowserver.language.graph import (
    CatchRule,
    FlowTarget,
    FunctionTarget,
    Pattern,
    RetryPolicy,
    Step,
    StepList,
    SucceedStep,
    TaskStep,
)
from flowserver.machine.retry_and_catch import ALL_ERRORS, TASK_TIMEOUT

RETRIES_WITHOUT_PAUSE_MAX: Final = 10
"""A policy may make this many retries without a pause before that is found."""

SERVER_ERRORS: Final = (
    ALL_ERRORS,
    "FnF.TaskTimeout",
    "FnF.InvalidLocal",
    "FnF.RuntimeError",
    "FnF.Failed",
    "FnF.ExecutionStopped",
    "FnF.FlowNotExists",
    "FnF.ExecutionAlreadyExists",
    "FnF.InvalidArgument",
    "FnF.SecretNotFound",
    "FnF.SecretUnreadable",
    "FC.ResourceExhausted",
    "FC.ResourceThrottled",
    "FC.InternalServerError",
    "FC.FunctionNotFound",
    "FC.ServiceNotFound",
    "FC.FunctionNotStarted",
    "FC.InvalidArgument",
    "FC.ServerError",
    "FC.Unknown",
    "FC.InvocationStopped",
    "FC.InvocationExpired",
    "FC.EntityTooLarge",
    "FC.StatefulAsyncInvocationAlreadyExists",
)
"""Errors of the server that flows name most; others of its prefixes exist."""

_ALL_ELSEWHERE: Final = ("*", "all", "any", "states.all", "fnf.*", ".*")
_NEARLY: Final = 0.86
_Entries = tuple[CatchRule | RetryPolicy, ...]
_UNDO: Final = re.compile(r"(?i)^(?:cancel|undo|rollback|roll_back|compensate|refund|revert|release)")


def check_errors(subject: Subject) -> None:
    """Look at every task's retry and catch, and at what undoes its work."""
    for steps, index, step in subject.steps():
        if isinstance(step, TaskStep):
            _check_shadowed(subject, step)
            _check_names(subject, step)
            _check_pauses(subject, step)
            if subject.is_entered(steps, index):
                _check_swallowed(subject, steps, index, step)
    for steps in subject.flow.lists:
        _check_compensation(subject, steps)


def _check_shadowed(subject: Subject, step: TaskStep) -> None:
    kinds: tuple[tuple[str, str, _Entries], ...] = (
        ("catch", "catch-never-matches", step.catch),
        ("retry", "retry-never-applies", step.retry),
    )
    for attribute, rule, entries in kinds:
        before: set[str] = set()
        for number, entry in enumerate(entries):
            if before and (ALL_ERRORS in before or entry.errors <= before):
                span = subject.places.of_step(step.span, attribute, number, "errors")
                by = ALL_ERRORS if ALL_ERRORS in before else ", ".join(sorted(entry.errors))
                message = f"this never matches, because an earlier entry of `{attribute}` names {shown(by)}"
                subject.report(rule, span, message, f"put the entry with `{ALL_ERRORS}` last, or leave this one out")
            before |= entry.errors


def _check_names(subject: Subject, step: TaskStep) -> None:
    kinds: tuple[tuple[str, _Entries], ...] = (("catch", step.catch), ("retry", step.retry))
    for attribute, entries in kinds:
        for number, entry in enumerate(entries):
            for name in sorted(entry.errors):
                if hint := _doubt_of(name, step, is_alone=len(entry.errors) == 1):
                    span = subject.places.of_step(step.span, attribute, number, "errors")
                    subject.report("doubtful-error-name", span, f"no error is named {shown(name)} here", hint)


def _doubt_of(name: str, step: TaskStep, *, is_alone: bool) -> str | None:
    """Why no error of this step has that name, probably. A time-out among other names is a habit that harms nothing."""
    if name in SERVER_ERRORS:
        is_child = isinstance(step.target, FlowTarget) and step.pattern is Pattern.SYNC
        if name == TASK_TIMEOUT and is_alone and step.timeout_seconds is None and not is_child:
            return "a task without `timeoutSeconds` has no time-out; a function's own is `FC.Unknown`"
        return None
    if name.lower() in _ALL_ELSEWHERE:
        return f"names match exactly; `{ALL_ERRORS}` names all errors"
    if name == "FnF.ExecutionTimeout":
        return "nothing catches the end of the execution's time; a child that timed out is `FnF.TaskTimeout`"
    by_case = {known.lower(): known for known in SERVER_ERRORS}
    near = by_case.get(name.lower())
    if near is None and name.startswith(("FnF.", "FC.", "fnf.", "fc.")):
        near = next(iter(get_close_matches(name, SERVER_ERRORS, n=1, cutoff=_NEARLY)), None)
    return None if near is None else f"did you mean `{near}`?"


def _check_pauses(subject: Subject, step: TaskStep) -> None:
    for number, policy in enumerate(step.retry):
        has_none = min(policy.interval_seconds, policy.max_interval_seconds) == 0
        if has_none and policy.max_attempts > RETRIES_WITHOUT_PAUSE_MAX:
            span = subject.places.of_step(step.span, "retry", number)
            message = f"{policy.max_attempts} retries follow one another without a pause"
            subject.report("retry-without-pause", span, message, "set `intervalSeconds`, and `maxIntervalSeconds`")


def _check_swallowed(subject: Subject, steps: StepList, index: int, step: TaskStep) -> None:
    """A catch that leads where success leads, or to a bare `succeed`, and keeps nothing of the error."""
    if step.error_mappings:
        return
    arrows = list(arrows_from(steps, index))
    done = {arrow.end for arrow in arrows if arrow.way is Way.DONE}
    for arrow in arrows:
        if arrow.way is not Way.CAUGHT:
            continue
        goal = steps.steps[arrow.end]
        ends_well = isinstance(goal, SucceedStep) and not goal.output_mappings
        if arrow.end in done or ends_well:
            span = subject.places.of_step(step.span, "catch", arrow.number, "goto")
            after = "succeeds" if ends_well else "goes on"
            message = f"after {_names(step, arrow)} the flow {after} without a trace of the error"
            subject.report("swallowed-error", span, message, "keep it with errorMappings: `$local.error`")


def _names(step: TaskStep, arrow: Arrow) -> str:
    errors = sorted(step.catch[arrow.number].errors)
    return "any error" if ALL_ERRORS in errors else shown(", ".join(errors))


def _check_compensation(subject: Subject, steps: StepList) -> None:
    normal = _reached(steps, 0, lambda arrow: arrow.way is not Way.CAUGHT)
    caught = {
        arrow.end: arrow for index in sorted(normal) for arrow in arrows_from(steps, index) if arrow.way is Way.CAUGHT
    }
    if not caught:
        return
    _check_undo_on_success(subject, steps, normal, set(caught))
    undoing = {goal for goal in caught if goal not in normal and _undoes(steps, goal, normal)}
    after = _after_protected(steps, undoing)
    for index in sorted(normal):
        step = steps.steps[index]
        if not isinstance(step, TaskStep) or any(ALL_ERRORS in rule.errors for rule in step.catch):
            continue
        first = after.get(index)
        if first is not None and first != index and subject.is_entered(steps, index):
            goal = next(arrow.end for arrow in arrows_from(steps, first) if arrow.end in undoing)
            undo, before = steps.steps[goal], steps.steps[first]
            message = f"if {shown(step.name)} fails, {shown(undo.name)} does not run, although {shown(before.name)} has"
            path = (
                subject.path_step(before, "is done"),
                subject.path_step(step, "fails with an error that nothing catches"),
                subject.path_step(undo, "does not run"),
            )
            hint = f"add a catch for `{ALL_ERRORS}` that leads to the steps that undo the work"
            subject.report("compensation-skipped", subject.places.name_of(step.span), message, hint, path)


def _undoes(steps: StepList, goal: int, normal: set[int]) -> bool:
    """Whether a task follows a catch: work that undoes, or reports the error, rather than just an end."""
    return isinstance(steps.steps[goal], TaskStep) or any(
        isinstance(steps.steps[arrow.end], TaskStep) and arrow.end not in normal
        for arrow in arrows_from(steps, goal)
        if arrow.end != LEAVE
    )


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
    for index in sorted(normal & caught):
        step = steps.steps[index]
        before = steps.steps[index - 1] if index else None
        falls_in = before is not None and index - 1 in normal and not before.end and _goes_to(steps, index - 1, index)
        if isinstance(step, TaskStep) and falls_in and undoes_by_name(step):
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
    return _UNDO.match(step.name) is not None or _UNDO.match(function) is not None


def _goes_to(steps: StepList, index: int, goal: int) -> bool:
    return any(arrow.end == goal and arrow.way is Way.DONE for arrow in arrows_from(steps, index))


def _reached(steps: StepList, start: int, follows: Callable[[Arrow], bool]) -> set[int]:
    found = {start}
    todo = [start]
    for index in todo:
        for arrow in arrows_from(steps, index):
            if follows(arrow) and arrow.end != LEAVE and arrow.end not in found:
                found.add(arrow.end)
                todo.append(arrow.end)
    return found
