"""The fault loop: which fault happens to which server and when, all from a seed. Faults of different nodes overlap."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from random import Random

import aiohttp

from tests.chaos.journal import Fault, Journal
from tests.chaos.nodes import Node

KINDS = ("kill", "leave", "stop", "restart-postgres", "disk", "clock")
WEIGHTS = {"leave": 0.15, "stop": 0.10, "restart-postgres": 0.04, "disk": 0.10, "clock": 0.08}
"""The number of other faults per kill."""

CALLS_BETWEEN_MAX = 6
CALLS_SECONDS = 3.0
"""The most function calls to wait for between two faults."""

HALT_SECONDS = (3.0, 5.0)
"""Longer than a node may be silent."""

BACKLOG_SECONDS = 3.0
"""A node that is to leave waits at most this long for a backlog of calls, because some should be handed over."""

DOWN_SECONDS = (0.0, 2.5)
DISK_SECONDS = (0.5, 2.0)
CLOCK_SECONDS = (2.0, 8.0)
CLOCK_STEPS_MS = (-30_000, -5_000, 30_000, 60_000, 3_600_000)


class Faults:
    """Injects all faults of one run."""

    def __init__(
        self,
        nodes: Sequence[Node],
        kinds: Sequence[str],
        journal: Journal,
        random: Random,
        session: aiohttp.ClientSession,
        restart_database: Callable[[], Awaitable[None]] | None,
    ) -> None:
        self.offset_ms_max = 0
        """The largest offset of any clock."""
        self._nodes = nodes
        self._journal = journal
        self._random = random
        self._session = session
        self._restart_database = restart_database
        self._actions: dict[str, Callable[[Node], Coroutine[None, None, None]]] = {
            "kill": self._kill, "leave": self._leave, "stop": self._halt, "disk": self._fill_disk,
            "clock": self._step_clock,
        }  # fmt: skip
        absent = {"restart-postgres"} if restart_database is None else {"disk"}
        self._kinds = [kind for kind in kinds if kind not in absent]
        self._database_restarts: list[float] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._database_lock = asyncio.Lock()

    async def start_all(self) -> None:
        """Start every node and return when all answer."""
        for node in self._nodes:
            node.start()
        for node in self._nodes:
            if not await node.wait_until_ready(self._session):
                raise AssertionError(f"{node.name} does not start:\n{node.log_end()}")

    async def run(self, kills: int, pause_seconds: float, until: float) -> None:
        """Make this many kills, with other faults in between; stop early at the instant `until`."""
        for kind in self._sequence(kills):
            await asyncio.sleep(min(self._random.expovariate(1 / pause_seconds), 4 * pause_seconds))
            node = await self._free_node()
            await self._wait_for_calls(self._random.randint(1, CALLS_BETWEEN_MAX))
            if time.monotonic() > until:
                return
            if kind == "restart-postgres":
                self._begin(kind, self._restart())
            else:
                self._begin_at(kind, node)

    async def _wait_for_calls(self, count: int) -> None:
        """Wait for `count` further calls, and for one call under way per node, so that the next fault interrupts some.
        A slow machine stops waiting after `CALLS_SECONDS`.
        """
        enough = len(self._journal.calls) + count
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CALLS_SECONDS):
                while len(self._journal.calls) < enough or self._journal.calls_at_work < len(self._nodes):
                    await asyncio.sleep(0.005)

    def _sequence(self, kills: int) -> list[str]:
        """The kinds of all faults in order, each kind at least once."""
        kinds = [kind for kind in self._kinds for _ in range(max(1, round(WEIGHTS.get(kind, 1.0) * kills)))]
        self._random.shuffle(kinds)
        return kinds

    async def heal(self) -> None:
        """Let all faults end, then set every clock to the largest offset, so that every timer is due."""
        await asyncio.gather(*self._tasks)
        for node in self._nodes:
            if not node.is_alive():
                self._journal.complaints.append(f"{node.name} ended by itself")
                node.start()
            node.clock.step_to(self.offset_ms_max)

    async def _free_node(self) -> Node:
        while not (free := [node for node in self._nodes if not node.busy]):
            await asyncio.sleep(0.01)
        return self._random.choice(free)

    def _begin_at(self, kind: str, node: Node) -> None:
        if not node.is_alive():
            self._journal.complaints.append(f"{node.name} ended by itself")
            node.start()
        node.busy = True
        task = self._begin(f"{kind} {node.name}", self._actions[kind](node))
        task.add_done_callback(lambda _: setattr(node, "busy", False))

    def _begin(self, name: str, doing: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(self._recorded(name, doing), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _recorded(self, name: str, doing: Coroutine[None, None, None]) -> None:
        try:
            await doing
        except Exception as error:
            self._journal.complaints.append(f"{name}: {error!r}")

    def _between(self, bounds: tuple[float, float]) -> float:
        return self._random.uniform(*bounds)

    # The faults

    async def _kill(self, node: Node) -> None:
        fault = self._journal.fault(time.monotonic(), "kill", node.name)
        fault.at = await node.kill()
        if len(self._nodes) > 1:
            await asyncio.sleep(self._between(DOWN_SECONDS))
        await self._start(node, fault)

    async def _leave(self, node: Node) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(BACKLOG_SECONDS):
                while not node.calls_waiting:
                    await asyncio.sleep(0.02)
        note = f"({node.calls_waiting:.0f} calls waited there)"
        fault = self._journal.fault(time.monotonic(), "leave", node.name, note)
        complaint = await node.leave()
        fault.until = time.monotonic()
        if complaint is not None:
            self._journal.complaints.append(complaint)
        await self._start(node, fault)

    async def _start(self, node: Node, fault: Fault) -> None:
        """Start it, repeatedly while the database is down."""
        fault.started_at = time.monotonic()
        while True:
            node.start()
            begun = time.monotonic()
            if await node.wait_until_ready(self._session):
                fault.ready_at = time.monotonic()
                return
            was_away = any(begun - 15 < restart for restart in self._database_restarts)
            if not was_away and not self._database_lock.locked():
                raise AssertionError(f"it does not start:\n{node.log_end()}")
            fault.tries += 1
            await asyncio.sleep(0.2)

    async def _halt(self, node: Node) -> None:
        fault = self._journal.fault(time.monotonic(), "stop", node.name)
        node.halt()
        await asyncio.sleep(self._between(HALT_SECONDS))
        node.resume()
        fault.until = time.monotonic()

    async def _fill_disk(self, node: Node) -> None:
        fault = self._journal.fault(time.monotonic(), "disk", node.name)
        node.fill_disk()
        await asyncio.sleep(self._between(DISK_SECONDS))
        node.free_disk()
        fault.until = time.monotonic()

    async def _step_clock(self, node: Node) -> None:
        offset_ms = self._random.choice(CLOCK_STEPS_MS)
        fault = self._journal.fault(time.monotonic(), "clock", node.name, f"{offset_ms / 1000:+.0f} s")
        self.offset_ms_max = max(self.offset_ms_max, offset_ms)
        node.clock.step_to(offset_ms)
        await asyncio.sleep(self._between(CLOCK_SECONDS))
        node.clock.step_to(0)
        fault.until = time.monotonic()

    async def _restart(self) -> None:
        assert self._restart_database is not None
        async with self._database_lock:
            await self._restart_alone(self._restart_database)

    async def _restart_alone(self, restart_database: Callable[[], Awaitable[None]]) -> None:
        fault = self._journal.fault(time.monotonic(), "restart-postgres", "database")
        self._database_restarts.append(fault.at)
        try:
            await restart_database()
        finally:
            fault.until = time.monotonic()
            self._database_restarts.append(fault.until)
