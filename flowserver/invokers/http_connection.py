"""Requests and replies over one connection, without aiohttp's session, response handler and parser.

A `ClientSession` builds a request, a response, timers and cookies for every call, and aiohttp's response handler a
message, a stream and a queue: several times as much as the call itself. This module does only what our calls need:
write the bytes, wait for the reply that `reply_reader` finds. aiohttp still resolves, connects and speaks TLS.

pyreqwest takes more processor time in all, though half of it outside the event loop. It does not report whether a
connection was new, which decides whether a lost call may be sent again. The commands use httpx.
"""

import asyncio
from functools import partial
from typing import cast

from aiohttp.connector import Connection

from flowserver.base.limits import Limits
from flowserver.invokers.calls import Reply
from flowserver.invokers.large_replies import LARGE_BYTES, Place
from flowserver.invokers.reply_reader import ConnectionEnded, NoReply, ReplyReader


class DeadlinePassed(Exception):
    """The call's time is over."""

    def __init__(self, *, connected: bool) -> None:
        super().__init__()
        self.connected = connected
        """Whether there was a connection, so that the function may have been reached."""


class HttpConnection(asyncio.Protocol):
    """One connection to a function's host, for one call after the other."""

    def __init__(self, loop: asyncio.AbstractEventLoop, limits: Limits) -> None:
        self._loop = loop
        self._reader = ReplyReader(limits)
        self._reply: asyncio.Future[Reply] | None = None
        self._place: Place | None = None
        self._deadline = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._closed: asyncio.Future[None] | None = None
        self._is_lost = False
        self.lease: Connection | None = None
        """What aiohttp's connector knows the connection by."""
        self.transport: asyncio.Transport | None = None

    @property
    def is_ready(self) -> bool:
        """Whether a request may be sent: the connection is open and has received nothing unrequested."""
        return self._reader.can_go_on and self.is_connected()

    @property
    def answered(self) -> bool:
        """Whether anything of a reply to the last request has come."""
        return self._reader.has_begun

    async def call(self, request: bytes, deadline: float, bytes_max: int, place: Place | None = None) -> Reply:
        """Send a request and read its reply of at most `bytes_max` bytes; uses little more memory than that.

        A large reply is read in turns, from its `place`, if it is given one.

        Raises DeadlinePassed if the reply is not whole when the event loop's clock shows `deadline`, ReplyTooLarge,
        TooManyInterimReplies, and NoReply if the connection ends early or the other side does not send HTTP.
        After any exception, CancelledError included, the connection is closed.
        """
        self._reader.expect(bytes_max)
        if self.transport is None:  # it has just been closed
            raise ConnectionEnded
        self._deadline = deadline
        if self._timer is None or deadline < self._timer.when():
            self._set_timer()
        self._reply = self._loop.create_future()
        self._place = place
        self.transport.write(request)
        try:
            return await self._reply
        except BaseException:
            self.close()
            raise
        finally:
            self._reply = self._place = None
            if place is not None:
                place.give_back()

    def _set_timer(self) -> None:
        """One timer serves many calls: a call that ends in time leaves it to the next, whose deadline is later."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(self._deadline, self._expire)

    def _expire(self) -> None:
        self._timer = None
        if self._reply is None or self._reply.done():
            return
        if self._loop.time() < self._deadline:
            self._set_timer()
        else:
            self._fail(DeadlinePassed(connected=True))

    def _fail(self, error: Exception) -> None:
        if self._reply is not None and not self._reply.done():
            self._reply.set_exception(error)

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection, with TLS if the URL wants it, has come about."""
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Something has come, perhaps unrequested."""
        call = self._reply
        if call is None or call.done():
            self.abort()
            return
        try:
            reply = self._reader.feed(data)
        except Exception as error:
            call.set_exception(error)
            self.abort()
            return
        if reply is not None:
            call.set_result(reply)
        elif self._reader.body_bytes > LARGE_BYTES and self._place is not None and self.transport is not None:
            self.transport.pause_reading()
            self._place.wait_for_turn(partial(self._read_on, call))

    def _read_on(self, call: asyncio.Future[Reply]) -> None:
        """It is the turn of this call's large reply."""
        if self.transport is not None and not call.done():
            self.transport.resume_reading()

    def connection_lost(self, error: Exception | None) -> None:
        """The connection has ended."""
        self.transport = None
        self._is_lost = True
        if self._timer is not None:
            self._timer.cancel()
        if self._closed is not None and not self._closed.done():
            self._closed.set_result(None)
        if self._reply is None or self._reply.done():
            return
        if error is not None:
            self._reply.set_exception(ConnectionEnded())
            return
        try:
            self._reply.set_result(self._reader.end())
        except NoReply as ended:
            self._reply.set_exception(ended)

    # What aiohttp's connector calls

    @property
    def should_close(self) -> bool:
        """Always: the pool of idle connections is ours."""
        return True

    @property
    def closed(self) -> asyncio.Future[None] | None:
        """Done when the connection has ended; None if it has."""
        if self._closed is None and not self._is_lost:
            self._closed = self._loop.create_future()
        return self._closed

    def is_connected(self) -> bool:
        """Whether the connection is open."""
        return self.transport is not None and not self.transport.is_closing()

    def close(self) -> None:
        """Close the connection at once; what is not yet written is lost, and a call fails."""
        lease, self.lease = self.lease, None
        if lease is not None:
            lease.close()
        self._fail(ConnectionEnded())
        self.abort()

    def abort(self) -> None:
        """The same, without the connector's knowledge."""
        self._reader.drop()
        if self.transport is not None:
            self.transport.abort()
            self.transport = None
