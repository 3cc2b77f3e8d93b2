"""Calls functions over HTTP: time-outs and resending. `replies` decides what a reply means."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import lru_cache

from aiohttp import ClientConnectorError, ClientError, ConnectionTimeoutError
from aiohttp.abc import AbstractResolver

from flowserver.base.limits import Limits
from flowserver.base.names import is_name
from flowserver.invokers.calls import Endpoint, Failed, Invocation, Replied, Reply
from flowserver.invokers.connections import IDLE_SECONDS, ROUTES_MAX, ConnectionPool, Route, Routes
from flowserver.invokers.dns_resolver import OwnThreadsResolver
from flowserver.invokers.error_names import ErrorName
from flowserver.invokers.http_connection import DeadlinePassed, HttpConnection
from flowserver.invokers.large_replies import Place, Sender, places_of_process
from flowserver.invokers.outgoing import PLAIN, Outgoing
from flowserver.invokers.replies import body_too_large, failed, read_reply
from flowserver.invokers.reply_reader import ConnectionEnded, NoReply, ReplyTooLarge, TooManyInterimReplies
from flowserver.invokers.request_bytes import request_id, write_request, write_web_request
from flowserver.invokers.transport_failures import broken_off, call_seconds, explain, is_own_trouble, timed_out
from flowserver.invokers.web_requests import REPLY_BYTES_MAX, WebRequest

log = logging.getLogger(__name__)

STALE_SECONDS = 1.0
"""See `HttpInvoker`."""

AGAIN_SECONDS = 0.05
AGAIN_SECONDS_MAX = 1.0
"""The first pause before a connection is tried again for which the server had no socket, and the longest; each is twice
the one before."""

OUT_OF_SOCKETS = "could not be called: the server has no descriptor or local port left"


class OutOfSockets(Exception):
    """The server could open no connection before the call's time was up."""


class TimeLeft:
    """How long a call may take, and when it must be over, by the event loop's clock."""

    __slots__ = ("_ends_at", "_seconds", "deadline")

    def __init__(self, now: float, seconds: float, ends_at: float) -> None:
        """`seconds` is the function's time, counted from when the server can call it; `ends_at` bounds it."""
        self._seconds = seconds
        self._ends_at = ends_at
        self.deadline = min(now + seconds, ends_at)

    def begin_again(self, now: float) -> None:
        """The server could not call: the function's time begins now. Raises OutOfSockets if there is none left."""
        if now >= self._ends_at:
            raise OutOfSockets
        self.deadline = min(now + self._seconds, self._ends_at)


