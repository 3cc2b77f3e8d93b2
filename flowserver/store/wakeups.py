"""What must happen next, found again from the rows alone: after a crash as in every quiet moment.

Every query goes by a partial index that holds only the rows concerned, and is bounded.
"""

from dataclasses import dataclass

from sqlalchemy import Connection, and_, select

from flowserver.machine.state import Status
from flowserver.store.tables import (
    CALLBACK_DUE,
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

GOING_ON = and_(RUNNING, executions.c.parked_error.is_(None))
"""Scopes of other executions are left alone: those of parked ones wait, and those of ended ones should not be there."""


@dataclass(frozen=True, slots=True)
class ScopeRef:
    """A scope's wait, and how often its call had been ordered when this was read."""

    execution_id: str
    scope_id: int
    wait_id: int
    attempt: int


@dataclass(frozen=True, slots=True)
class DueCallback:
    """An ended execution whose waiting task has not been told."""

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
    """A running execution whose time is up."""

    execution_id: str
    deadline_at: int


def due_timers(connection: Connection, until_ms: int, limit: int) -> list[DueTimer]:
    """Waits that are due by `until_ms`, earliest first; of executions that are not parked."""
    query = (
        select(scopes.c.execution_id, scopes.c.scope_id, scopes.c.wait_id, scopes.c.wake_at)
        .join(executions, executions.c.execution_id == scopes.c.execution_id)
        .where(WAKES, scopes.c.wake_at <= until_ms, GOING_ON)
        .order_by(scopes.c.wake_at)
        .limit(limit)
    )
    return [DueTimer(*row) for row in connection.execute(query)]


def due_deadlines(connection: Connection, until_ms: int, limit: int) -> list[DueDeadline]:
    """Running executions whose time is up by `until_ms`, earliest first; parked ones too, for they must end."""
    query = (
        select(executions.c.execution_id, executions.c.deadline_at)
        .where(RUNNING, executions.c.deadline_at <= until_ms)
        .order_by(executions.c.deadline_at)
        .limit(limit)
    )
    return [DueDeadline(*row) for row in connection.execute(query)]


def next_due(connection: Connection, after_ms: int) -> int | None:
    """The earliest instant (ms) after `after_ms` when a wait or an execution's time is up; None if there is none."""
    timer = (
        select(scopes.c.wake_at)
        .join(executions, executions.c.execution_id == scopes.c.execution_id)
        .where(WAKES, scopes.c.wake_at > after_ms, GOING_ON)
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
    return min((instant for instant in found if instant is not None), default=None)


def ready_executions(connection: Connection, limit: int) -> list[str]:
    """Executions with a scope that can go on at once."""
    query = (
        select(scopes.c.execution_id)
        .join(executions, executions.c.execution_id == scopes.c.execution_id)
        .where(READY, GOING_ON)
        .distinct()
        .limit(limit)
    )
    return list(connection.execute(query).scalars())


def orphaned_tasks(connection: Connection, limit: int) -> list[ScopeRef]:
    """Calls leased to nobody that is there."""
    query = (
        select(scopes.c.execution_id, scopes.c.scope_id, scopes.c.wait_id, scopes.c.attempt)
        .join(executions, executions.c.execution_id == scopes.c.execution_id)
        .where(TASK, scopes.c.node_id.not_in(select(nodes.c.node_id)), GOING_ON)
        .limit(limit)
    )
    return [ScopeRef(*row) for row in connection.execute(query)]


def tasks_of_node(connection: Connection, node_id: str) -> list[ScopeRef]:
    """Calls leased to a node: as many as it has under way."""
    query = select(scopes.c.execution_id, scopes.c.scope_id, scopes.c.wait_id, scopes.c.attempt).where(
        TASK, scopes.c.node_id == node_id
    )
    return [ScopeRef(*row) for row in connection.execute(query)]


def due_callbacks(connection: Connection, limit: int, *, skip: int = 0) -> list[DueCallback]:
    """Ended executions whose waiting task has not been told, but for the first `skip` of them."""
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
        DueCallback(row.execution_id, row.callback_token, Status(row.status), row.output, row.error, row.cause)
        for row in connection.execute(query)
    ]


def running_of_deleted_flows(connection: Connection, limit: int) -> list[str]:
    """Running executions whose flow has been deleted; parked ones too."""
    deleted = select(flows.c.flow_id).where(flows.c.deleted_at.is_not(None))
    query = select(executions.c.execution_id).where(RUNNING, executions.c.flow_id.in_(deleted)).limit(limit)
    return list(connection.execute(query).scalars())
