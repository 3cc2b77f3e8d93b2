"""Queries for work that is due or lost: timers, deadlines, ready scopes, orphaned calls, callbacks.

They read rows only, so a start after a crash and the regular recovery find the same work. Every query has a limit and
uses a partial index that holds only the rows concerned.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, Text, and_, bindparam, cast, select, tuple_

from flowserver.base.clock import INSTANT_MS_MAX
from flowserver.machine.state import Status
from flowserver.store.executions.loading import stored_status
from flowserver.store.schema.tables import (
    CALLBACK_DUE,
    NOT_ENDED,
    READY,
    RUNNING,
    TASK,
    WAKES,
    execution_documents,
    executions,
    flows,
    nodes,
    scopes,
)
from flowserver.store.sql.list_parameter import among, among_pairs, pairs, texts
from flowserver.store.sql.prepared import fetch_rows
from flowserver.store.sql.unreadable import is_text, legible

CAN_CONTINUE = and_(NOT_ENDED, executions.c.parked_error.is_(None))
"""Executions that can continue: neither parked nor ended.

An execution with a damaged status is included: the turn that loads it finds the damage and parks it.
"""


@dataclass(frozen=True, slots=True)
class ScopeRef:
    """A scope's wait, and how many times its call had been ordered when the row was read."""

    execution_id: str
    scope_id: int
    wait_id: int
    attempt: int


TaskKey = tuple[str, int, int]
"""(execution_id, scope_id, wait_id) of a call."""


@dataclass(frozen=True, slots=True)
class DueCallback:
    """An ended execution whose result has not yet reached the task that waits for it."""

    execution_id: str
    token: str
    status: Status
    output: str | None
    error: str | None
    cause: str | None


@dataclass(frozen=True, slots=True)
class DueTimer:
    """A scope's wait that is due."""

    execution_id: str
    scope_id: int
    wait_id: int
    wake_at: int


@dataclass(frozen=True, slots=True)
class DueDeadline:
    """A running execution whose deadline has passed."""

    execution_id: str
    deadline_at: int


def due_timers(connection: Connection, until_ms: int, limit: int) -> list[DueTimer]:
    """Waits that are due by `until_ms`, earliest first; of executions that are not parked."""
    query = (
        select(scopes.c.execution_id, scopes.c.scope_id, scopes.c.wait_id, scopes.c.wake_at)
        .join(executions, executions.c.execution_id == scopes.c.execution_id)
        .where(WAKES, scopes.c.wake_at <= until_ms, CAN_CONTINUE)
        .order_by(scopes.c.wake_at)
        .limit(limit)
    )
    return [DueTimer(*row) for row in _with_valid_id(connection, query)]


def due_deadlines(connection: Connection, until_ms: int, limit: int) -> list[DueDeadline]:
    """Running executions with a deadline up to `until_ms`, earliest first. Parked ones are included: they must end."""
    query = (
        select(executions.c.execution_id, executions.c.deadline_at)
        .where(RUNNING, executions.c.deadline_at <= until_ms)
        .order_by(executions.c.deadline_at)
        .limit(limit)
    )
    return [DueDeadline(*row) for row in _with_valid_id(connection, query)]


def next_due(connection: Connection, after_ms: int) -> int | None:
    """The earliest instant (ms) after `after_ms` at which a wait or a deadline is due; None if there is none."""
    timer = (
        select(scopes.c.wake_at)
        .join(executions, executions.c.execution_id == scopes.c.execution_id)
        .where(WAKES, scopes.c.wake_at > after_ms, CAN_CONTINUE)
        .order_by(scopes.c.wake_at)
        .limit(1)
    )
    deadline = (
        select(executions.c.deadline_at)
        .where(RUNNING, executions.c.deadline_at > after_ms)
        .order_by(executions.c.deadline_at)
        .limit(1)
    )
    found = [connection.execute(query).scalar_one_or_none() for query in (timer, deadline)]
    return min((instant for instant in found if isinstance(instant, int)), default=None)


def ready_executions(connection: Connection, limit: int) -> list[str]:
    """Executions with a scope that can continue at once, and executions with a damaged instant.

    No timer would fire for a damaged instant. The turn that loads such an execution finds the damage and parks it.
    """
    query = (
        select(scopes.c.execution_id)
        .join(executions, executions.c.execution_id == scopes.c.execution_id)
        .where(READY, CAN_CONTINUE)
        .distinct()
        .limit(limit)
    )
    found = [row.execution_id for row in _with_valid_id(connection, query)]
    return list(dict.fromkeys([*found, *_without_instant(connection, limit)]))


def _without_instant(connection: Connection, limit: int) -> Iterator[str]:
    """Executions whose `wake_at` or deadline is no valid instant. SQLite sorts values of other types after numbers."""
    waits = (
        select(scopes.c.execution_id)
        .join(executions, executions.c.execution_id == scopes.c.execution_id)
        .where(WAKES, scopes.c.wake_at > INSTANT_MS_MAX, CAN_CONTINUE)
    )
    ends = select(executions.c.execution_id).where(
        RUNNING, executions.c.deadline_at > INSTANT_MS_MAX, executions.c.parked_error.is_(None)
    )
    for query in (waits, ends):
        for row in _with_valid_id(connection, query.limit(limit)):
            yield row.execution_id


