"""Invocations of functions from outside of flows: at once, or asynchronous ones and what became of them."""

from flowserver.base.errors import (
    EntityTooLarge,
    FunctionNotFound,
    InternalServerError,
    InvalidArgument,
    ServiceNotFound,
)
from flowserver.base.names import NAME_RULE, is_name
from flowserver.engine.engine import Engine
from flowserver.engine.registry import FunctionKey
from flowserver.invokers.invocation import Endpoint, Invocation
from flowserver.invokers.outcomes import Refused, Returned, outcome_of
from flowserver.machine.messages import Failure
from flowserver.operations.functions import WITHOUT_SERVICE, is_qualifier

_NOT_FOUND = {"FC.ServiceNotFound": ServiceNotFound, "FC.FunctionNotFound": FunctionNotFound}


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
        key = _key(service, qualifier, function)
        if len(payload) > bytes_max:
            raise EntityTooLarge(f"payload size exceeds maximum allowed size ({bytes_max} bytes)")
        endpoint = await self._engine.registry.find(*key)
        if isinstance(endpoint, Failure):
            raise _NOT_FOUND.get(endpoint.error, InternalServerError)(endpoint.cause)
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


def _key(service: str, qualifier: str, function: str) -> FunctionKey:
    """What the registry knows the function by; raises InvalidArgument for a name that none can have."""
    if service != WITHOUT_SERVICE and not is_name(service):
        raise InvalidArgument(f"the service {NAME_RULE}")
    if qualifier and not is_qualifier(qualifier):
        raise InvalidArgument(f"the qualifier {NAME_RULE}, or is a version's number")
    if not is_name(function):
        raise InvalidArgument(f"the function {NAME_RULE}")
    return ("" if service == WITHOUT_SERVICE else service), qualifier, function
