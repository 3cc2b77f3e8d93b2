"""Writes to a connection within one turn of the event loop leave as one piece, and no sender fills memory."""

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import pytest
import uvloop
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.server import ServerState

from flowserver.cli.one_packet_answers import WRITTEN_AT_ONCE_BYTES, JoinedWrites, JoiningProtocol

REQUEST = b"GET / HTTP/1.1\r\nhost: here\r\n\r\n"
CHUNK = b"x" * 262_144
PATIENCE_SECONDS = 60


class Noted:
    """A transport that only records its calls."""

    def __init__(self) -> None:
        self.done: list[bytes | str] = []
        self.closing = False

    def write(self, data: bytes) -> None:
        self.done.append(data)

    def close(self) -> None:
        self.done.append("close")
        self.closing = True

    def is_closing(self) -> bool:
        return self.closing


async def test_head_and_body_are_one_write() -> None:
    noted = Noted()
    joined = JoinedWrites(noted)
    joined.write(b"head")
    joined.write(b"body")
    assert noted.done == []
    await asyncio.sleep(0)
    assert noted.done == [b"headbody"]
    joined.write(b"next")
    await asyncio.sleep(0)
    assert noted.done == [b"headbody", b"next"]


async def test_closing_writes_first() -> None:
    noted = Noted()
    joined = JoinedWrites(noted)
    joined.write(b"head")
    joined.write(b"body")
    joined.close()
    await asyncio.sleep(0)
    assert noted.done == [b"headbody", "close"]


async def test_much_data_is_written_at_once() -> None:
    noted = Noted()
    joined = JoinedWrites(noted)
    joined.write(b"head")
    joined.write(b"x" * (WRITTEN_AT_ONCE_BYTES - 5))
    assert noted.done == []
    joined.write(b"x")
    joined.write(b"more")
    assert [len(each) for each in noted.done] == [WRITTEN_AT_ONCE_BYTES]
    await asyncio.sleep(0)
    assert noted.done[1:] == [b"more"]


async def test_data_that_a_lost_connection_did_not_accept_is_dropped() -> None:
    noted = Noted()
    joined = JoinedWrites(noted)
    joined.write(b"head")
    noted.closing = True
    await asyncio.sleep(0)
    assert noted.done == []


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[[Any], Any]:
    """Runs on either event loop, and fails if a callback fails."""

    def run_on_it(work: Any) -> Any:
        failures: list[dict[str, Any]] = []
        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.get_loop().set_exception_handler(lambda _, context: failures.append(context))
            answer = runner.run(asyncio.wait_for(work, PATIENCE_SECONDS))
        assert failures == []
        return answer

    return run_on_it


class Watched(JoiningProtocol):
    """Reports when it is asked to pause and when the connection is lost."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.paused, self.lost = asyncio.Event(), asyncio.Event()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.paused.set()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.lost.set()


class Connected:
    """One connection to an app over a pair of sockets."""

    def __init__(self, app: ASGIApp) -> None:
        config = Config(app, lifespan="off", log_config=None)
        config.load()
        self.protocol = Watched(config, ServerState(), {})
        self.client, self._served = socket.socketpair()
        for end in (self.client, self._served):
            end.setblocking(False)

    async def __aenter__(self) -> "Connected":
        loop = asyncio.get_running_loop()
        await loop.connect_accepted_socket(lambda: self.protocol, self._served)
        await loop.sock_sendall(self.client, REQUEST)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.client.close()
        await self.protocol.lost.wait()


def test_a_client_that_does_not_read_stops_the_sender(run: Callable[[Any], Any]) -> None:
    """An app that waits for nothing else sends no more than the transport's buffer and the sockets hold."""
    sent = 0

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal sent
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(200):
            await send({"type": "http.response.body", "body": CHUNK, "more_body": True})
            sent += 1

    async def connect() -> None:
        async with Connected(app) as connected:
            await connected.protocol.paused.wait()
            for _ in range(20):
                await asyncio.sleep(0)
            assert sent <= 16

    run(connect())


def test_a_write_just_before_the_connection_is_lost_is_silent(run: Callable[[Any], Any]) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await receive()

    async def connect() -> None:
        async with Connected(app) as connected:
            await asyncio.get_running_loop().sock_recv(connected.client, 4_096)
            transport = connected.protocol.transport
            transport.write(b"head")
            transport._transport.abort()  # type: ignore[attr-defined]
            await connected.protocol.lost.wait()
            transport.write(b"body")
            for _ in range(5):
                await asyncio.sleep(0)

    run(connect())
