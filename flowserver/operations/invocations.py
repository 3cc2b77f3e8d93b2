"""Invocations of functions from outside of flows: at once, or asynchronous ones and what became of them."""

import asyncio

from flowserver.base.errors import EntityTooLarge, FunctionNotStarted, ResourceExhausted
from flowserver.engine.engine import Engine
from flowserver.engine.functions.concurrency import GateFull
from flowserver.invokers.error_names import ErrorName
from flowserver.invokers.invocation import Endpoint, Failed, Invocation, Reply
from flowserver.invokers.outcomes import Refused, Returned, outcome_of
from flowserver.machine.messages import Failure
from flowserver.operations.function_names import check_function, not_found


class InvocationOperations:
    """Operations on invocations; a function is named by service (`-` for none), qualifier ("" for none) and name."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def invoke(
        self, service: str, qualifier: str, function: str, payload: bytes, *, request_id: str, wants_log: bool = False
    ) -> Returned | Refused:
        """Have a function do its work, and wait for what it returns; the call goes by `request_id`.

        Raises InvalidArgument, EntityTooLarge, ServiceNotFound, FunctionNotFound, FunctionNotStarted if it cannot be
        initialized, ResourceExhausted if as many calls of it as may wait already, and ServiceUnavailable if the server
        stops before it is called.
        """
        bytes_max = self._engine.limits.invocation_payload_bytes_max
        key = check_function(service, qualifier, function)
        if len(payload) > bytes_max:
            raise EntityTooLarge(f"payload size exceeds maximum allowed size ({bytes_max} bytes)")
        endpoint = await self._engine.registry.find(*key)
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
        )
        return await self._engine.cutting.run(self._call(invocation, endpoint))

    async def _call(self, invocation: Invocation, endpoint: Endpoint) -> Returned | Refused:
        """Wait for a place of the function, if it has a bound, and only then for one of this node."""
        try:
            gate = self._engine.gates.enter(endpoint)
        except GateFull as full:
            raise ResourceExhausted(str(full)) from None
        if gate is None:
            return await self._call_in_place(invocation, endpoint)
        await gate.take()
        try:
            return await self._call_in_place(invocation, endpoint)
        finally:
            gate.give_back()

    async def _call_in_place(self, invocation: Invocation, endpoint: Endpoint) -> Returned | Refused:
        places, callee = self._engine.dispatcher.places, endpoint.registered_as
        instead_of_flow = "/".join(callee)
        await places.take(instead_of_flow, callee)
        try:
            problem = await self._engine.hooks.initialize(endpoint, invocation.idempotency_key)
            if problem is not None:
                raise FunctionNotStarted(problem.cause)
            reply = await self._exchange(invocation, endpoint)
        finally:
            places.give_back(instead_of_flow, callee)
        return outcome_of(invocation, reply, self._engine.limits)

    async def _exchange(self, invocation: Invocation, endpoint: Endpoint) -> Reply | Failed:
        try:
            return await self._engine.invoker.exchange(invocation, endpoint)
        except asyncio.CancelledError:
            if not self._engine.cutting.is_cut:
                raise
            return Failed(
                ErrorName.UNKNOWN, f"{invocation.title} was called, but the server stopped before it replied."
            )
