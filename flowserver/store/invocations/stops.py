"""Stops asynchronous invocations, on whichever node they are. Synchronous; part of a transaction.

An invocation without a call, or a parked one, ends at once. With a call under way it is only marked: its holder drops
the call, calls the function's preStop hook, and ends it. An unreadable one ends by its header alone.
"""

from collections.abc import Sequence

from sqlalchemy import Connection

from flowserver.machine.invocations.lifecycle import CallEnded, InvocationMessage, StopAsked
from flowserver.store.cluster.nodes import PARKED_HOLDER
from flowserver.store.invocations.parking import find_header
from flowserver.store.invocations.row_changes import change_by, save_in
from flowserver.store.invocations.rows import (
    InvocationRow,
    find_invocation,
    find_invocations,
    stop_unreadable_invocation,
)

_STOPPED: tuple[InvocationMessage, ...] = (StopAsked(), CallEnded())
"""No node works on it, so there is no call to wait for."""


Stopped = tuple[InvocationRow, InvocationRow]
"""The row of an invocation before and after a stop."""


def stop_named(
    connection: Connection, service: str, function: str, invocation_id: str, now_ms: int, earlier: Stopped | None
) -> Stopped | None:
    """Stop an invocation of the function by its id; returns its row before and after, None if there is none.

    `earlier` is what an earlier try of the same stop returned, which counts if that try has ended the invocation.
    """
    row = find_invocation(connection, service, function, invocation_id, lock=True)
    if row is None:
        return None
    return earlier if row.state.is_over and earlier is not None else (row, _stop(connection, [row], now_ms)[0])


def stop_unreadable_named(
    connection: Connection, service: str, function: str, invocation_id: str, now_ms: int, *, empty_payload: bool
) -> bool:
    """Stop an unreadable invocation; `empty_payload` if the database itself cannot read it. False if there is none."""
    header = find_header(connection, service, function, invocation_id)
    if header is not None:
        stop_unreadable_invocation(connection, header.invocation_key, now_ms, empty_payload=empty_payload)
    return header is not None


def stop_all(connection: Connection, keys: Sequence[str], now_ms: int) -> list[InvocationRow]:
    """Stop these invocations; returns the new rows of those that exist."""
    found = find_invocations(connection, keys, lock=True)
    for key in keys:
        if key not in found:
            stop_unreadable_invocation(connection, key, now_ms)
    return _stop(connection, list(found.values()), now_ms)


def _stop(connection: Connection, rows: Sequence[InvocationRow], now_ms: int) -> list[InvocationRow]:
    changes = [change_by(row, _STOPPED if row.node_id == PARKED_HOLDER else [StopAsked()], now_ms) for row in rows]
    save_in(connection, [change for change in changes if change.after is not change.before])
    return [change.after for change in changes]
