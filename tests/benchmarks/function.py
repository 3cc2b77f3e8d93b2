"""`python -m tests.benchmarks.function`: the functions that the flows call, in their own process.

A bare asyncio protocol, which costs a quarter of a bare ASGI application under uvicorn, because the machine's cores are
shared with the measured server. It prints its port, and then a line for every event that the load generator needs:
`token EXECUTION TOKEN` and `poll TURN NANOSECONDS`.
"""

import asyncio
import json
import os
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


class Caller(asyncio.Protocol):
    """A connection: `/echo` answers a constant, `/token` passes the task token on, `/poll` counts.

    Functions of hostile neighbours: `/large` answers 49 KB, `/hang` never answers, and `/continues` sends interim
    replies as long as they are read.
    """

    def __init__(self) -> None:
        self._transport: asyncio.Transport
        self._parser = httptools.HttpRequestParser(self)
        self._path = self._execution = self._body = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

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
    _tell(str(server.sockets[0].getsockname()[1]))
    await server.serve_forever()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
