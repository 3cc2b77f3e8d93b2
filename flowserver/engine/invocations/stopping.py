"""Stops asynchronous invocations, whoever has them in hand. Synchronous; part of a transaction.

One that is not being called, or is parked, is over at once. One that is called is only marked: its holder drops the
call, tells the function, and ends it. One that cannot be read ends by its header alone.
"""

from collections.abc import Sequence

from sqlalchemy import Connection

from flowserver.engine.invocations.transitions import change_by
from flowserver.engine.invocations.writes import save_in
from flowserver.machine.invocations.lifecycle import CallEnded, Happening, StopAsked
from flowserver.store.cluster.nodes import PARKED
from flowserver.store.invocations.changes import (
    InvocationRow,
    find_invocation,
    find_invocations,
    stop_unreadable_invocation,
)
from flowserver.store.invocations.parked import find_header

_STOPPED: tuple[Happening, ...] = (StopAsked(), CallEnded())
"""Nobody is at it, so there is no call to wait for."""


def stop_named(
    connection: Connection, service: str, function: str, invocation_id: str, now_ms: int
) -> tuple[InvocationRow, InvocationRow] | None:
    """Stop the function's invocation of that id: how it was, and how it is; None if there is none."""
    row = find_invocation(connection, service, function, invocation_id, lock=True)
    return None if row is None else (row, _stop(connection, [row], now_ms)[0])


def stop_unreadable_named(
    connection: Connection, service: str, function: str, invocation_id: str, now_ms: int, *, empty_payload: bool
) -> bool:
    """The same for one that cannot be read, with `empty_payload` not even by the database; False if there is none."""
    header = find_header(connection, service, function, invocation_id)
    if header is not None:
        stop_unreadable_invocation(connection, header.invocation_key, now_ms, empty_payload=empty_payload)
    return header is not None


def stop_all(connection: Connection, keys: Sequence[str], now_ms: int) -> list[InvocationRow]:
    """Stop these invocations; returns those that there are, as they are now."""
    found = find_invocations(connection, keys, lock=True)
    for key in keys:
        if key not in found:
            stop_unreadable_invocation(connection, key, now_ms)
    return _stop(connection, list(found.values()), now_ms)


def _stop(connection: Connection, rows: Sequence[InvocationRow], now_ms: int) -> list[InvocationRow]:
    changes = [change_by(row, _STOPPED if row.node_id == PARKED else [StopAsked()], now_ms) for row in rows]
    save_in(connection, [change for change in changes if change.after is not change.before])
    return [change.after for change in changes]
