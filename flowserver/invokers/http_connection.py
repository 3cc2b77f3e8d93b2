"""Requests and replies over one connection, with aiohttp's protocol and parser but without its session.

A `ClientSession` builds a request, a response, timers and cookies for every call, which costs several times as much
as the call itself. This module does only what our calls need: write the bytes, read the head, read the body up to a
bound. aiohttp still connects, speaks TLS and parses HTTP.

pyreqwest takes more processor time in all, though half of it outside the event loop. It does not report whether a
connection was new, which decides whether a lost call may be sent again. The commands use httpx.
"""

import asyncio

from aiohttp import ClientConnectionResetError, ServerDisconnectedError, StreamReader, hdrs
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection

from flowserver.invokers.calls import Reply

SLICE_BYTES = 2_048
"""Bytes that are parsed at once outside a body: up to eighty interim replies, about a tenth of a millisecond."""


class ReplyTooLarge(Exception):
    """The reply has more bytes than allowed; the rest is not read."""


class TooManyInterimReplies(Exception):
    """More 1xx replies came than one call may have; the connection is closed."""


class BoundedHandler(ResponseHandler):
    """aiohttp's protocol, with a bound on interim replies: aiohttp parses a whole packet, which can hold ten thousand.

    It parses a large packet in slices, and closes the connection once more replies wait than `replies_max`.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, replies_max: int) -> None:
        super().__init__(loop)
        self._replies_max = replies_max

    def data_received(self, data: bytes) -> None:
        """Parse what has come."""
        begin = 0
        while len(data) - begin > SLICE_BYTES and not self._has_body_under_way and self.transport is not None:
            super().data_received(data[begin : begin + SLICE_BYTES])
            begin += SLICE_BYTES
            self._check_replies()
        if self.transport is not None:
            super().data_received(data[begin:] if begin else data)
            self._check_replies()

    @property
    def _has_body_under_way(self) -> bool:
        return self._payload is not None and not self._payload.is_eof()

    def _check_replies(self) -> None:
        if len(self._buffer) > self._replies_max and self.transport is not None:
            self.transport.abort()
            self.transport = None


class DeadlinePassed(Exception):
    """The call's time is over."""

    def __init__(self, *, connected: bool) -> None:
        super().__init__()
        self.connected = connected
        """Whether there was a connection, so that the function may have been reached."""


class HttpConnection:
    """One connection to a function's host, for one call after the other."""

    def __init__(self, connection: Connection, interim_replies_max: int) -> None:
        protocol = connection.protocol
        assert protocol is not None
        # One parser reads all replies of the connection, as keep-alive has it; each ends where the next may begin.
        protocol.set_response_params(read_until_eof=True, auto_decompress=False)
        self._loop = asyncio.get_running_loop()
        self._connection = connection
        self._interim_replies_max = interim_replies_max
        self._protocol = protocol
        self._expired = False
        self.answered = False
        """Whether anything of a reply to the last request has come."""

    @property
    def is_ready(self) -> bool:
        """Whether a request may be sent: the connection is open and has received nothing unrequested."""
        return self._protocol.is_connected() and not self._protocol.should_close

    async def call(self, request: bytes, deadline: float, bytes_max: int) -> Reply:
        """Send a request and read its reply of at most `bytes_max` bytes; uses little more memory than that.

        Raises DeadlinePassed if the reply is not whole when the event loop's clock shows `deadline`, ReplyTooLarge,
        TooManyInterimReplies, and aiohttp's ClientError or HttpProcessingError if the connection ends early or
        the other side does not send HTTP.
        After any exception, CancelledError included, the connection is closed.
        """
        timer = self._loop.call_at(deadline, self._expire)  # a third of what asyncio.timeout costs
        try:
            reply = await self._send_and_read(request, bytes_max)
        except Exception as error:
            self.close()
            if self._expired:
                raise DeadlinePassed(connected=True) from error
            raise
        except BaseException:
            self.close()
            raise
        finally:
            timer.cancel()
        if self._expired:  # without a length the end of the connection looks like the end of the body
            self.close()
            raise DeadlinePassed(connected=True)
        return reply

    def close(self) -> None:
        """Close the connection at once; what is not yet written is lost."""
        self._abort()
        self._connection.close()

    def _expire(self) -> None:
        self._expired = True
        self._abort()  # wakes the call that waits for the reply

    def _abort(self) -> None:
        if self._protocol.transport is not None:
            self._protocol.transport.abort()

    async def _send_and_read(self, request: bytes, bytes_max: int) -> Reply:
        protocol = self._protocol
        if protocol.transport is None:
            raise ClientConnectionResetError("the connection has just been closed")
        self.answered = False
        protocol.transport.write(request)
        try:
            message, content = await protocol.read()
        except ServerDisconnectedError as error:
            self.answered = not isinstance(error.message, str)  # but what has come of the head
            raise
        self.answered = True
        interim_replies = 0
        while message.code < 200 and message.code != 101:  # it announces that the reply will come
            interim_replies += 1
            if interim_replies > self._interim_replies_max:
                raise TooManyInterimReplies
            message, content = await protocol.read()
        if int(message.headers.get(hdrs.CONTENT_LENGTH, 0)) > bytes_max:
            raise ReplyTooLarge
        return Reply(message.code, message.headers, await _read_body(content, bytes_max))


async def _read_body(content: StreamReader, bytes_max: int) -> bytes:
    """The whole body; raises ReplyTooLarge as soon as the body is known to be too large."""
    body = await content.readany()
    if len(body) <= bytes_max and content.at_eof():
        return body  # it nearly always comes in one piece
    pieces = bytearray(body)
    while len(pieces) <= bytes_max and not content.at_eof():
        pieces += await content.readany()
    if len(pieces) > bytes_max:
        raise ReplyTooLarge
    return bytes(pieces)
