"""Invocations of functions from outside of flows: at once, or asynchronous ones and what became of them."""

from flowserver.base.errors import EntityTooLarge
from flowserver.engine.engine import Engine
from flowserver.invokers.invocation import Endpoint, Invocation
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

        Raises InvalidArgument, EntityTooLarge, ServiceNotFound or FunctionNotFound.
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
            asynchronous=False,
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
        return await self._call(invocation, endpoint)

    async def _call(self, invocation: Invocation, endpoint: Endpoint) -> Returned | Refused:
        places = self._engine.dispatcher.places
        await places.take(invocation.flow_name)
        try:
            reply = await self._engine.invoker.exchange(invocation, endpoint)
        finally:
            places.give_back()
        return outcome_of(invocation, reply, self._engine.limits)
