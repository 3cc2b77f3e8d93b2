"""HTTP requests that the front hands on to the engine's application, as ASGI has it: messages in, messages out.

Most requests are one message and two of an answer; they take one call of the link. What streams takes one call for each
further message, and waits for it, so that neither side holds more than a message.
"""

from collections.abc import Mapping
from itertools import count

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from flowserver.front.link import Handler, Link

_TOLD = ("type", "asgi", "http_version", "server", "client", "scheme", "method", "root_path", "path", "raw_path")
"""What of a request's scope the engine's application is told, beside its query and headers."""


class Relay:
    """The front's side: an ASGI application that is elsewhere. `link` is set before it serves."""

    def __init__(self) -> None:
        self.link: Link | None = None
        self._numbers = count()
        self._open: dict[int, tuple[Receive, Send]] = {}

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """What the engine may call."""
        return {"http.receive": self._receive, "http.send": self._send}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request. Raises FlowServerError if the application has failed without an answer, and LinkLost."""
        assert self.link is not None
        number = next(self._numbers)
        told = {name: scope[name] for name in (*_TOLD, "query_string", "headers")}
        self._open[number] = receive, send
        try:
            rest = await self.link.call("http", number, told, await receive())
        finally:
            del self._open[number]
        for message in rest:
            await send(message)

    async def _receive(self, number: int) -> Message:
        if number not in self._open:
            return {"type": "http.disconnect"}  # it has just been cut off
        receive, _ = self._open[number]
        return await receive()

    async def _send(self, number: int, messages: list[Message]) -> None:
        if number in self._open:
            _, send = self._open[number]
            for message in messages:
                await send(message)


class Relayed:
    """The engine's side: serves what the front hands on."""

    def __init__(self, app: ASGIApp, link: Link) -> None:
        self._app = app
        self._link = link

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """What the front may call."""
        return {"http": self._serve}

    async def _serve(self, number: int, scope: Scope, first: Message) -> list[Message]:
        request = _Request(self._link, number, first)
        scope["headers"] = [(name, value) for name, value in scope["headers"]]
        await self._app(scope, request.receive, request.send)
        return request.unsent


class _Request:
    """One request under way."""

    def __init__(self, link: Link, number: int, first: Message) -> None:
        self._link = link
        self._number = number
        self._first: Message | None = first
        self.unsent: list[Message] = []

    async def receive(self) -> Message:
        if self._first is not None:
            first, self._first = self._first, None
            return first
        message: Message = await self._link.call("http.receive", self._number)
        return message

    async def send(self, message: Message) -> None:
        self.unsent.append(message)
        if message.get("more_body"):
            sending, self.unsent = self.unsent, []
            await self._link.call("http.send", self._number, sending)
