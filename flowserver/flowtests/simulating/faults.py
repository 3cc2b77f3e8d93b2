"""Faults of calls and reports: which can meet a call, and what they make of its answer.

A fault is addressed by step, entry and call, not by its place in a stream of random numbers. So a fault can be left out
and the others still mean the same: that is what makes a failure short.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from flowserver.base.durations import shown_duration
from flowserver.flowtests.calls import SUBMITTED, Answer, Ordered
from flowserver.flowtests.cases import Crash
from flowserver.flowtests.fault_names import FaultKind
from flowserver.language.graph import (
    ActionTarget,
    FlowTarget,
    FunctionTarget,
    Pattern,
    QueueTarget,
    TaskStep,
    TopicTarget,
)
from flowserver.machine.messages import Failure
from flowserver.machine.retry_and_catch import ALL_ERRORS, FAILED, INVALID_LOCAL, TASK_TIMEOUT, choose_retry
from flowserver.machine.service_params import failure_of_action

UNEXPECTED_ERROR: Final = "UnexpectedError"
FAULT_CAUSE: Final = "a fault of the simulation"
REJECTED: Final = "Rejected"
THROTTLED_ERROR: Final = "FC.ResourceThrottled"
SLOW_MS: Final = 600_000
"""How long a slow call takes if its step has no time-out."""
EARLY_MS: Final = 1_000
"""How long a call takes whose report comes before its answer."""
AGAIN_MS: Final = 1_000
"""When a report comes once more."""
RETRIES_MAX: Final = 20
"""Faults do not use up more retries than this: the run would be long, and no different."""
EACH_TIME: Final = 1_000_000
"""A fault that meets every call of an entry."""


class Place(NamedTuple):
    """One call: `execution` is "" for the case's own, `entry` and `call` count from 1."""

    execution: str
    path: str
    entry: int
    call: int


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault, which meets `times` calls of an entry, from that of `place` on; `detail` is an error or a moment."""

    kind: FaultKind
    place: Place
    detail: str = ""
    times: int = 1

    def meets(self, place: Place) -> bool:
        """Whether it meets the call."""
        mine = self.place
        return place[:3] == mine[:3] and mine.call <= place.call < mine.call + self.times


def faults_of(ordered: Ordered, place: Place, chosen: frozenset[FaultKind]) -> Iterator[Fault]:
    """The faults among those chosen that can meet a call; those of an error once, and as often as the step calls."""
    step, command = ordered.step, ordered.command
    for kind, detail in _kinds_of(ordered):
        if kind not in chosen:
            continue
        yield Fault(kind, place, detail)
        if kind in _REPEATING and 0 < _retries_of(step, detail or TASK_TIMEOUT) <= RETRIES_MAX:
            yield Fault(kind, place, detail, EACH_TIME)
    if FaultKind.CRASH in chosen and command.attempt == 1:
        yield Fault(FaultKind.CRASH, place, Crash.BEFORE)
        yield Fault(FaultKind.CRASH, place, Crash.AFTER)


def outage_after(fault: Fault, answers: Sequence[tuple[Ordered, Place, Answer]]) -> Fault | None:
    """The fault of a callee that is down for good, if it has failed once and is called again by another entry."""
    if fault.kind not in (FaultKind.SERVER_ERROR, FaultKind.TIMEOUT) or fault.times > 1:
        return None
    target = next((ordered.step.target for ordered, place, _ in answers if fault.meets(place)), None)
    calls = (place for ordered, place, _ in answers if ordered.step.target == target)
    is_again = any(place[:3] != fault.place[:3] for place in calls)
    return replace(fault, kind=FaultKind.OUTAGE) if is_again else None


_ERRORS: Final = frozenset({FaultKind.ERROR, FaultKind.UNEXPECTED, FaultKind.SERVER_ERROR, FaultKind.THROTTLED})
_REPEATING: Final = _ERRORS | {FaultKind.TIMEOUT, FaultKind.FAILED_CALLBACK}
_REPLACING: Final = _ERRORS | {FaultKind.INVALID, FaultKind.TIMEOUT, FaultKind.OUTAGE}


def _retries_of(step: TaskStep, error: str) -> int:
    number = choose_retry(step.retry, {}, error)
    return 0 if number is None else step.retry[number].max_attempts


def _kinds_of(ordered: Ordered) -> Iterator[tuple[FaultKind, str]]:
    step, command = ordered.step, ordered.command
    if command.asynchronous and command.token is None:
        return  # the server takes the submission, and its end concerns no step
    waits = command.pattern is Pattern.WAIT_FOR_CALLBACK
    named = list(_named(step))
    if not waits:
        yield from ((FaultKind.ERROR, name) for name in named)
    yield from _errors_of(ordered, has_result=not waits)
    if command.deadline_at is not None:
        yield FaultKind.TIMEOUT, ""
        yield (FaultKind.LATE_CALLBACK if waits else FaultKind.LATE), ""
    if not waits:
        yield FaultKind.SLOW, ""
        return
    yield from ((FaultKind.FAILED_CALLBACK, name) for name in named or [REJECTED])
    for kind in (FaultKind.MISSING_CALLBACK, FaultKind.EARLY_CALLBACK, FaultKind.DUPLICATE_CALLBACK):
        yield kind, ""


def _errors_of(ordered: Ordered, *, has_result: bool) -> Iterator[tuple[FaultKind, str]]:
    """The errors that the callee or its service answers, named by the step or not."""
    target = ordered.step.target
    if isinstance(target, FunctionTarget):
        if has_result:
            yield FaultKind.UNEXPECTED, UNEXPECTED_ERROR
            yield FaultKind.INVALID, INVALID_LOCAL
        yield FaultKind.THROTTLED, THROTTLED_ERROR
    if isinstance(target, FlowTarget) and ordered.command.pattern is Pattern.SYNC:
        yield FaultKind.UNEXPECTED, FAILED
    yield from ((FaultKind.SERVER_ERROR, name) for name in _server_errors(ordered.step))


def _named(step: TaskStep) -> Iterator[str]:
    """The errors that the step's rules name and a callee can answer."""
    names = {name for policy in step.retry for name in policy.errors}
    names |= {name for rule in step.catch for name in rule.errors}
    yield from sorted(names - {ALL_ERRORS, TASK_TIMEOUT})


