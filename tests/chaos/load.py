"""Clients that start flows, wait for their ends, and stop some. They record what servers acknowledged."""

import asyncio
import time
from random import Random

from flowserver.base.json_values import dump_json
from tests.chaos.client import Client
from tests.chaos.flows import FlowSet, make_input
from tests.chaos.journal import Journal, Start

STOPPED_SHARE = 0.07
WAIT_SECONDS = 5
FOLLOWED_SECONDS = 20.0
"""After this time an execution is left until the end of the run: a stepped clock may delay it."""


class Load:
    """A number of clients, each with one execution at a time."""

    def __init__(self, client: Client, flow_set: FlowSet, journal: Journal, random: Random) -> None:
        self._client = client
        self._flow_set = flow_set
        self._journal = journal
        self._random = random
        self._flows = flow_set.startable()
        self._closing = asyncio.Event()
        self._clients: list[asyncio.Task[None]] = []

    async def create_flows(self) -> None:
        """Create all flows on the servers."""
        for name, definition in self._flow_set.definitions.items():
            reply = await self._client.ask("POST", "/v1/flows", {"name": name, "definition": dump_json(definition)})
            assert reply.status == 201, (name, reply.body)

    def begin(self, clients: int) -> None:
        """Start this many clients."""
        self._clients = [asyncio.create_task(self._serve_client()) for _ in range(clients)]

    async def end(self) -> None:
        """Start no more executions; return when each client has seen the end of its execution or has given up on it."""
        self._closing.set()
        await asyncio.gather(*self._clients)

    async def _serve_client(self) -> None:
        while not self._closing.is_set():
            name = f"run{len(self._journal.starts)}"
            start = Start(self._random.choice(self._flows), name, make_input(self._random))
            self._journal.starts.append(start)
            try:
                await self._run(start)
            except TimeoutError as error:
                self._journal.complaints.append(str(error))
            await asyncio.sleep(0.3 * self._random.random())

    async def _run(self, start: Start) -> None:
        body = {"name": start.name, "input": start.input}
        reply = await self._client.ask("POST", f"/v1/flows/{start.flow}/executions", body)
        known = reply.status == 200 or reply.code == "ExecutionAlreadyExists"
        if reply.status != 201 and not (known and reply.repeated):
            start.complaint = f"the start was answered {reply.status} {reply.body}, after {reply.repeated} lost tries"
            return
        start.acknowledged_at = time.monotonic()
        if self._random.random() < STOPPED_SHARE:
            await asyncio.sleep(1.5 * self._random.random())
            await self._stop(start)
        await self._follow(start)

    async def _stop(self, start: Start) -> None:
        reply = await self._client.ask("POST", f"/v1/flows/{start.flow}/executions/{start.name}/stop", {})
        start.stop_tries = 1 + reply.repeated
        if reply.status == 200:
            start.stop_acknowledged_at = time.monotonic()
        elif reply.code != "ExecutionAlreadyCompleted":
            start.complaint = f"the stop was answered {reply.status} {reply.body}"
        elif not reply.repeated:
            start.stop_tries = 0  # it had ended before

    async def _follow(self, start: Start) -> None:
        until = time.monotonic() + FOLLOWED_SECONDS
        path = f"/v1/flows/{start.flow}/executions/{start.name}"
        while time.monotonic() < until:
            reply = await self._client.ask("GET", path, wait_seconds=WAIT_SECONDS)
            if reply.status != 200:
                start.complaint = f"the acknowledged execution was answered {reply.status} {reply.body}"
                return
            if reply.body["status"] != "Running" or reply.body["parkedError"] is not None:
                return
