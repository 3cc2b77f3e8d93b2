"""One run: servers, functions, clients and faults together; then the wait for all ends, and the verdict."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

import aiohttp

from flowserver.base.json_values import JsonObject
from tests.chaos.answers import TITLES, SeenFunctions, SteadyFunctions
from tests.chaos.backlog import backlog_watched
from tests.chaos.callees import Callees
from tests.chaos.client import Client
from tests.chaos.faults import Faults
from tests.chaos.flows import FlowSet, make_flow_set
from tests.chaos.invariant import run_doctor, watched
from tests.chaos.journal import Journal
from tests.chaos.load import Load
from tests.chaos.nodes import Node
from tests.chaos.reporter import Reporter
from tests.chaos.starters import Starter
from tests.chaos.verdict import FinalState, Key, Verdict, Violation

END_SECONDS = 60.0
"""Within this time after the last fault every execution must have ended."""

GAUGE_SECONDS = 70.0
"""A server's last check is at most this old, however long its checks take."""

QUIET_SECONDS = 1.0
READERS = 8


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The settings of a run."""

    seed: int
    kills: int
    kinds: Sequence[str]
    nodes: int
    pause_seconds: float
    """The mean time between two faults."""
    minutes: float = 24 * 60.0
    clients: int = 10
    flows: int = 30
    places: int = 4
    """Calls that a node makes at once; with more clients than that, some calls wait."""
    processes: int = 1
    """Of each node."""


@dataclass
class Outcome:
    """The results of a run."""

    plan: Plan
    journal: Journal
    found: dict[Key, FinalState]
    violations: list[Violation]
    seconds: float
    end_seconds: float
    """The time from the last fault to the end of the last execution."""


class Run:
    """The parts of a run, wired together. Create it inside a running event loop."""

    def __init__(
        self,
        plan: Plan,
        database_url: str,
        folder: Path,
        starter: Starter,
        session: aiohttp.ClientSession,
        restart_database: Callable[[], Awaitable[None]] | None,
        log: Callable[[str], None],
    ) -> None:
        functions = SteadyFunctions(str(plan.seed))
        self._plan = plan
        self._session = session
        self._database_url = database_url
        self._journal = Journal(time.monotonic(), log)
        names = [f"node{number}" for number in range(1, plan.nodes + 1)]
        self._nodes = [Node(name, database_url, folder, starter, plan.places, plan.processes) for name in names]
        urls = [node.url for node in self._nodes]
        self._client = Client(session, urls, self._journal, Random(f"{plan.seed} client"))
        self._reporter = Reporter(self._client, self._journal, Random(f"{plan.seed} reporter"))
        random = Random(f"{plan.seed} callees")
        self._callees = Callees(functions, self._journal, random, self._reporter.accept)
        self._flow_set: FlowSet = make_flow_set(plan.seed, plan.flows, SeenFunctions(functions))
        self._load = Load(self._client, self._flow_set, self._journal, Random(f"{plan.seed} load"))
        random = Random(f"{plan.seed} faults")
        self._faults = Faults(self._nodes, plan.kinds, self._journal, random, session, restart_database)

    async def play(self) -> Outcome:
        """Run it and judge it."""
        async with (
            self._callees.serving(),
            self._serving(),
            watched(self._database_url, self._journal),
            backlog_watched(self._nodes, self._session, self._journal),
        ):
            await self._register()
            await self._load.create_flows()
            began = time.monotonic()
            self._journal.log("servers are up; clients and faults begin")
            self._load.begin(self._plan.clients)
            until = began + 60 * self._plan.minutes
            await self._faults.run(self._plan.kills, self._plan.pause_seconds, until)
            await self._faults.heal()
            healed = time.monotonic()
            self._journal.log("all faults are over; waiting for every execution to end")
            await self._load.end()
            await self._await_ends(healed + END_SECONDS)
            ended = time.monotonic()
            self._journal.log("reading all histories")
            await self._await_quiet()
            await self._reporter.stop()
            found = await self._collect()
            await self._read_gauges()
        self._journal.lapses = [lapse for node in self._nodes for lapse in node.lapses()]
        await run_doctor(self._database_url, self._journal)
        violations = Verdict(self._journal, self._flow_set, found).violations()
        return Outcome(self._plan, self._journal, found, violations, healed - began, ended - healed)

    @asynccontextmanager
    async def _serving(self) -> AsyncIterator[None]:
        try:
            await self._faults.start_all()
            yield
        finally:
            ends = await asyncio.gather(*(node.leave() for node in self._nodes))
            self._journal.complaints += [complaint for complaint in ends if complaint is not None]

    async def _register(self) -> None:
        for title in TITLES:
            await self._client.ask("PUT", f"/v1/functions/{title}", {"url": f"{self._callees.url}/{title}"})

    async def _await_ends(self, until: float) -> None:
        while time.monotonic() < until and await self._running():
            await asyncio.sleep(0.3)

    async def _running(self) -> bool:
        for flow in self._flow_set.definitions:
            reply = await self._client.ask("GET", f"/v1/flows/{flow}/executions?status=Running&limit=1")
            if reply.body["executions"]:
                return True
        return False

    async def _await_quiet(self) -> None:
        """Return when no function is called any more: a call may outlive its execution."""
        last = -1
        while last != len(self._journal.calls):
            last = len(self._journal.calls)
            await asyncio.sleep(QUIET_SECONDS)

    async def _read_gauges(self) -> None:
        """Record a complaint if a server continues to report an execution as stuck.

        A server caches its check for some time. A check made under load, or before its clock was set right, may have
        found overdue work that is done by now. A check that failed because of a fault reports no number.
        """
        until = time.monotonic() + GAUGE_SECONDS
        for node in self._nodes:
            while (gauge := await node.gauge(self._session, "flowserver_stuck_executions")) != 0:
                if time.monotonic() > until:
                    said = "does not say how many" if gauge is None else f"says that {gauge}"
                    self._journal.complaints.append(f"{node.name} {said} executions are stuck")
                    break
                await asyncio.sleep(0.3)

    # The final state, as servers report it

    async def _collect(self) -> dict[Key, FinalState]:
        """Every execution, as a client can see it."""
        keys = [key for flow in self._flow_set.definitions for key in await self._list(flow)]
        left = iter(keys)
        found: dict[Key, FinalState] = {}

        async def read() -> None:
            for flow, name in left:
                found[flow, name] = await self._read(f"/v1/flows/{flow}/executions/{name}")

        await asyncio.gather(*(read() for _ in range(READERS)))
        return {key: found[key] for key in keys}

    async def _list(self, flow: str) -> list[Key]:
        keys: list[Key] = []
        token = ""
        while True:
            page = await self._client.ask("GET", f"/v1/flows/{flow}/executions?limit=100{token}")
            keys += [(flow, each["name"]) for each in page.body["executions"]]
            if page.body["nextToken"] is None:
                return keys
            token = f"&nextToken={page.body['nextToken']}"

    async def _read(self, path: str) -> FinalState:
        document: JsonObject = (await self._client.ask("GET", path)).body
        events: list[JsonObject] = []
        token = ""
        while True:
            page = (await self._client.ask("GET", f"{path}/events?limit=1000{token}")).body
            events += page["events"]
            if page["nextToken"] is None:
                return FinalState({name: document[name] for name in _KEPT}, [_trimmed(event) for event in events])
            token = f"&nextToken={page['nextToken']}"


_KEPT = ("status", "input", "output", "error", "cause", "parkedError")


def _trimmed(event: JsonObject) -> JsonObject:
    return {name: event[name] for name in ("eventId", "scheduleEventId", "type", "stepName", "time")}
