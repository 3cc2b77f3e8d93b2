"""Loads the HTTP invoker with the first call: without its HTTP library the server starts in a fifth less time."""

from functools import partial
from typing import Final

from flowserver.base.lazy_import import load
from flowserver.base.limits import Limits
from flowserver.concurrency.threads import run_aside
from flowserver.invokers.calls import Endpoint, Failed, Invocation, Invoker, Replied, Reply
from flowserver.invokers.outgoing import PLAIN, Outgoing
from flowserver.invokers.web_requests import WebRequest

HTTP: Final = "flowserver.invokers.http:HttpInvoker"


class DeferredInvoker:
    """An `HttpInvoker` from its first call on."""

    def __init__(self, limits: Limits, outgoing: Outgoing = PLAIN) -> None:
        self._limits = limits
        self._outgoing = outgoing
        self._invoker: Invoker | None = None

    async def invoke(self, invocation: Invocation, endpoint: Endpoint) -> Replied | Failed:
        """Make the call. Raises nothing but CancelledError, which ends the call."""
        invoker = self._invoker or await self._load()
        return await invoker.invoke(invocation, endpoint)

    async def exchange(self, invocation: Invocation, endpoint: Endpoint) -> Reply | Failed:
        """Make the call; Failed only if no reply came. Raises nothing but CancelledError, which ends the call."""
        invoker = self._invoker or await self._load()
        return await invoker.exchange(invocation, endpoint)

    async def send(self, request: WebRequest) -> Reply | Failed:
        """Make the request; Failed only if no reply came. Raises nothing but CancelledError, which ends it."""
        invoker = self._invoker or await self._load()
        return await invoker.send(request)

    async def close(self) -> None:
        """Close all connections; calls under way fail."""
        if self._invoker is not None:
            await self._invoker.close()

    async def _load(self) -> Invoker:
        await run_aside(partial(load, HTTP))
        if self._invoker is None:  # another call may have loaded it meanwhile
            self._invoker = load(HTTP)(self._limits, outgoing=self._outgoing)
        return self._invoker
