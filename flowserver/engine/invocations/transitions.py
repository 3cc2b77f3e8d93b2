"""What follows from an invocation's row: the next row, its call, and the outcome of the call's reply. Pure."""

from collections.abc import Iterable

from msgspec.structs import replace

from flowserver.base.limits import Limits
from flowserver.engine.invocations.writes import Change
from flowserver.invokers.invocation import Failed, Invocation, Reply
from flowserver.invokers.replies import failure_in
from flowserver.machine.invocations.lifecycle import (
    AttemptFailed,
    AttemptSucceeded,
    InvocationMessage,
    advance_invocation,
)
from flowserver.machine.invocations.results import LATEST, destination_document
from flowserver.store.invocations.changes import InvocationRow
from flowserver.store.queues.deliveries import NewDelivery


def change_by(row: InvocationRow, messages: Iterable[InvocationMessage], now_ms: int) -> Change:
    """The change by these messages, in order; `after` is the same row if they change nothing."""
    state = row.state
    for message in messages:
        state = advance_invocation(state, message, now_ms)
    if state is row.state:
        return Change(row, row)
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
    return Change(row, after, None if target is None else _delivery(after, target))


def _delivery(row: InvocationRow, target: str) -> NewDelivery:
    qualified = f"{row.service}.{row.qualifier or LATEST}/{row.function}"
    document = destination_document(qualified, row.request_id, row.payload, row.state)
    key = row.invocation_key
    return NewDelivery(delivery_id=key, target=target, message_id=key, body=document, invocation_key=key)


def call_of(row: InvocationRow, limits: Limits) -> Invocation:
    """The call of the attempt that has begun."""
    return Invocation(
        service=row.service,
        qualifier=row.qualifier,
        function=row.function,
        event=row.payload,
        invocation_id=row.invocation_id,
        idempotency_key=row.invocation_key,
        attempt=row.state.attempt,
        timeout_ms=limits.function_seconds_max * 1000,
        flow_name=row.flow_name,
        execution_name=row.execution_name,
        step_name=row.step_name,
        request_id=row.request_id,
    )


def outcome_of_reply(
    call: Invocation, reply: Reply | Failed, duration_ms: int, limits: Limits
) -> AttemptSucceeded | AttemptFailed:
    """The outcome of an attempt."""
    if isinstance(reply, Failed):
        return AttemptFailed(reply.error, reply.cause, duration_ms)
    failure = failure_in(call, reply.status, reply.headers, reply.body, limits)
    if failure is not None:
        return AttemptFailed(failure.error, failure.cause, duration_ms)
    fits = len(reply.body) <= limits.invocation_result_bytes_max
    return AttemptSucceeded(reply.body if fits else None, duration_ms)
