"""Relays HTTP requests from the front to the engine's application, as ASGI messages in both directions.

Most requests are one message, and two of the answer; they take one call of the link. A stream takes one call for each
further message, and waits for it, so that neither side holds more than one message.
"""

import asyncio
import logging
from collections.abc import Awaitable, Mapping
from itertools import count

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from flowserver.front.link import Handler, Link

log = logging.getLogger(__name__)

_TOLD = (
    "type",
    "asgi",
    "http_version",
    "server",
    "client",
    "scheme",
    "method",
    "root_path",
    "path",
    "raw_path",
    "query_string",
    "headers",
)
"""The keys of a request's scope that the engine's application gets."""


class Relay:
    """The front's side: an ASGI application in another process. `link` is set before it serves."""

    def __init__(self) -> None:
        self.link: Link | None = None
        self._numbers = count()
        self._open: dict[int, _Open] = {}

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """What the engine may call."""
        return {"http.receive": self._receive, "http.send": self._send}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request. Raises FlowServerError if the application failed before its answer's end, and LinkLost."""
        assert self.link is not None
        number = next(self._numbers)
        told = {name: scope[name] for name in _TOLD}
        request = self._open[number] = _Open(receive, send)
        try:
            rest = await self.link.call("http", number, told, await request.begun(scope))
        finally:
            del self._open[number]
            request.close()
        for message in rest:
            await send(message)

    async def _receive(self, number: int) -> Message:
        if number not in self._open:
            return {"type": "http.disconnect"}  # it was cut off a moment ago
        return await self._open[number].receive()

    async def _send(self, number: int, messages: list[Message]) -> None:
        if number in self._open:
            for message in messages:
                await self._open[number].send(message)


class _Open:
    """A request under way, in the front."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self.send = send
        self._receive = receive
        self._reading: asyncio.Task[Message] | None = None

    async def begun(self, scope: Scope) -> Message | None:
        """The first message if it has arrived, else None. The application asks for a body that is still to come."""
        if any(name == b"expect" for name, _ in scope["headers"]):
            return None  # asking for a message would ask the client for its body
        self._reading = asyncio.create_task(_awaited(self._receive()))
        await asyncio.sleep(0)
        if not self._reading.done():
            return None
        reading, self._reading = self._reading, None
        return reading.result()

    async def receive(self) -> Message:
        reading, self._reading = self._reading, None
        return await (reading or self._receive())

    def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()


async def _awaited(coming: Awaitable[Message]) -> Message:
    return await coming


class Relayed:
    """The engine's side: serves relayed requests. The end of an answer is sent when the application returns."""

    def __init__(self, app: ASGIApp, link: Link) -> None:
        self._app = app
        self._link = link

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """What the front may call."""
        return {"http": self._serve}

    async def _serve(self, number: int, scope: Scope, first: Message | None) -> list[Message]:
        request = _Request(self._link, number, first)
        scope["headers"] = [(name, value) for name, value in scope["headers"]]
        try:
            await self._app(scope, request.receive, request.send)
        except Exception:
            if not request.is_answered:
                raise
            log.exception("the application failed after its answer")
        return request.unsent


class _Request:
    """A request under way, in the engine's process."""

    def __init__(self, link: Link, number: int, first: Message | None) -> None:
        self._link = link
        self._number = number
        self._first = first
        self.unsent: list[Message] = []
        self.is_answered = False

    async def receive(self) -> Message:
        if self._first is not None:
            first, self._first = self._first, None
            return first
        message: Message = await self._link.call("http.receive", self._number)
        return message

    async def send(self, message: Message) -> None:
        self.unsent.append(message)
        if message["type"] == "http.response.start":
            is_stream = all(name.lower() != b"content-length" for name, _ in message["headers"])
        else:
            is_stream = message.get("more_body", False)
            self.is_answered = not is_stream
        if is_stream:  # else the end follows soon, and is sent with it
            sending, self.unsent = self.unsent, []
            await self._link.call("http.send", self._number, sending)
