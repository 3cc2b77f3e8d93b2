"""The server processes of a run: started, killed, stopped, halted, cramped and put out of time from here."""

import asyncio
import contextlib
import os
import re
import resource
import secrets
import signal
import socket
import time
from datetime import datetime
from pathlib import Path

import aiohttp

from tests.chaos.clock import ShiftedClock
from tests.chaos.node import NodeArguments
from tests.chaos.starters import Starter
from tests.support.processes import family_of

READY_SECONDS = 90
"""Only a server that hangs takes as long to come up."""

DRAIN_SECONDS = 1.0
"""Some calls under way on a node that leaves end within it, and some do not and are given away."""

LEAVE_SECONDS = DRAIN_SECONDS + 40
"""Only a server that hangs takes as long to end in order."""

LOOK_SECONDS = 0.03
METRICS_SECONDS = 10
LOG_LINES = 40
LAPSE = r"^(\S+Z) .* it continues under the new id \S+$"
PORTS = range(20_000, 32_000)


class Node:
    """One place among the servers: always the same port, clock and log, but one process after the other."""

    def __init__(
        self, name: str, database_url: str, folder: Path, starter: Starter, places: int, processes: int
    ) -> None:
        self.name = name
        self.port = _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log_file = folder / f"{name}.log"
        self.clock = ShiftedClock(folder / f"{name}.clock")
        self.busy = False
        """Whether a fault has it in its hands."""
        self.calls_waiting = 0.0
        """As many as waited for a place when somebody looked last."""
        self._pid = 0
        self._kills = 0
        self._starter = starter
        self._arguments = NodeArguments(
            database_url=database_url,
            port=self.port,
            clock_file=str(folder / f"{name}.clock"),
            log_file=str(self.log_file),
            drain_seconds=DRAIN_SECONDS,
            places=places,
            processes=processes,
        )

    def start(self) -> None:
        """Begin a new process."""
        self._pid = self._starter.start(self._arguments)

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
        """The value that its /metrics has under a name. Raises aiohttp.ClientError or TimeoutError."""
        async with session.get(f"{self.url}/metrics", timeout=aiohttp.ClientTimeout(METRICS_SECONDS)) as reply:
            lines = (await reply.text()).splitlines()
        return next((float(line.split()[1]) for line in lines if line.startswith(f"{name} ")), None)

    def log_end(self) -> str:
        """The last lines that its processes have logged."""
        return "\n".join(self.log_file.read_text().splitlines()[-LOG_LINES:])

    def lapses(self) -> list[float]:
        """The instants, in seconds of the monotonic clock, when it noticed that others had taken it for dead."""
        ahead = time.time() - time.monotonic()
        stamps = re.findall(LAPSE, self.log_file.read_text(), re.M)
        return [datetime.fromisoformat(stamp).timestamp() - ahead for stamp in stamps]

    def is_alive(self) -> bool:
        """Whether its process runs, be it halted; one that has ended but was not collected yet does not."""
        return _is_alive(self._pid)

    async def kill(self) -> float:
        """End the server at once; returns the instant of the kill, in seconds of the monotonic clock.

        If it has two processes, each is killed in turn; the other ends with it.
        """
        family = family_of(self._pid)
        killed_at = time.monotonic()
        with contextlib.suppress(ProcessLookupError):
            os.kill(family[self._kills % len(family)] if family else self._pid, signal.SIGKILL)
        self._kills += 1
        while any(map(_is_alive, family)):
            await asyncio.sleep(0.002)
        self._starter.exit_code(self._pid)  # whatever it is; nothing of the process must stay
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

    async def leave(self) -> str | None:
        """End in order; returns what was wrong about it. A process that does not end is killed."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGTERM)
        try:
            async with asyncio.timeout(LEAVE_SECONDS):
                while self.is_alive():
                    await asyncio.sleep(LOOK_SECONDS)
        except TimeoutError:
            await self.kill()
            return f"{self.name} did not end within {LEAVE_SECONDS:.0f} s of SIGTERM"
        code = self._starter.exit_code(self._pid)
        return None if code == 0 else f"{self.name} ended with {code} on SIGTERM"


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def _free_port() -> int:
    """A port that stays free while a server is down: none that the system gives to outgoing connections, because a
    client that asks for a server that is not there could be connected to itself."""
    while True:
        port = secrets.choice(PORTS)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
