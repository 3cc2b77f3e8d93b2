"""The steps that an execution is at, each with what it waits for; read from its scopes alone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from threading import Lock
from typing import Final

from sqlalchemy import Connection

from flowserver.base.derived_ids import child_execution_id
from flowserver.engine.engine import Engine
from flowserver.language.graph import Flow, FlowTarget, Pattern, Step, TaskStep
from flowserver.machine.state import Execution, Scope, Status, WaitKind
from flowserver.machine.step_paths import open_steps
from flowserver.operations.callers import Sees, sees_all
from flowserver.operations.sub_flows import caller_of, child_by_id, child_of, last_failure, last_wait
from flowserver.store.definition_cache import DefinitionCache, DefinitionUnusable
from flowserver.store.executions.history import time_of
from flowserver.store.executions.loading import read_header
from flowserver.store.executions.lookups import definition_of, find_paths
from flowserver.store.executions.shown_executions import ExecutionRow
from flowserver.store.executions.shown_scopes import read_kept, read_live

SHOWN_MAX: Final = 100
"""Steps that are named; all are counted."""


class Standing(StrEnum):
    """What a step does at the moment."""

    RUNNING = "Running"
    """Its call is made, or the next turn goes on with it."""
    WAITING = "Waiting"
    """A `wait` step."""
    RETRYING = "Retrying"
    """It pauses before its next attempt."""
    WAITING_FOR_TOKEN = "WaitingForToken"  # noqa: S105 - a status, no secret
    """A `waitForCallback` step, for a report with its task token."""
    WAITING_FOR_SUB_FLOW = "WaitingForSubFlow"
    WAITING_FOR_INVOCATION = "WaitingForInvocation"
    """For the end of an asynchronous invocation."""
    WAITING_FOR_REDRIVE = "WaitingForRedrive"
    FAILED = "Failed"
    """The execution has ended, because of this step or while it waited for a redrive."""
    ABORTED = "Aborted"
    """The execution has ended, and this step was under way."""


@dataclass(frozen=True, slots=True)
class CurrentStep:
    """A step that an execution is at. Instants in ms."""

    path: str
    """`pack[17].label`."""
    standing: Standing
    since: int | None
    """When it was entered, or failed, if it waits for a redrive."""
    until: int | None
    """The end of its wait or pause, or of its attempt's time; None if it has none, or the execution has ended."""
    attempts: int
    """Calls of a task that were made so far."""
    child: str | None = None
    """FLOW/NAME of the execution of a sub-flow that it waits for, or by which it has failed."""


@dataclass(frozen=True, slots=True)
class CurrentSteps:
    """The first `SHOWN_MAX` of the steps, those that failed first, and how many there are."""

    count: int
    steps: Sequence[CurrentStep]
    parent: str | None = None
    """FLOW/NAME of the execution that gets the result of this one; None if none does, or if it is gone."""


NOWHERE: Final = CurrentSteps(0, ())


