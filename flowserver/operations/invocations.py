"""Invocations of functions from outside flows: synchronous ones, and asynchronous ones with their results."""

import asyncio

from flowserver.base.errors import EntityTooLarge, FunctionNotStarted
from flowserver.engine.engine import Engine
from flowserver.invokers.calls import Endpoint, Failed, Invocation, Reply
from flowserver.invokers.error_names import ErrorName
from flowserver.invokers.outcomes import Refused, Returned, outcome_of
from flowserver.machine.messages import Failure
from flowserver.operations.audit import AuditLog, audited
from flowserver.operations.function_names import check_function, not_found
from flowserver.operations.span_links import traceparent_of_request


class InvocationOperations:
    """Operations on invocations; a function is named by service (`-` for none), qualifier ("" for none) and name."""

    def __init__(self, engine: Engine, audit: AuditLog) -> None:
        self._engine = engine
        self._audit = audit

    @audited("functions.invoke", "functions/{service}/{function}")
    async def invoke(
        self, service: str, qualifier: str, function: str, payload: bytes, *, request_id: str, wants_log: bool = False
    ) -> Returned | Refused:
        """Call a function and wait for its result; `request_id` identifies the call.

        Raises InvalidArgument, EntityTooLarge, ServiceNotFound, FunctionNotFound, FunctionNotStarted if it cannot be
        initialized, ResourceExhausted if its queue of waiting calls is full, and ServiceUnavailable if the server
        stops before it is called.
        """
        bytes_max = self._engine.limits.invocation_payload_bytes_max
        key = check_function(service, qualifier, function)
        if len(payload) > bytes_max:
            raise EntityTooLarge(f"payload size exceeds maximum allowed size ({bytes_max} bytes)")
        endpoint = await self._engine.endpoints.find(*key)
        if isinstance(endpoint, Failure):
            raise not_found(endpoint)
        invocation = Invocation(
            service=key[0],
            qualifier=qualifier,
            function=function,
            event=payload,
            invocation_id=None,
            idempotency_key=request_id,
            attempt=1,
            timeout_ms=self._engine.limits.function_seconds_max * 1000,
            flow_name="",
            execution_name="",
            step_name="",
            request_id=request_id,
            wants_log=wants_log,
            traceparent=traceparent_of_request() or "",
        )
        return await self._engine.interruptible.run(self._call(invocation, endpoint))

    async def _call(self, invocation: Invocation, endpoint: Endpoint) -> Returned | Refused:
        """Wait for a slot of the function, if it has a limit, and only then for one of this node."""
        slots, callee = self._engine.slots, endpoint.registered_as
        limit = slots.function_limits.admit(endpoint)
        if limit is not None:
            await limit.acquire()
        slot = await slots.acquire("/".join(callee), callee, limit)  # it belongs to no flow
        try:
            problem = await self._engine.hooks.initialize(endpoint, invocation.idempotency_key)
            if problem is not None:
                raise FunctionNotStarted(problem.cause)
            reply = await self._exchange(invocation, endpoint)
        finally:
            slot.release()
        return outcome_of(invocation, reply, self._engine.limits)

    async def _exchange(self, invocation: Invocation, endpoint: Endpoint) -> Reply | Failed:
        try:
            return await self._engine.invoker.exchange(invocation, endpoint)
        except asyncio.CancelledError:
            if not self._engine.interruptible.is_interrupted:
                raise
            return Failed(
                ErrorName.UNKNOWN, f"{invocation.title} was called, but the server stopped before it replied."
            )