class HttpInvoker:
    """Posts events to functions over pooled keep-alive connections; make it inside a running event loop.

    Redirects are not followed, proxy settings of the environment and cookies are ignored, and `outgoing` says
    what is not called. A call is sent once, with one exception: a server may close an idle pooled
    connection at the moment the next request is written to it. If a reused connection ends without a byte of reply
    within `stale_seconds`, the request is sent once more, on a new connection and with the same idempotency key. A
    connection for which the server itself has no descriptor or local port is tried again until there is one.
    """

    def __init__(
        self,
        limits: Limits,
        resolver: AbstractResolver | None = None,
        stale_seconds: float = STALE_SECONDS,
        idle_seconds: float = IDLE_SECONDS,
        rest: Callable[[float], Awaitable[None]] = asyncio.sleep,
        outgoing: Outgoing = PLAIN,
    ) -> None:
        self._limits = limits
        self._stale_seconds = stale_seconds
        self._rest = rest
        self._resolver = resolver or OwnThreadsResolver()
        self._routes = Routes()
        self._pool = ConnectionPool(self._resolver, limits, idle_seconds, outgoing.addresses)
        self._signer = outgoing.signer
        self._places = places_of_process(limits)
        self._loop = asyncio.get_running_loop()

    async def invoke(self, invocation: Invocation, endpoint: Endpoint) -> Replied | Failed:
        """Make the call and return its result. Raises nothing but CancelledError, which ends the call."""
        return read_reply(invocation, await self.exchange(invocation, endpoint), self._limits)

    async def exchange(self, invocation: Invocation, endpoint: Endpoint) -> Reply | Failed:
        """Make the call; Failed only if no reply came. Raises nothing but CancelledError, which ends the call."""
        if invocation.invocation_id not in (None, invocation.request_id) and not is_name(str(invocation.invocation_id)):
            cause = "StatefulAsyncInvocationID must be 1 to 128 of letters, digits, _, -, and begin with a letter or _."
            return failed(ErrorName.INVALID_ARGUMENT, cause, self._limits)
        try:
            now = self._loop.time()
            time = TimeLeft(now, call_seconds(invocation, endpoint), now + invocation.timeout_ms / 1000)
            route = self._routes.find(endpoint)
            request = write_request(route.head, invocation, self._signer)
            bytes_max = self._limits.function_response_bytes_max
            return await self._exchange(route, request, time, bytes_max, _sender_of(invocation))
        except OutOfSockets:  # until the step's time was up
            return failed(ErrorName.TASK_TIMEOUT, f"{invocation.title} {OUT_OF_SOCKETS}.", self._limits)
        except ReplyTooLarge:
            return body_too_large(invocation, self._limits)
        except TooManyInterimReplies:
            return failed(ErrorName.UNKNOWN, f"{invocation.title} {self._too_many_replies}.", self._limits)
        except DeadlinePassed as passed:
            return timed_out(invocation, endpoint, passed.connected, self._limits)
        except (ClientError, NoReply, OSError, ValueError) as error:
            return broken_off(invocation, error, self._limits)
        except Exception as error:  # a step must end with an error name even if we have a bug
            which = {"function": invocation.title, "request_id": request_id(invocation)}
            log.exception("calling %(function)s, request id %(request_id)s", which)
            return broken_off(invocation, error, self._limits)

    async def send(self, request: WebRequest) -> Reply | Failed:
        """Make the request; Failed only if no reply came. Raises nothing but CancelledError, which ends it."""
        time = TimeLeft(self._loop.time(), request.seconds, self._loop.time() + request.seconds)
        try:
            route = self._routes.find(_endpoint(request.url))
            return await self._exchange(route, write_web_request(request, self._signer), time, REPLY_BYTES_MAX)
        except OutOfSockets:
            return Failed(ErrorName.SERVER_ERROR, f"{request.title} {OUT_OF_SOCKETS}.", is_own=True)
        except ReplyTooLarge:
            name, reason = ErrorName.INVALID_LOCAL, f"answered with more than {REPLY_BYTES_MAX} bytes"
        except TooManyInterimReplies:
            name, reason = ErrorName.UNKNOWN, self._too_many_replies
        except DeadlinePassed:
            name, reason = ErrorName.UNKNOWN, f"did not reply within {request.seconds:g} s"
        except Exception as error:
            if not isinstance(error, (ClientError, NoReply, OSError, ValueError)):
                log.exception("a request to %s", request.title)  # our bug, which must not fail the caller
            name, reason = explain(error)
        return failed(name, f"{request.title} {reason}.", self._limits)

    @property
    def _too_many_replies(self) -> str:
        replies_max = self._limits.interim_replies_max
        return f"sent more than {replies_max} interim replies (1xx), the limit interim_replies_max"

    async def close(self) -> None:
        """Close all connections and the resolver; calls under way fail."""
        await self._pool.close()
        await self._resolver.close()

    async def _exchange(
        self, route: Route, request: bytes, time: TimeLeft, bytes_max: int, sender: Sender | None = None
    ) -> Reply:
        place = None if sender is None else Place(self._places, sender)
        connection = self._pool.take(route)
        if connection is None:
            connection = await self._open(route, time)
            reply = await connection.call(request, time.deadline, bytes_max, place)
        else:
            began_at = self._loop.time()
            try:
                reply = await connection.call(request, time.deadline, bytes_max, place)
            except ConnectionEnded as lost:
                if connection.answered or self._loop.time() - began_at >= self._stale_seconds:
                    raise
                connection = await self._open_again(route, time, lost)
                reply = await connection.call(request, time.deadline, bytes_max, place)
        self._pool.give_back(route, connection)
        return reply

    async def _open_again(self, route: Route, time: TimeLeft, lost: ConnectionEnded) -> HttpConnection:
        try:
            return await self._open(route, time)
        except (ClientConnectorError, ConnectionTimeoutError):
            raise lost from None  # the function's server has gone, perhaps while it worked on the first request
        except DeadlinePassed:
            raise DeadlinePassed(connected=True) from lost

    async def _open(self, route: Route, time: TimeLeft) -> HttpConnection:
        pause = AGAIN_SECONDS
        while True:
            try:
                return await self._pool.open(route, time.deadline)
            except ClientConnectorError as error:
                if not is_own_trouble(error):
                    raise
                if pause == AGAIN_SECONDS:
                    log.warning("no connection can be opened, which is tried again: %s", error.os_error)
            self._pool.close_idle()
            await self._rest(pause)
            time.begin_again(self._loop.time())
            pause = min(2 * pause, AGAIN_SECONDS_MAX)


def _sender_of(invocation: Invocation) -> Sender:
    return invocation.flow_name, (invocation.service, invocation.function)


@lru_cache(maxsize=ROUTES_MAX)
def _endpoint(url: str) -> Endpoint:
    """The same object for the same URL: it is the key of the cached route."""
    return Endpoint(url, {}, 1)