class CurrentStepOperations:
    """Finds the steps that executions are at."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._definitions = DefinitionCache()
        self._lock = Lock()

    async def find(self, row: ExecutionRow, *, sees: Sees = sees_all) -> CurrentSteps:
        """The steps of a running execution, or at which it ended without success; none after a success.

        Executions of flows that the caller does not see are not named.
        """
        found = await self._engine.slow_reads.ask(lambda connection: self._find(connection, row))
        steps = [each if _is_seen(each.child, sees) else replace(each, child=None) for each in found.steps]
        return replace(found, steps=steps, parent=found.parent if _is_seen(found.parent, sees) else None)

    def _find(self, connection: Connection, row: ExecutionRow) -> CurrentSteps:
        return replace(self._steps(connection, row), parent=self._parent(connection, row.execution_id))

    def _parent(self, connection: Connection, execution_id: str) -> str | None:
        stored = read_header(connection, execution_id)
        if stored is None or stored.execution.callback_token is None:
            return None
        caller = caller_of(connection, stored.execution.callback_token, self._engine.tokens)
        return None if caller is None else f"{caller.flow_name}/{caller.name}"

    def _steps(self, connection: Connection, row: ExecutionRow) -> CurrentSteps:
        if row.status is Status.SUCCEEDED:
            return NOWHERE
        definition_id = definition_of(connection, row.execution_id)
        is_running = row.status is Status.RUNNING
        scopes = (read_live if is_running else read_kept)(connection, row.execution_id)
        if definition_id is None or not scopes:
            return NOWHERE
        try:
            with self._lock:  # slow reads have several threads
                flow = self._definitions.get(connection, definition_id)
            found = list(_open_steps(flow, row, scopes))
        except (DefinitionUnusable, LookupError):
            return NOWHERE  # what is damaged is parked, and shown as that
        found.sort(key=lambda each: not _has_failed(each[0]))
        shown = [_current(connection, flow, row, scope, path) for scope, path in found[:SHOWN_MAX]]
        return CurrentSteps(len(found), shown)


def _is_seen(path: str | None, sees: Sees) -> bool:
    return path is None or sees(path.partition("/")[0])


def _open_steps(flow: Flow, row: ExecutionRow, scopes: Sequence[Scope]) -> Iterator[tuple[Scope, str]]:
    execution = Execution(row.execution_id, row.flow_name, row.name, {}, row.started_at, 0)
    execution.scopes = {scope.scope_id: scope for scope in scopes}
    return ((scope, path) for scope, path in open_steps(flow, execution) if path)


def _has_failed(scope: Scope) -> bool:
    return scope.has_failed or scope.wait is WaitKind.REDRIVE


def _current(connection: Connection, flow: Flow, row: ExecutionRow, scope: Scope, path: str) -> CurrentStep:
    is_running = row.status is Status.RUNNING
    began = scope.last_event_id if scope.wait is WaitKind.REDRIVE else scope.entered_event_id
    return CurrentStep(
        path,
        _standing(flow, scope) if is_running else Standing.FAILED if scope.has_failed else Standing.ABORTED,
        time_of(connection, row.execution_id, began) if began else row.started_at,
        scope.wake_at,
        scope.attempt,
        _child(connection, flow, row, scope, path),
    )


def _child(connection: Connection, flow: Flow, row: ExecutionRow, scope: Scope, path: str) -> str | None:
    step = _step_of(flow, scope)
    if not isinstance(step, TaskStep) or not isinstance(step.target, FlowTarget):
        return None
    if scope.child_wait is not None:
        child_id = child_execution_id(row.execution_id, scope.scope_id, scope.child_wait)
        return find_paths(connection, [child_id]).get(child_id)
    event_id, wait_id = scope.last_event_id, scope.wait_id
    if row.status is not Status.RUNNING:
        is_certain = row.status is Status.FAILED or "[" not in path  # else several steps of that name have failed
        if not scope.has_failed or not is_certain:
            return None
        event_id = last_failure(connection, row.execution_id, step.name, scope.entered_event_id)
        wait_id = last_wait(connection, row.execution_id)
    elif scope.wait not in (WaitKind.CHILD, WaitKind.REDRIVE):
        return None
    child = child_of(connection, row.execution_id, event_id)
    return child or child_by_id(connection, row.execution_id, scope.scope_id, wait_id)


def _step_of(flow: Flow, scope: Scope) -> Step | None:
    return next(iter(flow.lists[scope.list_id].steps[scope.step_index : scope.step_index + 1]), None)


def _standing(flow: Flow, scope: Scope) -> Standing:
    step = _step_of(flow, scope)
    match scope.wait:
        case WaitKind.TIMER:
            return Standing.RETRYING if isinstance(step, TaskStep) else Standing.WAITING
        case WaitKind.TOKEN:
            is_callback = isinstance(step, TaskStep) and step.pattern is Pattern.WAIT_FOR_CALLBACK
            return Standing.WAITING_FOR_TOKEN if is_callback else Standing.WAITING_FOR_INVOCATION
        case WaitKind.CHILD:
            return Standing.WAITING_FOR_SUB_FLOW
        case WaitKind.REDRIVE:
            return Standing.WAITING_FOR_REDRIVE
    return Standing.RUNNING
