"""What 20 open consoles cost a server that is at work.

`python -m tests.benchmarks.consoles URL COUNT EXECUTION…` is their process: it makes the requests that the pages of the
console make (`flowserver/console/pages`), from the line `on` of its input to the line `off`. A third of the consoles
shows the overview, a third the list of executions, and each of the others one of the executions, which goes on.
"""

import asyncio
import json
import os
import sys
import time
from asyncio.subprocess import PIPE, create_subprocess_exec
from collections.abc import Coroutine
from typing import Any

import uvloop

from tests.benchmarks import definitions
from tests.benchmarks.client import Client, rpc
from tests.benchmarks.figures import Figures, Rows
from tests.benchmarks.load import run_in_flight
from tests.benchmarks.stage import Stage
from tests.benchmarks.streams import open_stream
from tests.benchmarks.workloads import IN_FLIGHT, SUCCEEDED, Scale
from tests.support.server import clean_environment

CONSOLES = 20
SLICES = 6
"""With consoles, and as many without."""

SLICE_SECONDS = 8.0
BEGIN_SECONDS = {"off": 2.0, "on": 12.0}
"""From the word to the measurement, beside the same work: pages are opened seldom, and stay open."""

POLL_SECONDS = 5.0
ROWS_ON_SCREEN = 25
LOOK_SECONDS = 15.0
FLOW = "poll-slowly"
MIDNIGHT = time.strftime("%Y-%m-%dT00:00:00Z", time.gmtime())


async def consoles(stage: Stage, scale: Scale) -> Rows:
    """Server CPU of a W1 execution beside 20 consoles and without them, in slices by turns on the same server."""
    await stage.create_flow(FLOW, definitions.polling(pause_seconds=1))
    await stage.create_flow("calls", definitions.calls())
    seconds = max(0.5, SLICE_SECONDS * min(1.0, scale.factor))
    turns = round(4 * SLICES * (seconds + sum(BEGIN_SECONDS.values())))
    count = scale(CONSOLES, least=3)
    followed = [f"followed-{number}" for number in range(_shares(count)[2])]
    for name in followed:
        action = rpc("StartExecution", FlowName=FLOW, ExecutionName=name, Input=json.dumps({"turns": turns}))
        (await stage.client.call(action)).require(b'"Status"')
    environment = clean_environment() | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "tests.benchmarks.consoles", stage.client.url, str(count), *followed]
    process = await create_subprocess_exec(*command, env=environment, stdin=PIPE, stdout=PIPE)
    assert process.stdin is not None and process.stdout is not None
    costs: dict[str, list[Figures]] = {"off": [], "on": []}
    try:
        await _w1(stage, seconds)  # warm-up
        for number in range(SLICES):
            for word in ("on", "off") if number % 2 else ("off", "on"):
                process.stdin.write(f"{word}\n".encode())
                await _w1(stage, BEGIN_SECONDS[word] * min(1.0, scale.factor))
                costs[word].append(await _w1(stage, seconds))
        process.stdin.write(b"end\n")
        requests = json.loads(await process.stdout.readline())
    finally:
        process.kill()
        await process.wait()
    for name in followed:
        await stage.client.call(rpc("StopExecution", FlowName=FLOW, ExecutionName=name))
    return {
        "consoles": _compared(costs)
        | {"requests_a_second": requests / (len(costs["on"]) * (seconds + BEGIN_SECONDS["on"]))}
    }


def _shares(count: int) -> tuple[int, int, int]:
    """How many consoles show the overview, the list, and an execution."""
    third = count // 3
    return third, third, count - 2 * third


def _compared(costs: dict[str, list[Figures]]) -> Figures:
    def mean(word: str, name: str) -> float:
        return sum(each[name] for each in costs[word]) / len(costs[word])

    ratios = [on["cpu_ms"] / off["cpu_ms"] for on, off in zip(costs["on"], costs["off"], strict=True)]
    noise = [max(a, b) / min(a, b) for a, b in zip(*[iter(each["cpu_ms"] for each in costs["off"])] * 2, strict=False)]
    return {
        "cpu_ms_without": mean("off", "cpu_ms"),
        "cpu_ms_with": mean("on", "cpu_ms"),
        "cost_percent": 100 * (mean("on", "cpu_ms") / mean("off", "cpu_ms") - 1),
        "cost_percent_least": 100 * (min(ratios) - 1),
        "cost_percent_most": 100 * (max(ratios) - 1),
        "noise_percent": 100 * (max(noise, default=1.0) - 1),
        "w1_rate": mean("on", "rate"),
        "cpu_ms_of_consoles_a_second": (mean("on", "cpu_ms") - mean("off", "cpu_ms")) * mean("on", "rate"),
        "rate_ratio": mean("on", "rate") / mean("off", "rate"),
    }


