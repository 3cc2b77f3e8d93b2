"""The rules that hold after every turn, for every flow and every message.

A `Watch` follows one execution from its start and maintains its rows as the store would, from touched and removed
scopes alone. So it detects a change that a turn did not announce, and can return the execution as a reload would.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, cast

from flowserver.base.json_values import dump_json, json_bytes, load_stored_json, text_bytes
from flowserver.machine.commands import CancelInvocation, InvokeTask, ReportCallback
from flowserver.machine.events import Event, EventType
from flowserver.machine.state import Execution, Finished, Scope, Status, WaitKind
from flowserver.machine.turn import OutcomeKind, Turn
from flowserver.store.executions.kept_scopes import kept_row, kept_scope
from flowserver.store.executions.loading import _scope
from flowserver.store.executions.saving import _scope_row

ENTERED = {EventType.STEP_ENTERED, EventType.BRANCH_ENTERED, EventType.ITERATION_ENTERED}
EXITED = {
    EventType.STEP_EXITED: EventType.STEP_ENTERED,
    EventType.BRANCH_EXITED: EventType.BRANCH_ENTERED,
    EventType.ITERATION_EXITED: EventType.ITERATION_ENTERED,
}
ENDS = {EventType(f"Execution{status}"): status for status in Status if status is not Status.RUNNING}
TIMED = {WaitKind.TIMER, WaitKind.TASK, WaitKind.TOKEN, WaitKind.CHILD}
NUMBERED = {*TIMED, WaitKind.JOIN, WaitKind.REDRIVE}

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Open:
    """An entered step that is still open at an event; the innermost comes first."""

    entered: Event
    outer: "Open | None"


class History:
    """The events of one execution from the first on: dense ids, causes before effects, each exit
    closes an open entry.
    """

    def __init__(self) -> None:
        self.open: list[Open | None] = [None]
        """By event id, the open entries at that event."""
        self.still_open: dict[int, Event] = {}

    def add(self, events: Sequence[Event]) -> None:
        """Add the next events; raises AssertionError."""
        for event in events:
            assert event.event_id == len(self.open), "event ids have a gap"
            assert event.schedule_event_id < event.event_id, "an event is caused by a later one"
            assert (event.schedule_event_id == 0) == (event.event_id == 1)
            self.open.append(self._open_after(event))

    def _open_after(self, event: Event) -> Open | None:
        """Follow entries and exits along the chain of causes: each exit must close the last entry."""
        before = self.open[event.schedule_event_id]
        if event.type is EventType.EXECUTION_REDRIVEN:
            if '"waitingSteps"' not in event.detail:
                self.still_open.clear()  # an unfinished step is entered again
            return None
        if event.type in ENTERED:
            self.still_open[event.event_id] = event
            return Open(event, before)
        if event.type not in EXITED:
            return before
        assert before is not None, f"{event} exits a step that was not entered"
        assert before.entered.type is EXITED[event.type], f"{event} exits {before.entered}"
        assert before.entered.step_name == event.step_name, f"{event} exits {before.entered}"
        assert self.still_open.pop(before.entered.event_id, None), f"{before.entered} is exited twice"
        return before.outer


class Watch:
    """Checks every turn of one execution against the state known from earlier turns."""

    def __init__(self) -> None:
        self.rows: dict[int, Row] = {}
        self._finished: dict[int, dict[int, str]] = {}
        """By scope id, the finished items that are stored."""
        self._header = (1, 1, 1)
        self._history = History()

    def check(self, execution: Execution, turn: Turn, *, deeply: bool = True) -> None:
        """Check a turn. `deeply` also checks every scope that the turn reports as unchanged."""
        if turn.outcome.kind is not OutcomeKind.APPLIED:
            changed = turn.touched | turn.removed | turn.joined | turn.finished.keys()
            assert not (turn.events or turn.commands or changed), "a turn without effect has changes"
            assert _counters(execution) == self._header
        self._check_events(execution, turn.events)
        self._check_rows(execution, turn)
        self._check_counters(execution)
        if deeply:
            check_document_bytes(execution)
            assert self.reloaded(execution) == execution, "a change was not announced"
            for scope in execution.scopes.values():
                check_wait(execution, scope)
        _check_commands(execution, turn)
        if turn.more:
            assert turn.wanted <= execution.scopes.keys()
            assert any(scope.wait is WaitKind.READY for scope in execution.scopes.values())
        if not execution.is_running:
            check_end(execution, self._history)

    def reloaded(self, execution: Execution) -> Execution:
        """The execution as loaded from its rows."""
        scopes = {scope_id: _scope(cast(Any, SimpleNamespace(**self.rows[scope_id]))) for scope_id in sorted(self.rows)}
        return replace(execution, scopes=scopes)

    def forget_finished(self, execution: Execution) -> None:
        """Keep in memory only what a load would return."""
        for scope in execution.scopes.values():
            scope.finished = {}

    def redrive(self, execution: Execution) -> None:
        """Restore the kept state of the execution, as a load would."""
        self._finished = {
            scope_id: {item: dump_json(each.local) for item, each in scope.finished.items()}
            for scope_id, scope in execution.kept.items()
            if scope.finished
        }
        rows = {scope_id: kept_row(execution, execution.kept[scope_id]) for scope_id in sorted(execution.kept)}
        execution.scopes = {key: kept_scope(SimpleNamespace(**row)) for key, row in rows.items()}
        for scope_id, scope in execution.scopes.items():
            scope.finished = dict(execution.kept[scope_id].finished)
        execution.document_bytes, execution.kept = execution.kept_bytes, {}
        execution._finished_count = execution._opened = None

    def load_finished(self, execution: Execution, scope_id: int) -> None:
        """Load what a turn has requested."""
        scope = execution.scopes[scope_id]
        assert not scope.has_all_finished, "items in memory are requested"
        scope.finished = {item: _finished(text) for item, text in self._finished[scope_id].items()}
        assert scope.has_all_finished

    def _check_events(self, execution: Execution, events: Sequence[Event]) -> None:
        self._history.add(events)
        assert execution.next_event_id == len(self._history.open)

    def _check_rows(self, execution: Execution, turn: Turn) -> None:
        assert not turn.touched & turn.removed
        for scope_id in turn.removed:
            assert scope_id not in execution.scopes
            del self.rows[scope_id]
        for scope_id in turn.touched:
            row = _scope_row(execution, execution.scopes[scope_id], "node")
            assert row != self.rows.get(scope_id), f"scope {scope_id} is touched but not changed"
            self.rows[scope_id] = row
        assert self.rows.keys() == execution.scopes.keys()
        self._check_finished(execution, turn)

    def _check_finished(self, execution: Execution, turn: Turn) -> None:
        for scope_id in turn.joined:
            self._finished.pop(scope_id, None)
        for scope_id, items in turn.finished.items():
            stored = self._finished.setdefault(scope_id, {})
            for item in items:
                assert item not in stored, "an item finished twice"
                stored[item] = dump_json(execution.scopes[scope_id].finished[item].local)
        if not execution.is_running:
            self._finished.clear()
        counts = {scope_id: len(stored) for scope_id, stored in self._finished.items()}
        assert counts == _finished_counts(execution), "the items that joins wait for differ from the stored ones"
        assert sum(counts.values()) == execution.finished_count or not execution.is_running
        for scope_id, stored in self._finished.items():
            for item, finished in execution.scopes[scope_id].finished.items():
                assert _finished(stored[item]) == finished

    def _check_counters(self, execution: Execution) -> None:
        self._header = check_counters(execution, self._header)


def check_counters(execution: Execution, before: tuple[int, int, int]) -> tuple[int, int, int]:
    """Ids only rise and none is used twice; returns the counters for the next check."""
    counters = _counters(execution)
    assert all(new >= old for new, old in zip(counters, before, strict=True))
    waits = [scope.wait_id for scope in execution.scopes.values() if scope.wait in NUMBERED]
    assert len(set(waits)) == len(waits), "two scopes wait under one id"
    assert all(wait_id < execution.next_wait_id for wait_id in waits)
    assert all(scope_id < execution.next_scope_id for scope_id in execution.scopes)
    waiting = sum(scope.wait is WaitKind.REDRIVE for scope in execution.scopes.values())
    assert waiting == (execution.waiting_steps or 0), "the count of steps that wait for a redrive is wrong"
    return counters


def check_document_bytes(execution: Execution) -> None:
    """The change in counted document bytes equals the change in the measured sum."""
    for scope in execution.scopes.values():
        step_bytes = 0 if scope.step_input is None else json_bytes(scope.step_input)
        assert scope.document_bytes == json_bytes(scope.local) + step_bytes, f"{scope} is counted wrongly"
        assert all(each.document_bytes == json_bytes(each.local) for each in scope.finished.values())
    in_memory = [scope for scope in execution.scopes.values() if scope.wait is WaitKind.JOIN]
    finished = sum(each.document_bytes for scope in in_memory for each in scope.finished.values())
    together = finished + sum(scope.document_bytes for scope in execution.scopes.values())
    if all(scope.has_all_finished for scope in in_memory):
        assert execution.document_bytes == together
    else:
        assert execution.document_bytes > together


def check_end(execution: Execution, history: History) -> None:
    """An ended execution has no open steps and no scopes."""
    assert execution.scopes == {}
    assert execution.stopped_at is not None
    assert (execution.output is not None) == (execution.status is Status.SUCCEEDED)
    assert (execution.error is None) == (execution.status is Status.SUCCEEDED)
    if execution.status in (Status.SUCCEEDED, Status.FAILED) and not _used_up(execution):
        assert history.still_open == {}, "entered and never exited"


def _finished(text: str) -> Finished:
    return Finished(load_stored_json(text), text_bytes(text))


def _finished_counts(execution: Execution) -> dict[int, int]:
    """By scope id, the number of finished items that its join waits with."""
    joining = [scope for scope in execution.scopes.values() if scope.wait is WaitKind.JOIN]
    counts = {scope.scope_id: scope.next_item - scope.open_items for scope in joining}
    return {scope_id: count for scope_id, count in counts.items() if count}


def _counters(execution: Execution) -> tuple[int, int, int]:
    return execution.next_event_id, execution.next_scope_id, execution.next_wait_id


def _used_up(execution: Execution) -> bool:
    return "used up its" in (execution.cause or "")


def check_wait(execution: Execution, scope: Scope) -> None:
    """The scope has exactly one reason to continue."""
    children = [child for child in execution.scopes.values() if child.parent_id == scope.scope_id]
    assert bool(children) == (scope.wait is WaitKind.JOIN), "only a join waits for open children"
    assert scope.wait is not WaitKind.JOIN or scope.option is not None or scope.open_items == len(children)
    assert (scope.wake_at is None) or scope.wait in TIMED
    assert scope.wait is not WaitKind.TIMER or scope.wake_at is not None
    assert scope.wait not in NUMBERED or scope.wait_id > 0
    assert scope.wait not in NUMBERED or scope.step_input is not None or scope.wait is WaitKind.REDRIVE
    assert scope.wait is not WaitKind.DONE, "a finished scope is kept"
    if scope.wait is WaitKind.READY:
        assert scope.step_input is None


def _check_commands(execution: Execution, turn: Turn) -> None:
    """Calls are ordered for current waits, and cancelled for waits that are over."""
    calls = [command for command in turn.commands if isinstance(command, InvokeTask)]
    cancelled = [(each.scope_id, each.wait_id) for each in turn.commands if isinstance(each, CancelInvocation)]
    waiting = {(each.scope_id, each.wait_id) for each in execution.scopes.values() if each.wait is WaitKind.TASK}
    ordered = {(call.scope_id, call.wait_id) for call in calls}
    assert len(ordered) == len(calls), "one call is ordered twice"
    assert len(set(cancelled)) == len(cancelled), "one call is cancelled twice"
    assert ordered <= waiting | set(cancelled)
    assert not waiting & set(cancelled)
    reports = [command for command in turn.commands if isinstance(command, ReportCallback)]
    ended = bool(turn.events) and turn.events[-1].type in ENDS
    assert len(reports) == int(ended and execution.callback_token is not None)
