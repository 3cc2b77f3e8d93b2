"""Invocations that are to be stopped: the mark `is_unwanted` in the row, which the node that holds it acts on."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, select, true, update

from flowserver.machine.invocations.states import InvocationStatus
from flowserver.store.schema.invocation_tables import NOT_OVER, UNWANTED, invocations
from flowserver.store.sql.list_parameter import among, texts
from flowserver.store.sql.unreadable import is_text

Marked = list[tuple[str, str]]
"""(id of the execution that submitted it, invocation key) of each."""

_LISTED = among(invocations.c.invocation_key, bindparam("listed"))


def mark_unwanted(connection: Connection, keys: Sequence[str]) -> Marked:
    """Mark invocations to be stopped and return those that have not ended. This node stops them, or else recovery."""
    return _mark(connection, _LISTED, keys)


def mark_unwanted_of(connection: Connection, execution_ids: Sequence[str]) -> Marked:
    """`mark_unwanted` for all invocations that these executions submitted."""
    return _mark(connection, among(invocations.c.execution_id, bindparam("listed")), execution_ids)


def _mark(connection: Connection, which: Any, listed: Sequence[str]) -> Marked:
    if not listed:
        return []
    rows = connection.execute(_MARK.where(which), {"listed": texts(connection, listed)})
    return [(row.execution_id, row.invocation_key) for row in rows]


_MARK = (
    update(invocations)
    .where(NOT_OVER)
    .values(is_unwanted=true())
    .returning(invocations.c.execution_id, invocations.c.invocation_key)
)


def unwanted_invocations(connection: Connection, limit: int) -> list[str]:
    """Keys of the invocations that are marked and have not ended."""
    query = select(invocations.c.invocation_key).where(UNWANTED, NOT_OVER).limit(limit)
    return list(filter(is_text, connection.execute(query).scalars()))


def stopping_of_node(connection: Connection, node_id: str, keys: Sequence[str]) -> list[str]:
    """The keys of the node's invocations that are stopping or marked to be stopped."""
    stopped = (invocations.c.status == str(InvocationStatus.STOPPING)) | invocations.c.is_unwanted
    query = select(invocations.c.invocation_key).where(
        among(invocations.c.invocation_key, bindparam("listed")), invocations.c.node_id == node_id, stopped
    )
    return list(connection.execute(query, {"listed": texts(connection, keys)}).scalars())
