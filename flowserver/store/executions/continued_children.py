"""The executions that a redrive of their parent continues, or why it cannot: one look for the plan and for the redrive.

A step that waits for its sub-flow knows the execution by the wait that started it (`Scope.child_wait`). The redrive's
transaction clears that number where nothing can be continued; the step then starts a new execution.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, func, select

from flowserver.base.derived_ids import child_execution_id
from flowserver.base.limits import Limits
from flowserver.machine.state import Execution, Scope, Status, WaitKind
from flowserver.store.executions.loading import likely_status
from flowserver.store.executions.redrive_refusals import EVENTS_PER_SCOPE
from flowserver.store.executions.retention import HIDDEN
from flowserver.store.schema.tables import executions, flows, kept_scopes
from flowserver.store.sql.list_parameter import among, texts
from flowserver.store.sql.prepared import fetch_rows


class EarlierChild(NamedTuple):
    """The execution that the last attempt of a step waited for."""

    execution_id: str
    path: str
    """FLOW/NAME; "" if it is gone."""
    status: Status | None
    why_not: str | None
    """Why a redrive of the parent cannot continue it; None if it can."""


def earlier_children(connection: Connection, execution: Execution, limits: Limits) -> dict[int, EarlierChild]:
    """The executions of the steps that a redrive of this execution runs again, by scope id."""
    ids = {
        scope.scope_id: _id_of(execution, scope)
        for scope in execution.scopes.values()
        if _is_redriven(execution, scope)
    }
    if not ids:
        return {}
    found = fetch_rows(connection, _FIND, {"ids": texts(connection, sorted(ids.values()))})
    rows = {row.execution_id: row for row in found}
    return {scope_id: _child(each, rows.get(each), execution, limits) for scope_id, each in ids.items()}


def choose_children(connection: Connection, execution: Execution, limits: Limits, *, anew: bool) -> None:
    """Clear `child_wait` of the scopes whose steps are to start a new execution: all of them if `anew`."""
    found: Mapping[int, EarlierChild] = {} if anew else earlier_children(connection, execution, limits)
    for scope in execution.scopes.values():
        if not _is_redriven(execution, scope):
            continue
        if anew or found[scope.scope_id].why_not is not None:
            scope.child_wait = None
        else:
            scope.continued_child = found[scope.scope_id].path


def _is_redriven(execution: Execution, scope: Scope) -> bool:
    """Whether the step of a scope waited for its sub-flow, and is redriven with the execution."""
    return scope.child_wait is not None and (not execution.is_running or scope.wait is WaitKind.REDRIVE)


def _id_of(execution: Execution, scope: Scope) -> str:
    return child_execution_id(execution.execution_id, scope.scope_id, scope.child_wait or 0)


def _child(execution_id: str, row: Any, parent: Execution, limits: Limits) -> EarlierChild:
    if row is None:
        return EarlierChild(execution_id, "", None, "it was never started, or is deleted")
    status = likely_status(row.status, row.stopped_at)
    return EarlierChild(execution_id, f"{row.flow_name}/{row.name}", status, _why_not(row, status, parent, limits))


def _why_not(row: Any, status: Status, parent: Execution, limits: Limits) -> str | None:
    if row.parent_wait is None or row.parent_id != parent.execution_id:
        return "its life cycle is independent of this execution"
    if row.flow_id == HIDDEN or row.flow_name is None or row.flow_deleted:
        return "it is being deleted"
    if status is Status.SUCCEEDED:
        return None
    if status is Status.RUNNING:
        return None if row.parked_error is None else "it is parked"
    if not row.kept and row.next_scope_id > 1:
        return "its state was not kept: its history is full, or it ended under an earlier version of this server"
    if row.next_event_id + EVENTS_PER_SCOPE * max(1, row.kept) >= limits.events_max:
        return f"its history has no room: {row.next_event_id - 1} events of events_max, {limits.events_max}"
    return None


_KEPT = (
    select(func.count())
    .select_from(kept_scopes)
    .where(kept_scopes.c.execution_id == executions.c.execution_id)
    .scalar_subquery()
)
_FIND = (
    select(
        executions.c.execution_id,
        executions.c.flow_id,
        executions.c.flow_name,
        executions.c.name,
        executions.c.status,
        executions.c.stopped_at,
        executions.c.next_event_id,
        executions.c.next_scope_id,
        executions.c.parent_id,
        executions.c.parent_wait,
        executions.c.parked_error,
        flows.c.deleted_at.is_not(None).label("flow_deleted"),
        _KEPT.label("kept"),
    )
    .join(flows, flows.c.flow_id == executions.c.flow_id, isouter=True)
    .where(among(executions.c.execution_id, bindparam("ids")))
)
