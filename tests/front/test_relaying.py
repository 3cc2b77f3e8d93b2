"""Relayed requests: the application and the client see them as if they were connected directly."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from flowserver.api.internal_faults import as_fault
from flowserver.base.errors import InternalServerError
from flowserver.front.link import Link
from flowserver.front.relaying import Relay, Relayed

PATIENCE_SECONDS = 60
SCOPE: Scope = {
    "type": "http",
    "asgi": {"version": "3.0", "spec_version": "2.3"},
    "http_version": "1.1",
    "server": ("127.0.0.1", 8080),
    "client": ("127.0.0.1", 40_000),
    "scheme": "http",
    "method": "POST",
    "root_path": "",
    "path": "/v1/flöws",
    "raw_path": b"/v1/fl%C3%B6ws",
    "query_string": b"a=\xff",
    "headers": [(b"host", b"here"), (b"x-odd", b"\xff"), (b"x-odd", b"twice")],
    "state": {"not": "told"},
}
START: Message = {"type": "http.response.start", "status": 200, "headers": [(b"a", b"b")]}
DISCONNECT: Message = {"type": "http.disconnect"}


def part(body: bytes, *, more: bool) -> Message:
    return {"type": "http.response.body", "body": body, "more_body": more}


def piece(body: bytes, *, more: bool) -> Message:
    return {"type": "http.request", "body": body, "more_body": more}


class Client:
    """uvicorn's part for one connection: the client's messages, and then nothing until it disconnects."""

    def __init__(self, *messages: Message) -> None:
        self._messages = list(messages)
        self.left = asyncio.Event()
        self.may_read = asyncio.Event()
        self.may_read.set()
        self.is_sent_to = asyncio.Event()
        self.answers: list[Message] = []

    async def receive(self) -> Message:
        if self._messages:
            return self._messages.pop(0)
        await self.left.wait()
        return DISCONNECT

    async def send(self, message: Message) -> None:
        self.is_sent_to.set()
        await self.may_read.wait()
        self.answers.append(message)


@asynccontextmanager
async def relaying(app: ASGIApp) -> AsyncIterator[Relay]:
    """A front's relay to that application."""
    ours, theirs = socket.socketpair()
    relay = Relay()
    handlers: dict[str, Callable[..., Awaitable[Any]]] = {}
    engine = await Link.connected(theirs, handlers, as_fault)
    handlers |= Relayed(app, engine).handlers
    relay.link = await Link.connected(ours, relay.handlers, as_fault)
    yield relay
    relay.link.close()
    await engine.lost


async def test_a_request_and_its_answer_are_unchanged() -> None:
    seen: list[Any] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.extend([scope, await receive()])
        await send(START)
        await send(part(b"\x00all", more=False))

    client = Client(piece(b"\xffbody", more=False))
    async with relaying(app) as relay:
        await relay(SCOPE, client.receive, client.send)
    scope, message = seen
    told = {name: value for name, value in SCOPE.items() if name != "state"}
    assert {**scope, "server": tuple(scope["server"]), "client": tuple(scope["client"])} == told
    assert message == piece(b"\xffbody", more=False)
    assert [{**each, "headers": START["headers"]} if "status" in each else each for each in client.answers] == [
        START,
        part(b"\x00all", more=False),
    ]


async def test_a_body_in_pieces_is_read_on_demand() -> None:
    async def app(_: Scope, receive: Receive, send: Send) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message["body"], message["more_body"]
        await send(START)
        await send(part(body, more=False))

    pieces = [piece(b"%d" % number, more=number < 9) for number in range(10)]
    client = Client(*pieces)
    async with relaying(app) as relay:
        await relay(SCOPE, client.receive, client.send)
    assert client.answers[1] == part(b"0123456789", more=False)


async def test_a_streaming_application_waits_for_the_client() -> None:
    sent: list[tuple[str, int]] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send(START)
        for number in range(3):
            await send(part(b"%d" % number, more=number < 2))
            sent.append((scope["path"], number))

    client = Client(piece(b"", more=False))
    client.may_read.clear()
    async with relaying(app) as relay:
        serving = asyncio.create_task(relay(SCOPE, client.receive, client.send))
        await client.is_sent_to.wait()
        quick = Client(piece(b"", more=False))
        await relay({**SCOPE, "path": "/quick"}, quick.receive, quick.send)
        assert sent == [("/quick", number) for number in range(3)], "the other stream has sent nothing meanwhile"
        client.may_read.set()
        await serving
    assert [answer.get("body") for answer in client.answers] == [None, b"0", b"1", b"2"]


