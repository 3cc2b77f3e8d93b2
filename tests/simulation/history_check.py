"""Checks that the rows follow from the stored history: the events of an execution and its scopes, folded."""

from collections.abc import Sequence

from flowserver.base.json_values import JsonObject, load_json_object
from flowserver.machine.events import Event, EventType
from flowserver.machine.state import Execution, Scope, Status, WaitKind
from tests.support.invariants import ENDS, History

BEGINNINGS = (
    EventType.EXECUTION_STARTED,
    EventType.EXECUTION_REDRIVEN,
    EventType.BRANCH_ENTERED,
    EventType.ITERATION_ENTERED,
)
WAITS = {
    EventType.TASK_STARTED: {WaitKind.TASK},
    EventType.TASK_SUBMITTED: {WaitKind.TOKEN, WaitKind.CHILD},
    EventType.TASK_FAILED: {WaitKind.TIMER},
    EventType.TASK_TIMED_OUT: {WaitKind.TIMER},
    EventType.TASK_SUBMIT_FAILED: {WaitKind.TIMER},
    EventType.STEP_STARTED: {WaitKind.TIMER, WaitKind.JOIN},
    EventType.STEP_WAITING_FOR_REDRIVE: {WaitKind.REDRIVE},
    EventType.BRANCH_ENTERED: {WaitKind.JOIN},
    EventType.BRANCH_EXITED: {WaitKind.JOIN},
    EventType.ITERATION_ENTERED: {WaitKind.JOIN},
    EventType.ITERATION_EXITED: {WaitKind.JOIN},
}
"""The wait of a scope whose step is under way, by its last event."""


def check_history(execution: Execution, events: Sequence[Event]) -> None:
    """Check that the rows follow from the history; raises AssertionError. `execution` is the execution as stored."""
    history = History()
    history.add(events)
    assert execution.next_event_id == len(events) + 1
    assert execution.started_at == events[0].time_ms
    check_header(execution, events[-1])
    under_way = [
        scope for scope in execution.scopes.values() if scope.step_input is not None or scope.wait is WaitKind.REDRIVE
    ]
    entered = {scope.entered_event_id for scope in under_way}
    if execution.is_running:
        assert _open_steps(history, entered) == entered, "steps under way and open steps differ"
    for scope in execution.scopes.values():
        if scope.step_input is not None:
            _check_step(scope, events)
        else:
            _check_between_steps(scope, events, is_redriven=execution.redrive_count > 0)


def _open_steps(history: History, entered: set[int]) -> set[int]:
    """The open steps according to the history. A call that a redrive repeats is filed under its first entry."""
    steps = [event for event in history.still_open.values() if event.type is EventType.STEP_ENTERED]
    return {
        each.event_id if each.event_id in entered else _detail(each).get("resumes", each.event_id) for each in steps
    }


def check_header(execution: Execution, last: Event) -> None:
    """The header agrees with the last event."""
    assert execution.status is ENDS.get(last.type, Status.RUNNING), "the last event and the status differ"
    if execution.is_running:
        return
    detail = _detail(last)
    assert execution.stopped_at == last.time_ms
    assert execution.output == detail.get("output")
    assert (execution.error, execution.cause) == (detail.get("error"), detail.get("cause"))


def _check_step(scope: Scope, events: Sequence[Event]) -> None:
    entered, started, last = (events[number - 1] for number in (*_first_two(scope), scope.last_event_id))
    assert (entered.type, started.type) == (EventType.STEP_ENTERED, EventType.STEP_STARTED)
    assert _detail(entered)["local"] == scope.local
    assert _detail(started)["input"] == scope.step_input
    assert scope.wait in WAITS[last.type], f"{scope} after {last}"
    retry = _detail(last).get("retry")
    if retry is not None:
        assert scope.wake_at == last.time_ms + round(retry["pauseSeconds"] * 1000)
    if scope.wait not in (WaitKind.JOIN, WaitKind.REDRIVE):
        assert sum(scope.retries.values()) == _retries(scope, events)


def _first_two(scope: Scope) -> tuple[int, int]:
    return scope.entered_event_id, scope.started_event_id


def _retries(scope: Scope, events: Sequence[Event]) -> int:
    """The number of failed attempts between the step's entry, or its last redrive, and the scope's last event."""
    count, number = 0, scope.last_event_id
    while events[number - 1].type not in (EventType.STEP_STARTED, EventType.STEP_WAITING_FOR_REDRIVE):
        event = events[number - 1]
        count += event.type in (EventType.TASK_FAILED, EventType.TASK_TIMED_OUT, EventType.TASK_SUBMIT_FAILED)
        number = event.schedule_event_id
    return count


def _check_between_steps(scope: Scope, events: Sequence[Event], *, is_redriven: bool) -> None:
    """A list between two steps: at its start, after a step, or where a redrive resumes it."""
    last = events[scope.last_event_id - 1]
    if scope.wait is WaitKind.REDRIVE:
        assert last.type is EventType.STEP_WAITING_FOR_REDRIVE, f"{scope} after {last}"
        return
    assert scope.wait is WaitKind.READY, f"{scope} waits outside a step"
    if last.type is EventType.STEP_EXITED:
        assert _detail(last)["local"] == scope.local
    else:
        assert last.type in BEGINNINGS or last.type is EventType.STEP_STARTED, f"{scope} after {last}"
        assert scope.local == {} or is_redriven


def _detail(event: Event) -> JsonObject:
    return load_json_object(event.detail)
