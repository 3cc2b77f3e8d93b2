"""Executions that last through an upgrade, the functions, people and workers that they wait for, and what must be true
of them at the end.

Each execution calls functions, waits, asks a person, sends to a queue for a worker, goes through a list, and runs a
sub-flow. A third of the people answer only when the upgrade is over, so those tasks are begun by the earlier version
and ended by this one.
"""

import asyncio
import time
from base64 import b64decode
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final
from xml.etree import ElementTree

import aiohttp
from aiohttp import web

from flowserver.base.json_values import JsonObject, load_json_object
from tests.chaos.client import Client
from tests.chaos.journal import Journal

FLOW: Final = """\
version: v1
type: flow
steps:
  - type: task
    name: charge
    resourceArn: acs:fc:::services/shop/functions/double
    inputMappings: [{target: n, source: $input.n}]
    outputMappings: [{target: charged, source: $local.twice}]
  - type: parallel
    name: both
    branches:
      - steps: [{type: wait, name: rest, duration: 2}]
      - steps:
          - type: foreach
            name: each
            inputMappings: [{target: list, source: $input.list}]
            iterationMapping: {collection: $.list, item: n}
            steps:
              - {type: task, name: one, resourceArn: 'acs:fc:::services/shop/functions/double'}
  - type: task
    name: approve
    resourceArn: acs:fc:::services/shop/functions/ask
    pattern: waitForCallback
    inputMappings: [{target: token, source: $context.task.token}, {target: n, source: $input.n}]
    outputMappings: [{target: approved, source: $local.twice}]
  - type: task
    name: pack
    resourceArn: acs:mns:::/queues/parcels/messages
    pattern: waitForCallback
    inputMappings: [{target: token, source: $context.task.token}, {target: n, source: $input.n}]
    serviceParams: {MessageBody: $}
    outputMappings: [{target: packed, source: $local.twice}]
  - type: task
    name: send
    resourceArn: acs:fnf:::flow/sending
    pattern: sync
    inputMappings: [{target: n, source: $input.n}]
    outputMappings: [{target: sent, source: $local.twice}]
"""
SENDING: Final = """\
version: v1
type: flow
steps:
  - {type: wait, name: drive, duration: 1}
  - type: task
    name: deliver
    resourceArn: acs:fc:::services/shop/functions/double
    inputMappings: [{target: n, source: $input.n}]
    outputMappings: [{target: twice, source: $local.twice}]
"""
OUTPUTS: Final = ("charged", "approved", "packed", "sent")

QUEUE: Final = "/queues/parcels"
WORKERS: Final = 4
POLL_SECONDS: Final = 2
LATE_SECONDS: Final = 8.0
PAUSE_SECONDS: Final = 0.3
END_SECONDS: Final = 120
"""Within this time after the upgrade every execution must have ended."""


@dataclass(slots=True)
class Started:
    """An execution whose start was acknowledged, and the reports on its tasks that were."""

    name: str
    n: int
    reports: dict[int, str] = field(default_factory=dict)
    """The steps by the ids of the events that the answers named."""

    @property
    def output(self) -> JsonObject:
        """What it must end with."""
        return dict.fromkeys(OUTPUTS, 2 * self.n)


