"""Calls both ways between two processes, over one socket.

A frame is its length, four bytes, and a MessagePack array. What is called is named; arguments and answers are texts,
bytes, numbers, None, and lists and mappings of these. Errors of `base.errors`, and DiskAlmostFull, arrive as the same
class.

A call and an answer wait while this end has more than `UNSENT_BYTES_MAX` to send, so that an end that reads slowly does
not fill the memory of the other. Both ends always read: if they stopped while they cannot write, each could wait for
the other. The callers bound what is under way: by client connections and by call slots.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping
from itertools import count
from typing import Any, Final, cast

import msgspec

from flowserver.base import errors
from flowserver.base.errors import FlowServerError, ServiceUnavailable
from flowserver.concurrency.futures import resolve
from flowserver.store.integrity.disk_reserve import DiskAlmostFull

Handler = Callable[..., Awaitable[Any]]
"""Carries out a call of the other end."""

Explain = Callable[[Exception, str], FlowServerError]
"""Makes the error that the other end gets for an unexpected error of a handler; the text says what has failed."""

CALL: Final = 0
ANSWER: Final = 1
FAULT: Final = 2
CANCEL: Final = 3

UNSENT_BYTES_MAX: Final = 1_048_576
"""Bytes that may wait to be sent, plus one frame, before calls and answers wait."""

_WRITTEN_AT_ONCE_BYTES: Final = 65_536
"""More than this is written before the turn's end, so that the transport can ask in time for a pause."""

_LENGTH_BYTES: Final = 4

_ERRORS: Final = {
    each.__name__: each
    for each in (*vars(errors).values(), DiskAlmostFull)
    if isinstance(each, type) and issubclass(each, FlowServerError)
}


class LinkLost(ConnectionError):
    """The other process is gone, or this one has closed the link."""


class Link(asyncio.Protocol):
    """One end; `handlers` are what the other end may call, by name. Make it with `connected`."""

    def __init__(self, handlers: Mapping[str, Handler], explain: Explain) -> None:
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the other end is gone, or `close` was called."""
        self._handlers = handlers
        self._explain = explain
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.WriteTransport | None = None
        self._numbers = count()
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._serving: dict[int, asyncio.Task[None]] = {}
        self._received = bytearray()
        self._pieces: list[bytes] = []
        self._bytes = 0
        self._is_full = False
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._turn = asyncio.Lock()
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder().decode

    @classmethod
    async def connected(cls, end: socket.socket, handlers: Mapping[str, Handler], explain: Explain) -> "Link":
        """A link over one end of a socket pair, which it owns from now on."""
        end.setblocking(False)
        _, link = await asyncio.get_running_loop().create_connection(lambda: cls(handlers, explain), sock=end)
        return link

    async def call(self, name: str, *arguments: Any) -> Any:
        """Call a handler of the other end and return its answer. Cancelling the call cancels the handler.

        Raises the handler's FlowServerError, LinkLost, and UnicodeEncodeError for a text that cannot be sent.
        """
        if self._is_full:
            await self._room()
        if self.lost.done():
            raise LinkLost
        number = next(self._numbers)
        answer = self._asked[number] = self._loop.create_future()
        try:
            self._write((CALL, number, name, arguments))
            return await answer
        except asyncio.CancelledError:
            self._write((CANCEL, number))
            raise
        finally:
            del self._asked[number]

    def close(self) -> None:
        """Close the link, which the other end notices; what was written before still reaches it."""
        if self._transport is not None:
            self._flush()
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket can be written to."""
        self._transport = cast(asyncio.WriteTransport, transport)  # uvloop's has its methods but is no subclass
        self._transport.set_write_buffer_limits(high=UNSENT_BYTES_MAX)

    def pause_writing(self) -> None:
        """The other end does not read as fast as this one writes."""
        self._is_full = True
        self._has_room.clear()

    def resume_writing(self) -> None:
        """Most of what was written has been sent."""
        self._is_full = False
        self._has_room.set()

    async def _room(self) -> None:
        """Wait until there is room to write. Callers are served in order; each writes before the next one checks."""
        async with self._turn:
            while self._is_full:
                await self._has_room.wait()

    def connection_lost(self, _exc: Exception | None) -> None:
        """The other end is gone: fail the calls that wait for it, and cancel the calls made for it."""
        self._transport = None
        self.resume_writing()
        self.lost.set_result(None)
        for answer in self._asked.values():
            if not answer.done():
                answer.set_exception(LinkLost())
        for task in self._serving.values():
            task.cancel()

    def data_received(self, data: bytes) -> None:
        """Buffer the data, and act on every complete frame."""
        self._received += data
        begin, end = 0, len(self._received)
        with memoryview(self._received) as received:
            while end - begin >= _LENGTH_BYTES:
                after = begin + _LENGTH_BYTES + int.from_bytes(received[begin : begin + _LENGTH_BYTES])
                if after > end:
                    break
                self._take(self._decode(received[begin + _LENGTH_BYTES : after]))
                begin = after
        del self._received[:begin]

    def _take(self, frame: list[Any]) -> None:
        kind, number, *rest = frame
        if kind == CALL:
            task = self._serving[number] = self._loop.create_task(self._serve(number, *rest))
            task.add_done_callback(lambda _: self._serving.pop(number, None))  # also if it never began
        elif kind == CANCEL:
            if number in self._serving:
                self._serving[number].cancel()
        else:
            asked = self._asked.get(number)
            if asked is not None:  # else its caller was cancelled
                resolve(asked, rest[0] if kind == ANSWER else _error(*rest))

    async def _serve(self, number: int, name: str, arguments: list[Any]) -> None:
        try:
            answer = await self._handlers[name](*arguments)
            if self._is_full:
                await self._room()
            self._write((ANSWER, number, answer))
        except FlowServerError as error:
            self._refuse(number, error)
        except asyncio.CancelledError:
            self._refuse(number, ServiceUnavailable())  # a caller that has cancelled it ignores the answer
            raise
        except Exception as error:
            self._refuse(number, self._explain(error, f"{name} for the other process"))

    def _refuse(self, number: int, error: FlowServerError) -> None:
        self._write((FAULT, number, _name_of(error), error.message.encode("utf-8", "replace").decode()))

    def _write(self, frame: tuple[Any, ...]) -> None:
        """Send a frame with all others of this turn of the event loop: each write costs a system call and a wake-up."""
        encoded = self._encode(frame)
        if not self._pieces:
            self._loop.call_soon(self._flush)
        self._pieces += (len(encoded).to_bytes(_LENGTH_BYTES), encoded)
        self._bytes += len(encoded)
        if self._bytes >= _WRITTEN_AT_ONCE_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._pieces and self._transport is not None:
            self._transport.write(b"".join(self._pieces))
        self._pieces.clear()
        self._bytes = 0


def _name_of(error: FlowServerError) -> str:
    """The most specific of the known classes of an error, whose own class the other end may not know."""
    return next(each.__name__ for each in type(error).__mro__ if _ERRORS.get(each.__name__) is each)


def _error(name: str, message: str) -> FlowServerError:
    return _ERRORS[name](message)
