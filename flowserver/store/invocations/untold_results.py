"""Ended invocations whose result has not yet reached the task that waits for it."""

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, false, select, update

from flowserver.store.schema.invocation_tables import CALLBACK_DUE, invocations
from flowserver.store.sql.prepared import write_later
from flowserver.store.sql.unreadable import is_text


def invocations_with_callback_due(connection: Connection, limit: int, *, skip: int = 0) -> list[str]:
    """Keys of ended invocations whose result has not reached the waiting task, after the first `skip` of them."""
    query = select(invocations.c.invocation_key).where(CALLBACK_DUE).limit(limit).offset(skip)
    return list(filter(is_text, connection.execute(query).scalars()))


def clear_invocation_callbacks(connection: Connection, keys: Sequence[str]) -> None:
    """The results of these have reached the waiting tasks."""
    write_later(connection, _CLEAR, [{"b_key": key} for key in keys])


_CLEAR = update(invocations).where(invocations.c.invocation_key == bindparam("b_key")).values(callback_due=false())
