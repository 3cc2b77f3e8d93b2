"""Limits of connections before authentication: bytes of heads and trailers, time to send, number of connections."""

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
import uvloop
from starlette.types import Message, Receive, Scope, Send
from uvicorn import Config

from flowserver.api import bounded_server, connections
from flowserver.api.bounded_server import BoundedServer
from flowserver.base.limits import Limits
from flowserver.cli.one_packet_answers import JoiningProtocol

PATIENCE_SECONDS = 60
SOON: Any = 1
"""Seconds after which a test's timer fires; the client sends in the same loop iteration in which it connects."""

SLOW = replace(Limits(), head_seconds_max=600, body_idle_seconds_max=600, body_seconds_max=600)
"""Timers that no test waits for."""

Pair = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Served:
    """An application that answers with the request's body, once `may_read` is set, and records the requests."""

    def __init__(self) -> None:
        self.scopes: list[Scope] = []
        self.begun = asyncio.Semaphore(0)
        """Released by each request."""
        self.heard: list[Message] = []
        self.may_read = asyncio.Event()
        self.may_read.set()
        self.gone = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scopes.append(scope)
        self.begun.release()
        body = b""
        await self.may_read.wait()
        while True:
            message = await receive()
            self.heard.append(message)
            if message["type"] == "http.disconnect":
                self.gone.set()
                return
            body += message["body"]
            if not message["more_body"]:
                break
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
        await send({"type": "http.response.body", "body": body})


class Server:
    """The server on its own port, in the running event loop."""

    def __init__(self, limits: Limits) -> None:
        self.app = Served()
        config = Config(
            self.app,
            http=JoiningProtocol,
            lifespan="off",
            log_config=None,
            timeout_keep_alive=limits.idle_connection_seconds,
        )
        self._server = BoundedServer(config, limits)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]

    async def __aenter__(self) -> "Server":
        self._server.config.load()
        self._server.lifespan = self._server.config.lifespan_class(self._server.config)
        await self._server.startup([self._listener])
        return self

    async def __aexit__(self, *_: object) -> None:
        for connection in list(self._server.server_state.connections):
            connection.transport.abort()
        await self._server.shutdown([self._listener])

    @property
    def connections(self) -> int:
        return len(self._server.server_state.connections)

    async def connect(self) -> Pair:
        return await asyncio.open_connection("127.0.0.1", self.port, limit=2**24)


@pytest.fixture(autouse=True)
def short_farewell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "LINGER_SECONDS", SOON)


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[[Awaitable[None]], None]:
    def run_on_it(work: Any) -> None:
        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(asyncio.wait_for(work, PATIENCE_SECONDS))

    return run_on_it


async def _answer(reader: asyncio.StreamReader) -> tuple[int, bytes, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    return int(head.split()[1]), head, await reader.readexactly(int(length.split(b":")[1]))


async def _refusal(reader: asyncio.StreamReader) -> tuple[int, str]:
    """The refusal's status and code; the connection ends after it."""
    status, head, body = await _answer(reader)
    assert b"connection: close" in head
    with suppress(ConnectionResetError):
        assert await reader.read() == b""
    return status, json.loads(body)["Code"]


async def _send(writer: asyncio.StreamWriter, *pieces: bytes) -> None:
    """Send each piece separately; a server that has closed the connection is no failure."""
    with suppress(ConnectionError):
        for piece in pieces:
            writer.write(piece)
            await writer.drain()


GET = b"GET / HTTP/1.1\r\nhost: here\r\n\r\n"
CHUNKED = b"POST / HTTP/1.1\r\nhost: here\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("pieces", "refusal"),
    [
        pytest.param([b"GET / HTTP/1.1\r\n", *[b"x-%d: %s\r\n" % (i, b"v" * 990) for i in range(90)]], 431, id="many"),
        pytest.param([b"GET / HTTP/1.1\r\nx: ", *[b"v" * 8_000] * 20], 431, id="one that does not end"),
        pytest.param([b"GET / HTTP/1.1\r\nx: " + b"v" * 66_000 + b"\r\n\r\n"], 431, id="at once"),
        pytest.param([b"\r\n" * 4_000] * 10, 431, id="empty lines"),
        pytest.param([b"GET /" + b"u" * 100_000 + b" HTTP/1.1\r\nhost: here\r\n\r\n"], 414, id="URL at once"),
        pytest.param([b"GET /", *[b"u" * 8_000] * 20], 414, id="URL in pieces"),
        pytest.param([GET[:-2], *[b"x: %s\r\n" % (b"v" * 990)] * 90, b"\r\n"], 431, id="whole"),
    ],
)
def test_the_size_of_a_head_is_limited(run: Callable[..., None], pieces: list[bytes], refusal: int) -> None:
    codes = {431: "HeadTooLarge", 414: "UrlTooLong"}

    async def work() -> None:
        async with Server(SLOW) as server:
            reader, writer = await server.connect()
            await _send(writer, *pieces)
            assert await _refusal(reader) == (refusal, codes[refusal])
            assert server.app.scopes == []
            writer.close()

    run(work())


