"""The call of an invocation's attempt, and the attempt's outcome from the reply. Pure."""

from flowserver.base.limits import Limits
from flowserver.invokers.invocation import Failed, Invocation, Reply
from flowserver.invokers.replies import failure_in
from flowserver.machine.invocations.lifecycle import AttemptFailed, AttemptSucceeded
from flowserver.store.invocations.rows import InvocationRow


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
