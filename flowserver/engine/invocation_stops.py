"""Stops asynchronous invocations, whoever has them in hand. Synchronous; part of a transaction.

One that is not being called is over at once. One that is, is only marked: its holder drops the call, tells the
function, and ends it.
"""

from collections.abc import Sequence

from sqlalchemy import Connection

from flowserver.engine.invocation_steps import change_by
from flowserver.engine.invocation_writes import save_in
from flowserver.machine.invocations import StopAsked
from flowserver.store.invocations import InvocationRow, find_invocation, find_invocations


def stop_named(
    connection: Connection, service: str, function: str, invocation_id: str, now_ms: int
) -> tuple[InvocationRow, InvocationRow] | None:
    """Stop the function's invocation of that id: how it was, and how it is; None if there is none."""
    row = find_invocation(connection, service, function, invocation_id, lock=True)
    return None if row is None else (row, _stop(connection, [row], now_ms)[0])


def stop_all(connection: Connection, keys: Sequence[str], now_ms: int) -> list[InvocationRow]:
    """Stop these invocations; returns those that there are, as they are now."""
    return _stop(connection, list(find_invocations(connection, keys, lock=True).values()), now_ms)


def _stop(connection: Connection, rows: Sequence[InvocationRow], now_ms: int) -> list[InvocationRow]:
    changes = [change_by(row, [StopAsked()], now_ms) for row in rows]
    save_in(connection, [change for change in changes if change.after is not change.before])
    return [change.after for change in changes]