async def _w1(stage: Stage, seconds: float) -> Figures:
    """W1 for some seconds: server CPU of an execution, in ms, and executions a second."""
    action = rpc("StartSyncExecution", FlowName="calls", Input=definitions.INPUT)
    began, cpu = time.perf_counter(), stage.cpu_seconds()
    until = began + seconds

    def numbers() -> Any:
        number = 0
        while number == 0 or time.perf_counter() < until:
            yield number
            number += 1

    async def piece(_: int) -> None:
        (await stage.client.call(action)).require(SUCCEEDED)

    count = len(await run_in_flight(numbers(), IN_FLIGHT, piece))
    took = time.perf_counter() - began
    return {"cpu_ms": 1000 * (stage.cpu_seconds() - cpu) / count, "rate": count / took}


class _Consoles:
    """The pages, as they ask."""

    def __init__(self, url: str) -> None:
        self._client = Client(url)

    @property
    def requests(self) -> int:
        """All requests but streams."""
        return self._client.requests

    def all(self, count: int, followed: list[str]) -> list[Coroutine[Any, Any, None]]:
        """The pages of all consoles, which began at different times."""
        overviews, lists, _ = _shares(count)
        pages = [self._overview(number / overviews) for number in range(overviews)]
        pages += [self._list(number / lists) for number in range(lists)]
        return pages + [self._execution(name) for name in followed]

    async def _overview(self, share: float) -> None:
        await asyncio.sleep(share * POLL_SECONDS)
        while True:
            (await self._client.get(f"/v1/overview?failedSince={MIDNIGHT}")).require(b"{")
            await asyncio.sleep(POLL_SECONDS)

    async def _list(self, share: float) -> None:
        """Under W1 a whole page is new after five seconds; then only rows on screen that still ran are read, once."""
        await asyncio.sleep(share * POLL_SECONDS)
        rows = (await self._client.get("/v1/executions?limit=50")).json()["executions"]
        await asyncio.sleep(POLL_SECONDS)
        running = [number for number, row in enumerate(rows[:ROWS_ON_SCREEN]) if row["status"] == "Running"]
        for limit in (max(5, 1 + max(running, default=-1)), 50):
            (await self._client.get(f"/v1/executions?limit={limit}")).require(b"{")
        for number in running:
            (await self._client.get(f"/v1/flows/{rows[number]['flowName']}/executions/{rows[number]['name']}")).require(
                b"{"
            )

    async def _execution(self, name: str) -> None:
        place = f"/v1/flows/{FLOW}/executions/{name}"
        for path in (
            "?currentSteps=true",
            "/events?order=desc&limit=1",
            "/events?after=0&limit=100",
        ):
            (await self._client.get(place + path)).require(b"{")
        last = (await self._client.get(f"{place}/steps?within=0.2&limit=1000")).json()["lastEventId"]
        query = f"?paths=true&steps=true&after={last}"
        reader = await open_stream(self._client.url, FLOW, name, query=query)
        try:
            (await self._client.get(f"{place}/events?limit=1&paths=true")).require(b"{")
            while True:
                await asyncio.sleep(LOOK_SECONDS)
                (await self._client.get(f"{place}?currentSteps=true&documents=false")).require(b"{")
        finally:
            reader.ended.cancel()
            await reader.close()


async def _serve(url: str, count: int, followed: list[str]) -> None:
    made = _Consoles(url)
    pages: list[asyncio.Task[None]] = []
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while (word := (await lines.readline()).strip()) in (b"on", b"off"):
        for page in pages:
            page.cancel()
        pages = [asyncio.create_task(page) for page in made.all(count, followed)] if word == b"on" else []
    print(made.requests, flush=True)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(sys.argv[1], int(sys.argv[2]), sys.argv[3:]))
