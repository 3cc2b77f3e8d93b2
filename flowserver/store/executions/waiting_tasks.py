"""Tasks that wait for a report with their token, oldest execution first.

They have no index of their own, which every submission would have to write. A page reads at most SCANNED_MAX scopes by
their key and may therefore be short, or empty, and have a next page all the same.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, and_, bindparam, select, tuple_

from flowserver.machine.state import Status, WaitKind
from flowserver.store.executions.history import scan_history
from flowserver.store.schema.tables import executions, scopes
from flowserver.store.sql.list_parameter import among, texts
from flowserver.store.sql.unreadable import is_text

SCANNED_MAX: Final = 5_000
"""Scopes that a page reads: key and state, which takes some milliseconds."""

LOOKED_UP_MAX: Final = 1_000
"""Tasks of a page whose entry is looked up in the history, which takes longer than all else."""

EXECUTIONS_AT_ONCE: Final = 100
"""Headers that are read together."""

_SCOPE: Final = (scopes.c.execution_id, scopes.c.scope_id, scopes.c.entered_event_id, scopes.c.wake_at)
_HEADER: Final = (executions.c.execution_id, executions.c.flow_name, executions.c.name, executions.c.started_at)


class ScopeKey(NamedTuple):
    """Where a page ended."""

    execution_id: str
    scope_id: int


@dataclass(frozen=True, slots=True)
class WaitingTask:
    """A task that waits. Instants in ms; `due_at` is when its attempt times out, None if never."""

    key: ScopeKey
    entered_event_id: int
    flow_name: str
    execution_name: str
    step_name: str
    entered_at: int
    due_at: int | None


@dataclass(frozen=True, slots=True)
class WaitingPage:
    """A page; `last` is where the next one begins, None after the last."""

    tasks: Sequence[WaitingTask]
    last: ScopeKey | None


def list_waiting_tasks(
    connection: Connection,
    flow_name: str | None,
    entered_before: int | None,
    after: ScopeKey,
    limit: int,
    *,
    execution_id: str | None = None,
    flow_prefix: str | None = None,
) -> WaitingPage:
    """Tasks of running executions after that key; of one flow or execution, of flows whose names begin so, entered
    before an instant (ms), if these are given.
    """
    key = tuple_(scopes.c.execution_id, scopes.c.scope_id)
    begun = key > tuple_(*after)
    if execution_id is not None:
        begun = and_(begun, scopes.c.execution_id == execution_id)
    ordered = select(scopes.c.execution_id, scopes.c.scope_id).where(begun).order_by(*key.clauses)
    end = connection.execute(ordered.offset(SCANNED_MAX - 1).limit(1)).one_or_none()
    last = None if end is None else ScopeKey(*end)
    waits = select(*_SCOPE).where(begun, scopes.c.wait == WaitKind.TOKEN).order_by(*key.clauses)
    if last is not None:
        waits = waits.where(key <= tuple_(*last))
    found: list[WaitingTask] = []
    looked_up, seen = 0, after
    for some in _chunks(connection.execute(waits).all()):
        running = _running(
            connection,
            {row.execution_id for row in some if is_text(row.execution_id)},
            flow_name,
            flow_prefix or "",
            entered_before,
        )
        for row in some:
            header = running.get(row.execution_id)
            if header is None:
                continue
            if len(found) == limit or looked_up == LOOKED_UP_MAX:
                return WaitingPage(found, seen)
            task = _task(connection, row, header)
            looked_up, seen = looked_up + 1, task.key
            if entered_before is None or task.entered_at <= entered_before:
                found.append(task)
    return WaitingPage(found, last)


def _chunks(rows: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (rows[first : first + EXECUTIONS_AT_ONCE] for first in range(0, len(rows), EXECUTIONS_AT_ONCE))


def _running(
    connection: Connection, ids: set[str], flow_name: str | None, flow_prefix: str, started_before: int | None
) -> dict[str, Any]:
    """The headers of those that run; of the flow or flows, started before an instant (ms), if these are given."""
    query = select(*_HEADER).where(among(executions.c.execution_id, bindparam("ids")))
    query = query.where(executions.c.status == Status.RUNNING)
    if flow_name is not None:
        query = query.where(executions.c.flow_name == flow_name)
    if started_before is not None:
        query = query.where(executions.c.started_at <= started_before)
    rows = connection.execute(query, {"ids": texts(connection, sorted(ids))})
    readable = (row for row in rows if is_text(row.flow_name) and is_text(row.name))
    return {row.execution_id: row for row in readable if row.flow_name.startswith(flow_prefix)}


def _task(connection: Connection, scope: Any, header: Any) -> WaitingTask:
    with closing(scan_history(connection, scope.execution_id, from_event_id=scope.entered_event_id)) as events:
        entered = list(islice(events, 1))
    return WaitingTask(
        ScopeKey(scope.execution_id, scope.scope_id),
        scope.entered_event_id,
        header.flow_name,
        header.name,
        entered[0].step_name if entered else "",
        entered[0].time_ms if entered else header.started_at,
        scope.wake_at,
    )
