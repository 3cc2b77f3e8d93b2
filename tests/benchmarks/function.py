"""`python -m tests.benchmarks.function`: the functions that the flows call, in their own process.

A bare asyncio protocol, which costs a quarter of a bare ASGI application under uvicorn, because the machine's cores are
shared with the measured server. It prints its port, and then a line for every event that the load generator needs:
`token EXECUTION TOKEN` and `poll TURN NANOSECONDS`.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Self, cast

import httptools
import uvloop

from tests.support.server import clean_environment

PATHS = ("echo", "token", "poll")
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
CONSTANT = b'{"ok":true,"amount":42}'
LARGE = json.dumps({"text": "x" * 49_000}).encode()
PIECE = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
ENDLESS = {
    b"/gigabyte": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", PIECE, 16_384, 0.0),
    b"/trickle": (b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", b"1", 1_000_000, 0.01),
}
"""Head, piece, number of pieces, and the pause before each in seconds."""

CONTINUES = b"HTTP/1.1 100 Continue\r\n\r\n" * 2_000


class FunctionProcess:
    """Runs the functions while the block runs; `lines` is the pipe that they print to."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        command = [sys.executable, "-m", "tests.benchmarks.function"]
        self.process = subprocess.Popen(
            command, env=clean_environment() | dict(environment), stdout=subprocess.PIPE, bufsize=0
        )
        assert self.process.stdout is not None
        self.lines = self.process.stdout
        port = int(self.lines.readline())
        self.url = f"http://127.0.0.1:{port}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: TracebackType | BaseException | None) -> None:
        self.process.kill()
        self.process.wait()
        self.lines.close()

    def told(self) -> list[bytes]:
        """The lines that it has printed, once it has no connection any more; then it ends."""
        self.process.terminate()
        return self.lines.readlines()


class Caller(asyncio.Protocol):
    """A connection: `/echo` answers a constant, `/token` passes the task token on, `/poll` counts.

    Functions of hostile neighbours: `/large` answers 49 KB, `/hang` never answers, `/continues` sends interim replies
    as long as they are read, `/gigabyte` a reply of 1 GiB, and `/trickle` a reply of 1 MB, one byte every 10 ms. The
    last two print `sent BYTES` when their connection is closed.
    """

    def __init__(self) -> None:
        self._transport: asyncio.Transport
        self._parser = httptools.HttpRequestParser(self)
        self._path = self._execution = self._body = b""
        self._sent: int | None = None
        """The bytes of an endless reply that were sent."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._has_room = asyncio.Event()
        self._has_room.set()

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def connection_lost(self, _: Exception | None) -> None:
        if self._sent is not None:
            self._has_room.set()
            _tell(f"sent {self._sent}")

    def pause_writing(self) -> None:
        self._has_room.clear()

    def resume_writing(self) -> None:
        self._has_room.set()

    # Callbacks of the parser

    def on_url(self, path: bytes) -> None:
        self._path, self._body = path, b""

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"x-flowserver-execution":
            self._execution = value

    def on_body(self, part: bytes) -> None:
        self._body += part

    def on_message_complete(self) -> None:
        if self._path == b"/hang":
            return
        if self._path == b"/continues":
            self._continue()
            return
        if self._path in ENDLESS:
            self._sending = asyncio.create_task(self._send_slowly(*ENDLESS[self._path]))
            return
        reply = LARGE if self._path == b"/large" else CONSTANT
        if self._path == b"/token":
            _tell(f"token {self._execution.decode()} {json.loads(self._body)['token']}")
        elif self._path == b"/poll":
            reply = _poll(json.loads(self._body))
        self._transport.write(HEAD % len(reply) + reply)

    def _continue(self) -> None:
        """Send one interim reply, and the next one when it has been read."""
        if self._transport.is_closing():
            return
        if not self._transport.get_write_buffer_size():
            self._transport.write(CONTINUES)
        asyncio.get_running_loop().call_later(0.001, self._continue)

    async def _send_slowly(self, head: bytes, piece: bytes, count: int, pause_seconds: float) -> None:
        """Send a reply piece by piece, as it is read, until it is whole or its reader has closed the connection."""
        self._sent = 0
        self._transport.write(head)
        for _ in range(count):
            await self._has_room.wait()
            if pause_seconds:
                await asyncio.sleep(pause_seconds)
            if self._transport.is_closing():
                return
            self._transport.write(piece)
            self._sent += len(piece)


def _poll(event: dict[str, int]) -> bytes:
    turn = event["try_count"] + 1
    _tell(f"poll {turn} {time.perf_counter_ns()}")  # this clock is the same for all processes
    status = "running" if turn < event["turns"] else "success"
    return json.dumps({"job_status": status, "try_count": turn}).encode()


def _tell(line: str) -> None:
    with suppress(BrokenPipeError):  # at the end the load generator may exit first
        os.write(1, f"{line}\n".encode())  # one write, small enough for a pipe to take it whole


async def main() -> None:
    server = await asyncio.get_running_loop().create_server(Caller, "127.0.0.1", 0, backlog=1024)
    loop = asyncio.get_running_loop()
    is_over = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, is_over.set)
    _tell(str(server.sockets[0].getsockname()[1]))
    await is_over.wait()
    server.close()
    await server.wait_closed()  # uvloop: once all connections are closed


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
