"""The front: serves RPC and the console's files itself, relays other requests, and makes the calls of functions."""

import math
from collections.abc import Collection, Mapping
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from flowserver.api.console import Console
from flowserver.api.console import fault_response as console_fault_response
from flowserver.api.keyless_gate import KeylessGate
from flowserver.api.middleware import TRACER, FaultResponse, LargeAnswers, RequestFrame, fault_response
from flowserver.api.rpc.router import RpcRoute
from flowserver.base.clock import Clock
from flowserver.base.limits import Limits
from flowserver.front.actions import distant_actions
from flowserver.front.function_calls import Calling
from flowserver.front.keys import DistantKeys
from flowserver.front.link import Handler, Link
from flowserver.front.relaying import Relay
from flowserver.invokers.deferred_http import DeferredInvoker
from flowserver.invokers.outgoing import PLAIN, Outgoing
from flowserver.metrics.request_counts import RequestMetrics
from flowserver.operations.access import AccessOperations
from flowserver.server import is_rpc
from flowserver.tracing.spans import Tracer

COUNTS = "counts"
"""What the engine calls asking for the front's part of the metrics."""


class Front:
    """An ASGI application, and what the engine may call. Make it inside a running event loop, then `attach` it."""

    def __init__(
        self,
        limits: Limits,
        clock: Clock,
        allowed_hosts: Collection[str],
        *,
        is_wide: bool = False,
        has_console: bool = True,
        outgoing: Outgoing = PLAIN,
        tracer: Tracer | None = None,
    ) -> None:
        self.is_leaving = False
        """Whether connections are to be closed with their next answer."""
        self._tracer = tracer
        self._limits = limits
        self._clock = clock
        self._allowed_hosts = allowed_hosts
        self._gate = KeylessGate(self._attached_access, allowed_hosts)
        self._access: AccessOperations | None = None
        self._is_wide = is_wide
        self._large_answers = LargeAnswers(limits.large_answers_max)
        self._relay = Relay()
        self._calling = Calling(DeferredInvoker(limits, outgoing))
        self._requests = RequestMetrics()
        self._rpc: RequestFrame | None = None
        self._files = Console(is_on=has_console)
        self._console = self._framed(self._files, LargeAnswers(math.inf), console_fault_response)

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """What the engine may call: functions, the messages of relayed requests, and its part of the metrics."""
        return {**self._relay.handlers, **self._calling.handlers, COUNTS: self._counts}

    def attach(self, link: Link) -> None:
        """Serve for the engine at the other end; before the first request."""
        self._relay.link = link
        self._access = access = AccessOperations(DistantKeys(link), self._clock, self._limits, is_wide=self._is_wide)
        route = RpcRoute(distant_actions(link), access, self._clock, self._allowed_hosts, self._limits)
        self._rpc = self._framed(route, self._large_answers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        assert self._rpc is not None
        if self._files.serves(scope):
            await self._console(scope, receive, send)
        elif is_rpc(scope):
            if self._tracer is not None:
                scope.setdefault("state", {})[TRACER] = self._tracer
            await self._rpc(scope, receive, send)
        else:
            await self._relay(scope, receive, send)

    async def _counts(self) -> tuple[list[list[Any]], Mapping[str, int]]:
        """The requests that the front has answered itself, and the spans that it has dropped."""
        return self._requests.rows(), {} if self._tracer is None else self._tracer.dropped

    def _attached_access(self) -> AccessOperations:
        assert self._access is not None
        return self._access

    def _framed(self, app: ASGIApp, large_answers: LargeAnswers, said: FaultResponse = fault_response) -> RequestFrame:
        bytes_max = self._limits.request_bytes_max
        leaving, counted = lambda: self.is_leaving, self._requests
        return RequestFrame(app, bytes_max, leaving, large_answers, said, gate=self._gate, metrics=counted)