class UpgradeLoad:
    """Starts executions while it is `running`, and settles their tasks; `urls` are those of the servers now."""

    def __init__(self, session: aiohttp.ClientSession, urls: Sequence[str], journal: Journal, seed: int) -> None:
        self.started: dict[str, Started] = {}
        self.calls: Counter[str] = Counter()
        """The calls of functions by idempotency key."""
        self._session = session
        self._urls = urls
        self._journal = journal
        self._random = Random(seed)
        self._client = Client(session, urls, journal, self._random)
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_over = asyncio.Event()

    @asynccontextmanager
    async def running(self, executions_max: int, per_second: float) -> AsyncIterator[None]:
        """Functions, people and workers are there; `executions_max` executions at most are started while the block
        runs. Returns when all have ended, or after `END_SECONDS`."""
        async with self._functions() as url:
            await self._prepare(url)
            for _ in range(WORKERS):
                self._spawn(self._work())
            starting = self._spawn(self._start_many(executions_max, per_second))
            try:
                yield
                starting.cancel()
                self._is_over.set()
                await self._await_ends()
            finally:
                for task in self._tasks:
                    task.cancel()
                await asyncio.gather(*self._tasks, return_exceptions=True)

    async def running_of(self, names: Sequence[str]) -> int:
        """How many of these executions have not ended."""
        paths = [f"/v1/flows/order/executions/{name}" for name in names]
        return sum([(await self._client.ask("GET", path)).body["status"] == "Running" for path in paths])

    async def check(self) -> None:
        """Record a complaint for each start and each report that is lost, and each execution that has not succeeded."""
        for started in self.started.values():
            path = f"/v1/flows/order/executions/{started.name}"
            shown = (await self._client.ask("GET", path)).body
            if (shown.get("status"), shown.get("output")) != ("Succeeded", started.output):
                said = {name: shown.get(name) for name in ("code", "status", "error", "cause", "output")}
                self._journal.complaints.append(f"{started.name} must end with {started.output}, and is {said}")
                continue
            page = (await self._client.ask("GET", f"{path}/events?limit=1000")).body
            events = {event["eventId"]: (event["type"], event["stepName"]) for event in page["events"]}
            for event_id, step in started.reports.items():
                if events.get(event_id) != ("TaskSucceeded", step):
                    complaint = f"{started.name}: the report on {step} is not event {event_id}, which was answered"
                    self._journal.complaints.append(complaint)

    # Clients

    async def _prepare(self, url: str) -> None:
        for name in ("double", "ask"):
            await self._must("PUT", f"/v1/functions/shop/{name}", {"url": f"{url}/{name}"})
        for name, definition in (("sending", SENDING), ("order", FLOW)):
            await self._must("PUT", f"/v1/flows/{name}", {"definition": definition})
        async with self._session.put(self._urls[0] + QUEUE, data="<Queue/>") as reply:
            assert reply.status < 300, await reply.text()

    async def _must(self, method: str, path: str, body: Any) -> Any:
        reply = await self._client.ask(method, path, body)
        assert reply.status < 300, (path, reply.body)
        return reply.body

    async def _start_many(self, executions_max: int, per_second: float) -> None:
        began = time.monotonic()
        for number in range(executions_max):
            await asyncio.sleep(max(0.0, began + number / per_second - time.monotonic()))
            self._spawn(self._start(Started(f"run{number}", number)))

    async def _start(self, started: Started) -> None:
        self.started[started.name] = started  # its functions may be called before its start is answered
        body = {"name": started.name, "input": {"n": started.n, "list": [1, 2, 3]}}
        reply = await self._client.ask("POST", "/v1/flows/order/executions", body)
        if reply.status not in (200, 201):
            self._journal.complaints.append(f"the start of {started.name} was answered {reply.status} {reply.body}")

    async def _await_ends(self) -> None:
        until = time.monotonic() + END_SECONDS
        while time.monotonic() < until:
            pages = [
                await self._client.ask("GET", f"/v1/flows/{flow}/executions?status=Running&limit=1")
                for flow in ("order", "sending")
            ]
            if not any(page.body["executions"] for page in pages):
                return
            await asyncio.sleep(PAUSE_SECONDS)

    # What executions wait for

    @asynccontextmanager
    async def _functions(self) -> AsyncIterator[str]:
        app = web.Application()
        app.router.add_post("/double", self._double)
        app.router.add_post("/ask", self._ask)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        try:
            yield f"http://{host}:{port}"
        finally:
            await runner.cleanup()

    async def _double(self, request: web.Request) -> web.Response:
        event = await request.json()
        self.calls[request.headers["Idempotency-Key"]] += 1
        await asyncio.sleep(self._random.random())  # so that nodes leave while calls are under way
        return web.json_response({"twice": 2 * event.get("n", 0)})

    async def _ask(self, request: web.Request) -> web.Response:
        self.calls[request.headers["Idempotency-Key"]] += 1
        self._spawn(self._answer(await request.json(), request.headers["X-Flowserver-Execution"]))
        return web.json_response({})

    async def _answer(self, event: JsonObject, execution: str) -> None:
        """A person's report: at once, later, or when the upgrade is over."""
        waits: Sequence[Callable[[], Awaitable[object]]] = (
            lambda: asyncio.sleep(0),
            lambda: asyncio.sleep(LATE_SECONDS * self._random.random()),
            self._is_over.wait,
        )
        await waits[int(event["n"]) % len(waits)]()
        await self._report(event, execution, "approve")

    async def _work(self) -> None:
        """A worker: receives from any server, reports, and deletes the message."""
        while True:
            url = self._random.choice(self._urls) + QUEUE + "/messages"
            try:
                async with self._session.get(url, params={"waitseconds": POLL_SECONDS}) as reply:
                    if reply.status != 200:
                        await asyncio.sleep(PAUSE_SECONDS if reply.status >= 500 else 0)
                        continue
                    message = _fields(await reply.text())
                event = load_json_object(b64decode(message["MessageBody"]).decode())
                await self._report(event, f"run{event['n']}", "pack")
                async with self._session.delete(url, params={"ReceiptHandle": message["ReceiptHandle"]}):
                    pass  # a message that was not deleted comes again
            except (aiohttp.ClientError, TimeoutError, OSError):
                await asyncio.sleep(PAUSE_SECONDS)

    async def _report(self, event: JsonObject, execution: str, step: str) -> None:
        body = {"taskToken": event["token"], "output": {"twice": 2 * event["n"]}}
        while (reply := await self._client.ask("POST", "/v1/tasks/succeed", body)).code == "TaskInvalidState":
            await asyncio.sleep(PAUSE_SECONDS)  # between two attempts
        if reply.status == 200:
            self.started[execution].reports[reply.body["eventId"]] = step
        elif reply.code != "TaskAlreadyCompleted":  # an earlier try counted, or another copy of the message
            said = f"{reply.status} {reply.body}"
            self._journal.complaints.append(f"the report on {step} of {execution} was answered {said}")

    def _spawn(self, work: Any) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._journal.complaints.append(f"a client failed: {task.exception()!r}")


def _fields(text: str) -> dict[str, str]:
    return {each.tag.rpartition("}")[2]: each.text or "" for each in ElementTree.fromstring(text)}  # ours
