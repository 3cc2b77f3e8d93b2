"""Calls functions over HTTP: connections, time-outs and sizes. What a reply means is decided in `replies`."""

import asyncio
import logging
from dataclasses import dataclass
from types import SimpleNamespace

import aiohttp
from aiohttp.abc import AbstractResolver

from flowserver.base.limits import Limits
from flowserver.base.names import is_name
from flowserver.invokers.addresses import open_socket
from flowserver.invokers.breakdowns import broken_off, call_seconds, timed_out
from flowserver.invokers.error_names import ErrorName
from flowserver.invokers.invocation import Endpoint, Failed, Invocation, Replied
from flowserver.invokers.replies import body_too_large, classify_reply, failed
from flowserver.invokers.requests import request_headers
from flowserver.invokers.resolving import OwnThreadsResolver

log = logging.getLogger(__name__)

CONNECT_SECONDS = 10
"""A function's host that does not take a connection in this time counts as not reachable."""

IDLE_SECONDS = 4
"""An idle connection is closed after this time: sooner than common servers close theirs (uvicorn and Node 5 s), so
that a call seldom meets a connection that is just being closed."""

STALE_SECONDS = 1.0
"""See `HttpInvoker`."""


@dataclass(slots=True)
class _Exchange:
    """How far one request has come."""

    connected: bool = False
    reused_at: float | None = None
    """Event-loop time at which a pooled connection was taken for it."""
    answered: bool = False


class HttpInvoker:
    """Posts events to functions over pooled keep-alive connections; make it inside a running event loop.

    Redirects are not followed, proxy settings of the environment and cookies are ignored, and addresses that
    `addresses` refuses are not called. A call is sent once, with one exception: a server may close an idle pooled
    connection at the moment the next request is written to it. If a reused connection ends without a byte of reply
    within `stale_seconds`, the request is sent once more, on a new connection and with the same idempotency key.
    """

    def __init__(
        self, limits: Limits, resolver: AbstractResolver | None = None, stale_seconds: float = STALE_SECONDS
    ) -> None:
        self._limits = limits
        self._stale_seconds = stale_seconds
        self._resolver = resolver or OwnThreadsResolver()
        self._pooled = _open_session(_pooled_connector(self._resolver))
        self._unpooled = _open_session(_unpooled_connector(self._resolver))

    async def invoke(self, invocation: Invocation, endpoint: Endpoint) -> Replied | Failed:
        """Make the call and say what came of it. Raises nothing but CancelledError, which ends the call."""
        if invocation.invocation_id is not None and not is_name(invocation.invocation_id):
            cause = "StatefulAsyncInvocationID must be 1 to 128 of letters, digits, _, -, and begin with a letter or _."
            return failed(ErrorName.INVALID_ARGUMENT, cause, self._limits)
        exchange = _Exchange()
        deadline = asyncio.timeout(call_seconds(invocation, endpoint))
        try:
            async with deadline:
                return await self._send_surely(invocation, endpoint, exchange)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if deadline.expired():
                return timed_out(invocation, endpoint, exchange.connected, self._limits)
            return broken_off(invocation, error, self._limits)
        except Exception as error:  # a step must end with an error name even if we have a bug
            log.exception("calling %s", invocation.title)
            return broken_off(invocation, error, self._limits)

    async def close(self) -> None:
        """Close all connections and the resolver; calls under way fail."""
        await self._pooled.close()
        await self._unpooled.close()
        await self._resolver.close()

    async def _send_surely(self, invocation: Invocation, endpoint: Endpoint, exchange: _Exchange) -> Replied | Failed:
        try:
            return await self._send(self._pooled, invocation, endpoint, exchange)
        except aiohttp.ClientConnectionError as error:
            if not self._is_stale(exchange):
                raise
            lost = error
        try:
            return await self._send(self._unpooled, invocation, endpoint, exchange)
        except aiohttp.ClientConnectorError:
            raise lost from None  # the function's server has gone, perhaps while it worked on the first sending

    def _is_stale(self, exchange: _Exchange) -> bool:
        if exchange.reused_at is None or exchange.answered:
            return False
        return asyncio.get_running_loop().time() - exchange.reused_at < self._stale_seconds

    async def _send(
        self, session: aiohttp.ClientSession, invocation: Invocation, endpoint: Endpoint, exchange: _Exchange
    ) -> Replied | Failed:
        async with session.post(
            endpoint.url,
            data=invocation.event.encode(),
            headers=request_headers(invocation, endpoint),
            allow_redirects=False,
            trace_request_ctx=exchange,
        ) as response:
            exchange.answered = True
            body = await _read_body(response, self._limits.function_response_bytes_max)
            if body is None:
                return body_too_large(invocation, self._limits)
            return classify_reply(invocation, response.status, response.headers, body, self._limits)


async def _read_body(response: aiohttp.ClientResponse, bytes_max: int) -> bytes | None:
    """The whole body, or None as soon as it is known to be too large; holds little more than `bytes_max`."""
    if (response.content_length or 0) > bytes_max:
        return None
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > bytes_max:
            return None
    return bytes(body)


def _pooled_connector(resolver: AbstractResolver) -> aiohttp.TCPConnector:
    # limit=0: the engine already bounds the calls under way.
    return aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_SECONDS, resolver=resolver, socket_factory=open_socket)


def _unpooled_connector(resolver: AbstractResolver) -> aiohttp.TCPConnector:
    return aiohttp.TCPConnector(limit=0, force_close=True, resolver=resolver, socket_factory=open_socket)


def _open_session(connector: aiohttp.TCPConnector) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        headers={"User-Agent": "flowserver"},
        timeout=aiohttp.ClientTimeout(connect=CONNECT_SECONDS),
        trace_configs=[_trace_connections()],
        trust_env=False,
    )


def _trace_connections() -> aiohttp.TraceConfig:
    trace = aiohttp.TraceConfig()
    trace.on_connection_create_end.append(_note_created)
    trace.on_connection_reuseconn.append(_note_reused)
    return trace


async def _note_created(_: aiohttp.ClientSession, context: SimpleNamespace, __: object) -> None:
    context.trace_request_ctx.connected = True
    context.trace_request_ctx.reused_at = None


async def _note_reused(_: aiohttp.ClientSession, context: SimpleNamespace, __: object) -> None:
    context.trace_request_ctx.connected = True
    context.trace_request_ctx.reused_at = asyncio.get_running_loop().time()