def _with_valid_id(connection: Connection, query: Select[Any]) -> Iterator[Any]:
    """The rows whose first column, the execution id, is valid text: a message can only be sent to such an id."""
    return (row for row in connection.execute(query) if is_text(row[0]))


def orphaned_tasks(connection: Connection, limit: int) -> list[ScopeRef]:
    """Calls whose lease belongs to no registered node."""
    query = (
        select(scopes.c.execution_id, scopes.c.scope_id, scopes.c.wait_id, scopes.c.attempt)
        .join(executions, executions.c.execution_id == scopes.c.execution_id)
        .where(TASK, scopes.c.node_id.not_in(select(nodes.c.node_id)), CAN_CONTINUE)
        .limit(limit)
    )
    return [ScopeRef(*row) for row in _with_valid_id(connection, query)]


TaskPlace = tuple[str, int]
"""(execution_id, scope_id) of the last call of a page."""

FIRST_TASK: TaskPlace = ("", 0)


def tasks_of_node(
    connection: Connection, node_id: str, limit: int, after: TaskPlace = FIRST_TASK
) -> tuple[list[ScopeRef], TaskPlace | None]:
    """A page of up to `limit` calls leased to a node, by key, and the cursor of the next page; None after the last.

    A node may hold leases of very many calls that wait for a slot, so no query reads them all.
    """
    key = scopes.c.execution_id, scopes.c.scope_id
    query = (
        select(*key, scopes.c.wait_id, scopes.c.attempt)
        .where(TASK, scopes.c.node_id == node_id, tuple_(*key) > tuple_(*after))
        .order_by(scopes.c.node_id, *key)
        .limit(limit)
    )
    rows = connection.execute(query).all()
    found = [ScopeRef(*row) for row in rows if is_text(row.execution_id)]
    more = len(rows) == limit and found
    return found, (found[-1].execution_id, found[-1].scope_id) if more else None


def leased_among(connection: Connection, node_id: str, calls: Iterable[TaskKey]) -> set[TaskKey]:
    """The subset of the calls that is leased to the node now."""
    asked = list(calls)
    if not asked:
        return set()
    given = {
        "ids": texts(connection, sorted({execution_id for execution_id, _, _ in asked})),
        "waits": pairs([(execution_id, str(wait_id)) for execution_id, _, wait_id in asked]),
        "b_node": node_id,
    }
    return {(row.execution_id, row.scope_id, row.wait_id) for row in connection.execute(_LEASED_AMONG, given)}


_LEASED_AMONG = select(scopes.c.execution_id, scopes.c.scope_id, scopes.c.wait_id).where(
    TASK,
    scopes.c.node_id == bindparam("b_node"),
    among(scopes.c.execution_id, bindparam("ids")),
    among_pairs(scopes.c.execution_id, cast(scopes.c.wait_id, Text), bindparam("waits")),
)


def waits_for_call(connection: Connection, execution_id: str, scope_id: int, wait_id: int) -> bool:
    """Whether a scope still waits for this attempt's call; if so, its row is locked until the transaction ends."""
    given = {"b_id": execution_id, "b_scope": scope_id, "b_wait": wait_id}
    return bool(fetch_rows(connection, _WAITS_FOR_CALL, given))


_WAITS_FOR_CALL = (
    select(scopes.c.scope_id)
    .where(scopes.c.execution_id == bindparam("b_id"), scopes.c.scope_id == bindparam("b_scope"))
    .where(scopes.c.wait_id == bindparam("b_wait"), TASK)
    .with_for_update(read=True)
)


def due_callbacks(connection: Connection, limit: int, *, skip: int = 0) -> list[DueCallback]:
    """Ended executions whose result has not reached the waiting task, after the first `skip` of them."""
    header, documents = executions.c, execution_documents.c
    query = (
        select(
            header.execution_id,
            header.callback_token,
            header.status,
            documents.output,
            documents.error,
            documents.cause,
        )
        .join(execution_documents, documents.execution_id == header.execution_id)
        .where(CALLBACK_DUE, header.status != str(Status.RUNNING), header.callback_token.is_not(None))
        .limit(limit)
        .offset(skip)
    )
    return [
        DueCallback(
            row.execution_id,
            row.callback_token if is_text(row.callback_token) else "",
            stored_status(row.status) or Status.FAILED,
            row.output,
            legible(row.error),
            legible(row.cause),
        )
        for row in _with_valid_id(connection, query)
    ]


def running_of_deleted_flows(connection: Connection, limit: int) -> list[str]:
    """Running executions whose flow has been deleted; parked ones too."""
    deleted = select(flows.c.flow_id).where(flows.c.deleted_at.is_not(None))
    query = select(executions.c.execution_id).where(RUNNING, executions.c.flow_id.in_(deleted)).limit(limit)
    return [row.execution_id for row in _with_valid_id(connection, query)]
