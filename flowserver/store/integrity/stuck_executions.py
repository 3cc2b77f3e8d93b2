"""Queries for executions that may be stuck; `operations/stuck_executions.py` decides which of them are."""

from collections.abc import Collection

from sqlalchemy import Connection, bindparam, literal_column, select

from flowserver.machine.state import WaitKind
from flowserver.store.integrity.invariant import violations
from flowserver.store.schema.tables import CALLBACK_DUE, PARKED, READY, RUNNING, executions, scopes
from flowserver.store.sql.list_parameter import among, texts
from flowserver.store.sql.prepared import fetch_all
from flowserver.store.sql.unreadable import is_text


def violating_executions(connection: Connection, limit: int) -> list[str]:
    """The ids of executions (also of unknown ones) that the view of the invariant lists."""
    return list(connection.execute(select(violations.c.execution_id).distinct().limit(limit)).scalars())


def unreported_ends(connection: Connection, until_ms: int, limit: int) -> list[tuple[str, str]]:
    """Executions that ended by `until_ms` but were not reported to their waiting task, with its token."""
    header = executions.c
    query = select(header.execution_id, header.callback_token).where(
        CALLBACK_DUE, header.stopped_at <= until_ms, header.callback_token.is_not(None)
    )
    rows = connection.execute(query.limit(limit))
    return [(row.execution_id, row.callback_token if is_text(row.callback_token) else "") for row in rows]


def parked_among(connection: Connection, execution_ids: Collection[str]) -> set[str]:
    """The subset of the executions that is parked."""
    ids = texts(connection, sorted(set(execution_ids)))
    return {execution_id for (execution_id,) in fetch_all(connection, _PARKED_AMONG, {"ids": ids})}


def pausing_scopes(connection: Connection, execution_ids: Collection[str]) -> set[tuple[str, int]]:
    """The scopes of these executions that wait for a timer and so cannot take a report."""
    ids = texts(connection, sorted(set(execution_ids)))
    return {(execution_id, scope_id) for execution_id, scope_id in fetch_all(connection, _PAUSING_SCOPES, {"ids": ids})}


_PARKED_AMONG = select(executions.c.execution_id).where(among(executions.c.execution_id, bindparam("ids")), PARKED)
_PAUSING_SCOPES = select(scopes.c.execution_id, scopes.c.scope_id).where(
    among(scopes.c.execution_id, bindparam("ids")), scopes.c.wait == literal_column(f"'{WaitKind.TIMER}'")
)


def ready_versions(connection: Connection, limit: int) -> list[tuple[str, int]]:
    """Executions with a scope that can continue at once, with their versions."""
    header = executions.c
    query = (
        select(header.execution_id, header.version)
        .join(scopes, scopes.c.execution_id == header.execution_id)
        .where(READY, RUNNING, header.parked_error.is_(None))
    )
    return [(row.execution_id, row.version) for row in connection.execute(query.distinct().limit(limit))]
