"""Changes of invocations' rows by messages: the row before and after, the delivery that its end adds, and saves."""

from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace
from sqlalchemy import Connection

from flowserver.machine.invocations.destination_documents import LATEST, destination_document
from flowserver.machine.invocations.lifecycle import InvocationMessage, advance_invocation
from flowserver.store.invocations.rows import InvocationRow, save_invocations
from flowserver.store.queues.deliveries import NewDelivery, insert_deliveries


class RowChange(msgspec.Struct, frozen=True):
    """An invocation before and after; its end may add a delivery."""

    before: InvocationRow
    after: InvocationRow
    delivery: NewDelivery | None = None


def change_by(row: InvocationRow, messages: Iterable[InvocationMessage], now_ms: int) -> RowChange:
    """The change by these messages, in order; `after` is the same row if they change nothing."""
    state = row.state
    for message in messages:
        state = advance_invocation(state, message, now_ms)
    if state is row.state:
        return RowChange(row, row)
    rests = state.is_over or state.wake_at is not None
    after = replace(
        row,
        state=state,
        node_id=None if rests else row.node_id,
        parked_error=None if rests else row.parked_error,
        callback_due=state.is_over and row.callback_token is not None,
        is_unwanted=row.is_unwanted and not state.is_over,
    )
    target = state.destination if state.is_over else None
    return RowChange(row, after, None if target is None else _delivery(after, target))


def _delivery(row: InvocationRow, target: str) -> NewDelivery:
    qualified = f"{row.service}.{row.qualifier or LATEST}/{row.function}"
    document = destination_document(qualified, row.request_id, row.payload, row.state)
    key = row.invocation_key
    return NewDelivery(
        delivery_id=key,
        target=target,
        message_id=key,
        body=document,
        invocation_key=key,
        traceparent=row.traceparent,
    )


def save_in(connection: Connection, changes: Sequence[RowChange]) -> list[InvocationRow]:
    """Save these changes in the transaction; raises InvocationChanged if one of the invocations has changed."""
    save_invocations(connection, [(change.before, change.after) for change in changes])
    for change in changes:
        if change.delivery is not None:
            insert_deliveries(connection, [change.delivery], change.after.state.ended_at or 0)
    return [change.after for change in changes]
