"""Rules about errors: rules that never match, errors that leave no trace, retries by `goto`."""

import re
from difflib import get_close_matches
from itertools import islice
from typing import Final

from flowserver.analysis.subject import Subject
from flowserver.analysis.transient_errors import CALL_ERRORS, calls_a_function
from flowserver.analysis.ways import loops_of
from flowserver.language.arrows import Arrow, Way, arrows_from
from flowserver.language.diagnostics import shown
from flowserver.language.graph import (
    ActionTarget,
    CatchRule,
    FlowTarget,
    Pattern,
    RetryPolicy,
    StepList,
    SucceedStep,
    TaskStep,
)
from flowserver.machine.retry_and_catch import ALL_ERRORS, TASK_TIMEOUT

RETRIES_WITHOUT_PAUSE_MAX: Final = 10
"""A policy may make this many retries without a pause before that is found."""

LOOP_STEPS_SHOWN_MAX: Final = 20
"""Steps of a loop that a finding shows; there may be a thousand, and as many findings."""

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
    "FnF.SubFlowTooDeep",
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
_LIKE_A_TIMEOUT: Final = re.compile(r"(?:FnF|FC)\.\w*time_?out\w*|task_?timed?_?out", re.IGNORECASE)
_Entries = tuple[CatchRule | RetryPolicy, ...]
_UNCERTAIN: Final = frozenset({ALL_ERRORS, TASK_TIMEOUT, "FC.Unknown", "FC.InternalServerError", "FC.ServerError"})
"""Errors after which the function may have done its work."""


def check_errors(subject: Subject) -> None:
    """Look at every task's retry and catch."""
    for steps, index, step in subject.steps():
        if isinstance(step, TaskStep):
            _check_shadowed(subject, step)
            _check_names(subject, step)
            _check_pauses(subject, step)
            _check_transient(subject, step)
            if subject.is_entered(steps, index):
                _check_swallowed(subject, steps, index, step)
    for steps in subject.flow.lists:
        _check_retried_by_goto(subject, steps)


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
                    span = subject.places.of_text(step.span, attribute, number, "errors", text=name)
                    subject.report("doubtful-error-name", span, f"no error is named {shown(name)} here", hint)


def _doubt_of(name: str, step: TaskStep, *, is_alone: bool) -> str | None:
    """Why no error of this step has that name, probably. A time-out among other names is a habit that harms nothing."""
    if name in SERVER_ERRORS:
        is_child = isinstance(step.target, FlowTarget) and step.pattern is Pattern.SYNC
        if name == TASK_TIMEOUT and is_alone and step.timeout_seconds is None and not is_child:
            return "a task without `timeoutSeconds` has no time-out; a function's own is `FC.Unknown`"
        return None
    if isinstance(step.target, ActionTarget) and not name.startswith(("FC.", "FnF.", f"{step.target.service}.")):
        return f"the errors of this action begin with `{step.target.service}.`"
    if name.lower() in _ALL_ELSEWHERE:
        return f"names match exactly; `{ALL_ERRORS}` names all errors"
    if name == "FnF.ExecutionTimeout":
        return "nothing catches the end of the execution's time; a child that timed out is `FnF.TaskTimeout`"
    by_case = {known.lower(): known for known in SERVER_ERRORS}
    near = by_case.get(name.lower())
    if near is None and _LIKE_A_TIMEOUT.fullmatch(name):
        return f"a task's own time-out is `{TASK_TIMEOUT}`; a function that takes too long fails with `FC.Unknown`"
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


def _check_transient(subject: Subject, step: TaskStep) -> None:
    """Look for lists of transient errors that leave some out. A single error is no list."""
    entries: _Entries = (*step.retry, *step.catch)
    named = {name for entry in entries for name in entry.errors} - _all_of_catch(step)
    retried = {name for policy in step.retry if policy.max_attempts for name in policy.errors} & CALL_ERRORS.keys()
    missing = [name for name in CALL_ERRORS if name not in named and name != TASK_TIMEOUT]
    is_list = len(retried) > 1 and any(CALL_ERRORS[name].may_have_run for name in retried)
    if not is_list or not missing or ALL_ERRORS in named or not calls_a_function(step):
        return
    number = next(each for each, policy in enumerate(step.retry) if policy.errors & retried)
    span = subject.places.of_step(step.span, "retry", number, "errors")
    causes = "; ".join(f"{shown(name)} ({CALL_ERRORS[name].cause})" for name in missing)
    message = f"transient errors are retried, but not {causes}"
    subject.report("partial-retry", span, message, f"add {', '.join(map(shown, missing))}")


def _all_of_catch(step: TaskStep) -> set[str]:
    """`FnF.ALL`, unless a retry names it: a catch of all errors thinks of none."""
    return set() if any(ALL_ERRORS in policy.errors for policy in step.retry) else {ALL_ERRORS}


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


def _check_retried_by_goto(subject: Subject, steps: StepList) -> None:
    """A catch whose way leads back to the task, where success leaves it behind: a loop that only a failure goes on.

    A step leads back to the task if both are in one loop, since the task leads to it.
    """
    for loop in loops_of(steps):
        inside = set(loop)
        for index in loop:
            step, arrows = steps.steps[index], subject.arrows_of(steps)[index]
            goes_on = any(arrow.way is Way.DONE and arrow.end in inside for arrow in arrows)
            if not isinstance(step, TaskStep) or goes_on or not subject.is_entered(steps, index):
                continue
            for arrow in arrows:
                uncertain = arrow.way is Way.CAUGHT and step.catch[arrow.number].errors & _uncertain_of(step)
                if uncertain and arrow.end in inside:
                    _report_retried_by_goto(subject, steps, step, arrow, loop)


def _uncertain_of(step: TaskStep) -> frozenset[str]:
    """Its errors after which the work may be done. A callback that does not come in time is what reminders wait for."""
    return _UNCERTAIN - {TASK_TIMEOUT} if step.pattern is Pattern.WAIT_FOR_CALLBACK else _UNCERTAIN


def _report_retried_by_goto(subject: Subject, steps: StepList, step: TaskStep, arrow: Arrow, loop: list[int]) -> None:
    span = subject.places.of_step(step.span, "catch", arrow.number, "goto")
    message = f"after {_names(step, arrow)} {shown(step.name)} is entered again, with a new idempotency key"
    hint = "the call may have done its work: `retry` makes it again with the same key"
    others = (each for each in loop if each != arrow.start)
    shown_steps = (arrow.start, *islice(others, LOOP_STEPS_SHOWN_MAX - 1))
    path = tuple(subject.path_step(steps.steps[each], "is in the loop") for each in shown_steps)
    subject.report("retry-by-goto", span, message, hint, path)
