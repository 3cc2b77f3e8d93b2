"""The server processes of a run: started, killed, halted, cramped and put out of time from here."""

import asyncio
import contextlib
import os
import resource
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import aiohttp

from tests.chaos.clock import ShiftedClock
from tests.chaos.node import NodeArguments
from tests.support.server import clean_environment

READY_SECONDS = 90
"""Only a server that hangs takes as long to come up."""

LOOK_SECONDS = 0.03
PORTS = range(20_000, 32_000)
MODULE = [sys.executable, "-m", "tests.chaos.node"]


class Starter(Protocol):
    """A way to start server processes."""

    def __call__(self, arguments: NodeArguments) -> int:
        """Start one; returns its pid."""
        ...


@contextlib.contextmanager
def plain_starter() -> Iterator[Starter]:
    """Each server is a fresh Python."""
    started: list[subprocess.Popen[bytes]] = []

    def start(arguments: NodeArguments) -> int:
        for process in started:
            process.poll()  # collects those that have ended
        started.append(subprocess.Popen([*MODULE, arguments.text()], env=clean_environment() | _path()))
        return started[-1].pid

    yield start
    for process in started:
        process.wait(READY_SECONDS)


@contextlib.contextmanager
def fast_starter() -> Iterator[Starter]:
    """Each server is forked from a process that has imported everything."""
    command = [*MODULE, "--forge"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, env=clean_environment() | _path(), text=True, **pipes) as forge:  # type: ignore[call-overload]

        def start(arguments: NodeArguments) -> int:
            forge.stdin.write(arguments.text() + "\n")
            forge.stdin.flush()
            return int(forge.stdout.readline())

        yield start
        forge.stdin.close()


def _path() -> dict[str, str]:
    return {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


class Node:
    """One place among the servers: always the same port, clock and log, but one process after the other."""

    def __init__(self, name: str, database_url: str, folder: Path, starter: Starter) -> None:
        self.name = name
        self.port = _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log_file = folder / f"{name}.log"
        self.clock = ShiftedClock(folder / f"{name}.clock")
        self.busy = False
        """Whether a fault has it in its hands."""
        self.starts = 0
        self._pid = 0
        self._starter = starter
        self._arguments = NodeArguments(database_url, self.port, str(folder / f"{name}.clock"), str(self.log_file))

    def start(self) -> None:
        """Begin a new process."""
        self._pid = self._starter(self._arguments)
        self.starts += 1

    async def wait_until_ready(self, session: aiohttp.ClientSession) -> bool:
        """Return once it answers; False if its process ended instead. Raises TimeoutError if neither happens."""
        async with asyncio.timeout(READY_SECONDS):
            while self.is_alive():
                with contextlib.suppress(aiohttp.ClientError, TimeoutError):
                    async with session.get(f"{self.url}/healthz", timeout=aiohttp.ClientTimeout(2)) as reply:
                        if reply.status == 200:
                            return True
                await asyncio.sleep(LOOK_SECONDS)
        return False

    async def gauge(self, session: aiohttp.ClientSession, name: str) -> float | None:
        """The value that its /metrics has under a name."""
        async with session.get(f"{self.url}/metrics") as reply:
            lines = (await reply.text()).splitlines()
        return next((float(line.split()[1]) for line in lines if line.split()[0] == name), None)

    def is_alive(self) -> bool:
        """Whether its process runs, be it halted; one that has ended but was not collected yet does not."""
        try:
            state = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return False
        return state not in "ZX"

    async def kill(self) -> float:
        """End the process at once; returns the instant of the kill, in seconds of the monotonic clock."""
        killed_at = time.monotonic()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        while self.is_alive():
            await asyncio.sleep(0.002)
        return killed_at

    def halt(self) -> None:
        """Let it do nothing until `go_on`, as if its machine were frozen."""
        os.kill(self._pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """End the halt."""
        os.kill(self._pid, signal.SIGCONT)

    def fill_disk(self) -> None:
        """Make every write to a file fail, as a full disk would, until `free_disk`."""
        self._limit_files(0)

    def free_disk(self) -> None:
        """Let it write again."""
        self._limit_files(resource.RLIM_INFINITY)

    def _limit_files(self, bytes_max: int) -> None:
        resource.prlimit(self._pid, resource.RLIMIT_FSIZE, (bytes_max, resource.RLIM_INFINITY))

    async def stop(self) -> None:
        """End in order; a process that does not is killed."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(30):
                while self.is_alive():
                    await asyncio.sleep(LOOK_SECONDS)
        await self.kill()


def _free_port() -> int:
    """A port that stays free while a server is down: none that the system gives to outgoing connections, because a
    client that asks for a server that is not there could be connected to itself."""
    while True:
        port = secrets.choice(PORTS)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