async def test_the_application_learns_that_the_client_has_disconnected() -> None:
    over = asyncio.Event()

    async def app(_: Scope, receive: Receive, send: Send) -> None:
        await receive()
        assert await receive() == DISCONNECT
        over.set()

    client = Client(piece(b"", more=False))
    async with relaying(app) as relay:
        serving = asyncio.create_task(relay(SCOPE, client.receive, client.send))
        client.left.set()
        await asyncio.wait_for(over.wait(), PATIENCE_SECONDS)
        await serving
    assert client.answers == []


async def test_a_request_that_is_cut_off_ends_on_the_other_side() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def app(_: Scope, receive: Receive, send: Send) -> None:
        begun.set()
        try:
            await asyncio.gather(receive(), asyncio.Event().wait())
        finally:
            ended.set()

    client = Client(piece(b"", more=False))
    async with relaying(app) as relay:
        serving = asyncio.create_task(relay(SCOPE, client.receive, client.send))
        await begun.wait()
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving
        await asyncio.wait_for(ended.wait(), PATIENCE_SECONDS)


async def test_an_application_that_fails_without_an_answer() -> None:
    async def app(_: Scope, receive: Receive, send: Send) -> None:
        raise ZeroDivisionError

    client = Client(piece(b"", more=False))
    async with relaying(app) as relay:
        with pytest.raises(InternalServerError):
            await relay(SCOPE, client.receive, client.send)
    assert client.answers == []


async def test_a_stream_begins_at_once() -> None:
    """A reconnecting client gets the headers, however long there is nothing to send."""
    silence = asyncio.Event()

    async def app(_: Scope, receive: Receive, send: Send) -> None:
        await send(START)
        await silence.wait()
        await send(part(b"", more=False))

    client = Client(piece(b"", more=False))
    async with relaying(app) as relay:
        serving = asyncio.create_task(relay(SCOPE, client.receive, client.send))
        await asyncio.wait_for(client.is_sent_to.wait(), PATIENCE_SECONDS)
        assert not serving.done()
        silence.set()
        await serving


async def test_a_body_that_the_application_does_not_want_is_not_requested() -> None:
    async def refuse(_: Scope, receive: Receive, send: Send) -> None:
        await send(START)
        await send(part(b"no", more=False))

    late = Client()  # its body never comes
    careful = Client(piece(b"body", more=False))
    async with relaying(refuse) as relay:
        await relay(SCOPE, late.receive, late.send)
        expecting = {**SCOPE, "headers": [(b"expect", b"100-continue")]}
        await relay(expecting, careful.receive, careful.send)
    assert late.answers[1] == careful.answers[1] == part(b"no", more=False)
    assert await careful.receive() == piece(b"body", more=False), "it has not been read"


async def test_a_late_body_is_read() -> None:
    async def app(_: Scope, receive: Receive, send: Send) -> None:
        message = await receive()
        await send(START)
        await send(part(message["body"], more=False))

    class Late(Client):
        async def receive(self) -> Message:
            await self.left.wait()
            return piece(b"late", more=False)

    client = Late()
    async with relaying(app) as relay:
        serving = asyncio.create_task(relay(SCOPE, client.receive, client.send))
        for _ in range(20):
            await asyncio.sleep(0)
        client.left.set()
        await serving
    assert client.answers[1] == part(b"late", more=False)


async def test_an_answer_is_sent_though_the_application_fails_after_it() -> None:
    async def app(_: Scope, receive: Receive, send: Send) -> None:
        await send({**START, "headers": [(b"content-length", b"3")]})
        await send(part(b"all", more=False))
        raise ZeroDivisionError

    client = Client(piece(b"", more=False))
    async with relaying(app) as relay:
        await relay(SCOPE, client.receive, client.send)
    assert client.answers[1] == part(b"all", more=False)
