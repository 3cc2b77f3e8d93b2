"""An invoker that measures the calls of functions that another makes."""

from flowserver.base.limits import Limits
from flowserver.invokers.calls import Endpoint, Failed, Invocation, Invoker, Replied, Reply
from flowserver.invokers.deferred_http import DeferredInvoker
from flowserver.invokers.function_health import FunctionHealth
from flowserver.invokers.replies import failure_in
from flowserver.invokers.web_requests import WebRequest


class MeasuredInvoker:
    """Measures the calls of functions, of steps and invocations alike. A call that is cancelled is not counted."""

    def __init__(self, limits: Limits, invoker: Invoker | None) -> None:
        """`invoker` makes the calls; None for a `DeferredInvoker`."""
        self._limits = limits
        self._invoker = invoker or DeferredInvoker(limits)
        self.health = FunctionHealth(limits)

    async def invoke(self, invocation: Invocation, endpoint: Endpoint) -> Replied | Failed:
        """Make the call. Raises nothing but CancelledError, which ends the call."""
        now = self.health.now
        calls, began_at = self.health.begun(endpoint.registered_as), now()
        try:
            result = await self._invoker.invoke(invocation, endpoint)
        except BaseException:
            calls.was_cancelled()
            raise
        ended_at = now()
        error = result.error if isinstance(result, Failed) else None
        calls.ended(ended_at, ended_at - began_at, error, invocation.attempt)
        return result

    async def exchange(self, invocation: Invocation, endpoint: Endpoint) -> Reply | Failed:
        """Make the call; Failed only if no reply came. Raises nothing but CancelledError, which ends the call."""
        now = self.health.now
        calls, began_at = self.health.begun(endpoint.registered_as), now()
        try:
            result = await self._invoker.exchange(invocation, endpoint)
        except BaseException:
            calls.was_cancelled()
            raise
        ended_at = now()
        calls.ended(ended_at, ended_at - began_at, self._error_of(invocation, result), invocation.attempt)
        return result

    async def send(self, request: WebRequest) -> Reply | Failed:
        """Make the request; Failed only if no reply came. Raises nothing but CancelledError, which ends it."""
        return await self._invoker.send(request)

    async def close(self) -> None:
        """Close all connections; calls under way fail."""
        await self._invoker.close()

    def _error_of(self, invocation: Invocation, result: Reply | Failed) -> str | None:
        if isinstance(result, Reply):
            failure = failure_in(invocation, result.status, result.headers, result.body, self._limits)
        else:
            failure = result
        return None if failure is None else failure.error