def test_a_head_within_the_limit_is_served_and_each_has_its_own(run: Callable[..., None]) -> None:
    async def work() -> None:
        async with Server(SLOW) as server:
            reader, writer = await server.connect()
            for _ in range(3):
                await _send(writer, b"GET / HTTP/1.1\r\nx: ", b"v" * 60_000, b"\r\n\r\n")
                assert (await _answer(reader))[0] == 200
            await _send(writer, b"POST / HTTP/1.1\r\ncontent-length: 1000000\r\n\r\n", b"b" * 1_000_000)
            assert (await _answer(reader))[2] == b"b" * 1_000_000
            writer.close()

    run(work())


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"CONNECT elsewhere:80 HTTP/1.1\r\nhost: here\r\n\r\n", id="CONNECT"),
        pytest.param(b"GET http:///x HTTP/1.1\r\nhost: here\r\n\r\n", id="no host"),
        pytest.param(b"GET http://h:99999/ HTTP/1.1\r\nhost: here\r\n\r\n", id="no port"),
        pytest.param(CHUNKED[:-2] + b"content-length: 4\r\n\r\n0\r\n\r\n", id="two lengths"),
        pytest.param(b"GET / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n12", id="other lengths"),
        pytest.param(b"GET / HTTP/1.1\nhost: here\n\n", id="bare line feeds"),
        pytest.param(b"GET / HTTP/1.1\r\nhost : here\r\n\r\n", id="space before a colon"),
    ],
)
def test_what_a_proxy_could_read_otherwise_is_refused_with_a_reason(run: Callable[..., None], sent: bytes) -> None:
    async def work() -> None:
        async with Server(SLOW) as server:
            reader, writer = await server.connect()
            await _send(writer, sent + GET)
            assert await _refusal(reader) == (400, "InvalidArgument")
            assert server.app.scopes == []
            writer.close()

    run(work())


def test_trailers_are_not_headers(run: Callable[..., None]) -> None:
    async def work() -> None:
        async with Server(SLOW) as server:
            reader, writer = await server.connect()
            server.app.may_read.clear()
            await _send(
                writer,
                CHUNKED + b"2\r\nhi\r\n0\r\nhost: evil\r\nauthorization: Bearer x\r\nexpect: 100-continue\r\n\r\n",
            )
            await _send(writer, GET)
            server.app.may_read.set()
            assert (await _answer(reader))[2] == b"hi"
            assert (await _answer(reader))[2] == b""
            first, second = server.app.scopes
            assert first["headers"] == [(b"host", b"here"), (b"transfer-encoding", b"chunked")]
            assert second["headers"] == [(b"host", b"here")]
            writer.close()

    run(work())


@pytest.mark.parametrize("ending", [b"", b"\r\n\r\n"], ids=["without end", "whole"])
@pytest.mark.parametrize("chunk", [b"", b"2\r\nhi\r\n"], ids=["empty body", "body"])
def test_trailers_count_towards_the_limit(run: Callable[..., None], chunk: bytes, ending: bytes) -> None:
    async def work() -> None:
        async with Server(SLOW) as server:
            reader, writer = await server.connect()
            await _send(
                writer, CHUNKED + chunk + b"0\r\nx: ", *[b"v" * 8_000] * 50, ending
            )  # a read returns up to 256 KB
            assert await _refusal(reader) == (431, "HeadTooLarge")
            await server.app.gone.wait()
            writer.close()

    run(work())


HURRIED = replace(SLOW, head_seconds_max=SOON)


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"\r\n", GET[:-2], GET + GET[:-2]])
def test_a_missing_head_ends_the_connection(run: Callable[..., None], sent: bytes) -> None:
    async def work() -> None:
        async with Server(HURRIED) as server:
            reader, writer = await server.connect()
            await _send(writer, sent)
            if sent.startswith(GET):
                assert (await _answer(reader))[0] == 200
            assert await _refusal(reader) == (408, "RequestTimeout")
            assert server.connections == 0
            writer.close()

    run(work())


@pytest.mark.parametrize(
    "limits",
    [replace(SLOW, body_idle_seconds_max=SOON), replace(SLOW, body_seconds_max=SOON)],
    ids=["idle", "total"],
)
@pytest.mark.parametrize("head", [b"content-length: 10", b"transfer-encoding: chunked"])
def test_a_missing_body_ends_the_request(run: Callable[..., None], limits: Limits, head: bytes) -> None:
    # The timer checks a new connection first when a head's time is over.
    async def work() -> None:
        async with Server(replace(limits, head_seconds_max=SOON)) as server:
            reader, writer = await server.connect()
            await _send(writer, b"POST / HTTP/1.1\r\nhost: here\r\n" + head + b"\r\n\r\n" + b"2\r\nhi\r\n"[:5])
            assert await _refusal(reader) == (408, "RequestTimeout")
            await server.app.gone.wait()
            writer.close()

    run(work())


