"""Starts, kills, stops and continues the server processes of a run, limits their disks and steps their clocks."""

import asyncio
import contextlib
import os
import re
import resource
import signal
import time
from datetime import datetime
from pathlib import Path

import aiohttp

from tests.chaos.clock import ShiftedClock
from tests.chaos.node import NodeArguments
from tests.chaos.starters import Starter
from tests.support.ports import free_port
from tests.support.processes import family_of

READY_SECONDS = 90
"""Only a server that hangs takes this long to start."""

DRAIN_SECONDS = 1.0
"""When a node leaves, some of its calls end within this time, and some do not and are handed over."""

LEAVE_SECONDS = DRAIN_SECONDS + 40
"""Only a server that hangs takes this long to shut down."""

LOOK_SECONDS = 0.03
METRICS_SECONDS = 10
LOG_LINES = 40
LAPSE = r"^(\S+Z) .* it continues under the new id \S+$"


class Node:
    """One server: always the same port, clock and log, but one process after another."""

    def __init__(
        self, name: str, database_url: str, folder: Path, starter: Starter, places: int, processes: int
    ) -> None:
        self.name = name
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log_file = folder / f"{name}.log"
        self.clock = ShiftedClock(folder / f"{name}.clock")
        self.busy = False
        """Whether a fault is under way here."""
        self.calls_waiting = 0.0
        """The calls that waited for a slot at the last reading."""
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
        """The value of a metric. Raises aiohttp.ClientError or TimeoutError."""
        async with session.get(f"{self.url}/metrics", timeout=aiohttp.ClientTimeout(METRICS_SECONDS)) as reply:
            lines = (await reply.text()).splitlines()
        return next((float(line.split()[1]) for line in lines if line.startswith(f"{name} ")), None)

    def log_end(self) -> str:
        """The last lines of its log."""
        return "\n".join(self.log_file.read_text().splitlines()[-LOG_LINES:])

    def lapses(self) -> list[float]:
        """The instants, in seconds of the monotonic clock, at which it noticed that others had declared it dead."""
        ahead = time.time() - time.monotonic()
        stamps = re.findall(LAPSE, self.log_file.read_text(), re.M)
        return [datetime.fromisoformat(stamp).timestamp() - ahead for stamp in stamps]

    def is_alive(self) -> bool:
        """Whether its process exists, even if stopped. A process that has ended but was not waited for does
        not count.
        """
        return _is_alive(self._pid)

    async def kill(self) -> float:
        """End the server at once; returns the instant of the kill, in seconds of the monotonic clock.

        If it has two processes, kills of the one and the other alternate; the other then ends by itself.
        """
        family = family_of(self._pid)
        killed_at = time.monotonic()
        with contextlib.suppress(ProcessLookupError):
            os.kill(family[self._kills % len(family)] if family else self._pid, signal.SIGKILL)
        self._kills += 1
        while any(map(_is_alive, family)):
            await asyncio.sleep(0.002)
        self._starter.exit_code(self._pid)  # after any exception nothing of the process may remain
        return killed_at

    def halt(self) -> None:
        """Stop it until `resume`, as if its machine were frozen."""
        os.kill(self._pid, signal.SIGSTOP)

    def resume(self) -> None:
        """End the stop."""
        os.kill(self._pid, signal.SIGCONT)

    def fill_disk(self) -> None:
        """Make every write to a file fail, as a full disk does, until `free_disk`."""
        self._limit_files(0)

    def free_disk(self) -> None:
        """Let it write again."""
        self._limit_files(resource.RLIM_INFINITY)

    def _limit_files(self, bytes_max: int) -> None:
        resource.prlimit(self._pid, resource.RLIMIT_FSIZE, (bytes_max, resource.RLIM_INFINITY))

    async def leave(self) -> str | None:
        """Shut it down; returns what went wrong. A process that does not end is killed."""
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