def _server_errors(step: TaskStep) -> tuple[str, ...]:
    match step.target:
        case FunctionTarget():
            return "FC.InternalServerError", "FC.Unknown"
        case QueueTarget() | TopicTarget():
            return ("MNS.BrokerUnavailable",)
        case ActionTarget(service=service):
            return (f"{service}.InternalError",)
    return ()


def is_error(fault: Fault) -> bool:
    """Whether the events of a run show it: the attempt that it meets fails with its error."""
    return fault.kind in _ERRORS or fault.kind in (FaultKind.INVALID, FaultKind.FAILED_CALLBACK)


def is_plain(fault: Fault) -> bool:
    """Whether it is one error of one call."""
    return fault.kind in _ERRORS and fault.times == 1


def replaces(fault: Fault) -> bool:
    """Whether the callee does not get to answer what it would."""
    return fault.kind in _REPLACING or fault.detail == Crash.BEFORE


def replacement(fault: Fault, ordered: Ordered) -> Answer:
    """The answer of a fault that replaces the callee's."""
    command = ordered.command
    if fault.kind == FaultKind.CRASH:
        return Answer(crash=Crash.BEFORE)
    if fault.kind == FaultKind.TIMEOUT or not fault.detail:
        return Answer(SUBMITTED if command.token is not None and command.pattern is Pattern.SYNC else None)
    failure = Failure(fault.detail, FAULT_CAUSE)
    if isinstance(command.target, ActionTarget):
        failure = failure_of_action(failure, command.target.service)
    is_end = command.token is not None and command.pattern is Pattern.SYNC
    return Answer(SUBMITTED, report=failure) if is_end else Answer(failure)


def changed(fault: Fault, answer: Answer, ordered: Ordered) -> Answer:
    """The callee's answer with a fault that does not replace it."""
    deadline_at = ordered.command.deadline_at
    left_ms = SLOW_MS if deadline_at is None else deadline_at - ordered.now_ms
    match fault.kind:
        case FaultKind.SLOW:
            return _moved(answer, left_ms - (deadline_at is not None))
        case FaultKind.LATE | FaultKind.LATE_CALLBACK:
            return _moved(answer, left_ms + 1)
        case FaultKind.FAILED_CALLBACK:
            report = None if answer.report is None else Failure(fault.detail, FAULT_CAUSE)
            return replace(answer, report=report)
        case FaultKind.MISSING_CALLBACK:
            return replace(answer, report=None)
        case FaultKind.EARLY_CALLBACK:
            return replace(answer, reply_after_ms=answer.report_after_ms + EARLY_MS)
        case FaultKind.DUPLICATE_CALLBACK:
            return replace(answer, again_after_ms=answer.report_after_ms + AGAIN_MS)
    assert fault.kind == FaultKind.CRASH, fault.kind
    return replace(answer, crash=Crash.AFTER)


def _moved(answer: Answer, after_ms: int) -> Answer:
    """The answer with its end, a report if there is one, at another instant."""
    if answer.report is not None:
        return replace(answer, report_after_ms=max(after_ms, answer.report_after_ms))
    return replace(answer, reply_after_ms=max(after_ms, answer.reply_after_ms))


def title_of(fault: Fault) -> str:
    """What it does, for the story of a run."""
    often = "" if fault.times == 1 else " each time" if fault.times >= EACH_TIME else f" {fault.times} times"
    match fault.kind:
        case FaultKind.OUTAGE:
            return (
                "is called, and from now on does not answer"
                if not fault.detail
                else "is called, and is down from now on"
            )
        case FaultKind.TIMEOUT:
            return f"does not answer{often}"
        case FaultKind.SLOW:
            return "answers just before its time is up"
        case FaultKind.LATE | FaultKind.LATE_CALLBACK:
            return "is answered just after its time is up"
        case FaultKind.MISSING_CALLBACK:
            return "gets no report"
        case FaultKind.FAILED_CALLBACK:
            return f"is reported to have failed with {fault.detail}{often}"
        case FaultKind.EARLY_CALLBACK:
            return f"gets its report {shown_duration(EARLY_MS)} before the call is answered"
        case FaultKind.DUPLICATE_CALLBACK:
            return "gets its report twice"
        case FaultKind.CRASH if fault.detail == Crash.BEFORE:
            return "is ordered, and the node crashes before it makes the call"
        case FaultKind.CRASH:
            return "is called, and the node crashes before the result is committed"
    return f"fails with {fault.detail}{often}"