def test_a_slow_body_ends_with_the_total(run: Callable[..., None]) -> None:
    async def work() -> None:
        async with Server(
            replace(SLOW, head_seconds_max=SOON, body_idle_seconds_max=2, body_seconds_max=SOON)
        ) as server:
            reader, writer = await server.connect()
            await _send(writer, b"POST / HTTP/1.1\r\ncontent-length: 1000000\r\n\r\n")
            answer = asyncio.create_task(_refusal(reader))
            while not answer.done():
                await _send(writer, b"x")
                await asyncio.wait([answer], timeout=0.05)
            assert answer.result() == (408, "RequestTimeout")
            writer.close()

    run(work())


def test_the_time_limit_pauses_while_the_server_does_not_read(run: Callable[..., None]) -> None:
    """The application is slow, or has not asked for the body: neither is the client's fault."""

    async def work() -> None:
        limits = replace(SLOW, head_seconds_max=SOON, body_idle_seconds_max=SOON, body_seconds_max=SOON)
        async with Server(limits) as server:
            server.app.may_read.clear()
            many = await server.connect()
            await _send(many[1], b"POST / HTTP/1.1\r\ncontent-length: 300000\r\n\r\n" + b"x" * 200_000)
            asking = await server.connect()
            await _send(asking[1], b"POST / HTTP/1.1\r\ncontent-length: 2\r\nexpect: 100-continue\r\n\r\n")
            for _ in range(2):
                silent = await server.connect()
                assert await _refusal(silent[0]) == (408, "RequestTimeout")  # so that this much time has passed
                silent[1].close()
            server.app.may_read.set()
            assert await asking[0].readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
            await _send(asking[1], b"hi")
            assert (await _answer(asking[0]))[2] == b"hi"
            await _send(many[1], b"x" * 100_000)
            assert (await _answer(many[0]))[2] == b"x" * 300_000
            for _, writer in (many, asking):
                writer.close()

    run(work())


def test_an_empty_line_after_an_answer_does_not_keep_a_connection(run: Callable[..., None]) -> None:
    async def work() -> None:
        async with Server(HURRIED) as server:
            reader, writer = await server.connect()
            await _send(writer, GET)
            assert (await _answer(reader))[0] == 200
            await _send(writer, b"\r\n")
            assert await _refusal(reader) == (408, "RequestTimeout")
            writer.close()

    run(work())


def test_an_idle_connection_is_closed_without_an_answer(run: Callable[..., None]) -> None:
    async def work() -> None:
        async with Server(replace(SLOW, idle_connection_seconds=SOON)) as server:
            reader, writer = await server.connect()
            await _send(writer, GET)
            assert (await _answer(reader))[0] == 200
            assert await reader.read() == b""
            writer.close()

    run(work())


SILENT = {
    "nothing": b"",
    "half a head": b"GET / HTTP/1.1\r\nhost: he",
    "a request that was answered": GET,
    "half a body": b"POST / HTTP/1.1\r\ncontent-length: 1000\r\n\r\n{",
    "half a body in chunks": CHUNKED + b"2\r\nhi\r\n",
}


@pytest.mark.parametrize("sent", SILENT.values(), ids=SILENT)
def test_silent_clients_keep_no_other_waiting(
    run: Callable[..., None], sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_server, "SILENT_SECONDS", 0.3)
    monkeypatch.setattr(bounded_server, "LOOK_SECONDS", 0.05)

    async def work() -> None:
        async with Server(replace(SLOW, connections_max=5)) as server:
            held = [await server.connect() for _ in range(8)]
            for _, writer in held:
                await _send(writer, sent)
            reader, writer = await server.connect()
            await _send(writer, GET)
            assert (await _answer(reader))[0] == 200
            assert server.connections <= 5
            for _, each in (*held, (reader, writer)):
                each.close()

    run(work())


def test_a_client_that_waits_for_its_answer_is_not_silent(
    run: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_server, "SILENT_SECONDS", 0)
    monkeypatch.setattr(bounded_server, "LOOK_SECONDS", 0.01)

    async def work() -> None:
        async with Server(replace(SLOW, connections_max=3)) as server:
            server.app.may_read.clear()
            pairs = [await server.connect() for _ in range(3)]
            for _, writer in pairs:
                await _send(writer, GET)
                await server.app.begun.acquire()
            pairs.append(await server.connect())
            await _send(pairs[-1][1], GET)
            looked = asyncio.Event()
            asyncio.get_running_loop().call_later(SOON, looked.set)
            await looked.wait()  # many times meanwhile
            assert len(server.app.scopes) == 3
            server.app.may_read.set()
            for reader, _ in pairs:
                assert (await _answer(reader))[0] == 200
            for _, writer in pairs:
                writer.close()

    run(work())


def test_connections_above_the_limit_wait(run: Callable[..., None]) -> None:
    async def work() -> None:
        async with Server(replace(SLOW, connections_max=5)) as server:
            pairs = [await server.connect() for _ in range(12)]
            for _, writer in pairs:
                await _send(writer, GET)
            for reader, _ in pairs[:5]:
                assert (await _answer(reader))[0] == 200
            assert server.connections == len(server.app.scopes) == 5
            for place, (reader, writer) in enumerate(pairs):
                if place >= 5:
                    assert (await _answer(reader))[0] == 200
                assert server.connections <= 5
                writer.close()

    run(work())
