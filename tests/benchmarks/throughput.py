"""Executions per second and CPU per execution: N executions of five function steps, 64 in flight.

`python -m tests.benchmarks.throughput [--executions N] [--in-flight N] [--database sqlite|postgres] [--nodes N]`

Real server processes (full fsync), a trivial function in another process, and a load generator in a third, all on this
machine. CPU is the servers' own, user and system, from the operating system's accounting. With PostgreSQL also what
its processes had to do for one execution.
"""

import argparse
import asyncio
import itertools
import json
import multiprocessing
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from tests.benchmarks.primary import Primary, cpu_seconds_of
from tests.support.postgres import fresh_database, running_postgres
from tests.support.server import ServerProcess

STEPS = 5
ALONE = 20
"""Executions run one after another at the end, for the latency of a server with nothing else to do."""

Meter = Callable[[], dict[str, float]]
"""Reads counters that only grow; the figures are their growth per execution."""

DEFINITION = "version: v1\ntype: flow\nsteps:\n" + "".join(
    f"  - type: task\n    name: step{n}\n    resourceArn: acs:fc:::services/bench/functions/echo\n"
    for n in range(STEPS)
)
INPUT = '{"order":{"id":12345,"items":[1,2,3]},"note":"hello"}'
FUNCTION_REPLY = b'{"ok":true,"amount":42}'


def serve_function(port_out: "multiprocessing.Queue[int]") -> None:
    """The function: reads its event and answers a small object."""

    async def main() -> None:
        async def answer(request: web.Request) -> web.Response:
            await request.read()
            return web.Response(body=FUNCTION_REPLY, content_type="application/json")

        app = web.Application()
        app.router.add_post("/", answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        assert runner.addresses
        port_out.put(runner.addresses[0][1])
        await asyncio.Event().wait()

    asyncio.run(main())


async def prepare(session: aiohttp.ClientSession, function_url: str) -> None:
    """Register the function, create the flow."""
    async with session.put("/v1/functions/bench/echo", json={"url": function_url}) as response:
        assert response.status in (200, 201), await response.text()
    form = {"Action": "CreateFlow", "Name": "bench", "Definition": DEFINITION, "Description": "-", "Type": "FDL"}
    async with session.post("/", data=form) as response:
        assert response.status == 200, await response.text()


async def run_one(session: aiohttp.ClientSession, url: str, name: str) -> float:
    """One execution from its start until its end is known; returns seconds."""
    began = time.perf_counter()
    form = {"Action": "StartSyncExecution", "FlowName": "bench", "ExecutionName": name, "Input": INPUT}
    async with session.post(url, data=form) as response:
        body = json.loads(await response.read())
    assert body["Status"] == "Succeeded", body
    return time.perf_counter() - began


async def run_load(
    urls: Sequence[str], function_url: str, executions: int, in_flight: int, meter: Meter
) -> dict[str, Any]:
    """Run the load after a warm-up, on one server after the other; returns the figures."""
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(urls[0], connector=connector, trust_env=False) as session:
        await prepare(session, function_url)
        numbers = itertools.count()

        async def worker(latencies: list[float], count: int) -> None:
            for _ in range(count):
                number = next(numbers)
                latencies.append(await run_one(session, f"{urls[number % len(urls)]}/", f"e{number}"))

        await asyncio.gather(*(worker([], len(urls)) for _ in range(in_flight)))
        latencies: list[float] = []
        before, began = meter(), time.perf_counter()
        await asyncio.gather(*(worker(latencies, executions // in_flight) for _ in range(in_flight)))
        seconds = time.perf_counter() - began
        after = meter()
        alone: list[float] = []
        await worker(alone, ALONE)
    done = len(latencies)
    latencies.sort()
    return {
        "executions": done,
        "in_flight": in_flight,
        "executions_per_second": round(done / seconds, 1),
        "p50_ms": round(statistics.median(latencies) * 1000, 1),
        "p99_ms": round(latencies[int(done * 0.99) - 1] * 1000, 1),
        "alone_p50_ms": round(statistics.median(alone) * 1000, 1),
        "per_execution": {name: round((after[name] - before[name]) / done, 2) for name in before},
    }


def make_meter(servers: Sequence[ServerProcess], primary: Primary | None) -> Meter:
    """Reads the processor time of the servers, and what the database counts."""

    def read() -> dict[str, float]:
        figures = {"server_cpu_ms": 1000 * sum(cpu_seconds_of(server.process.pid) for server in servers)}
        if primary is not None:
            figures |= {f"postgres_{name}": value for name, value in primary.read().items()}
        return figures

    return read


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executions", type=int, default=3_200)
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--database", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--nodes", type=int, default=1, help="servers on PostgreSQL")
    given = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = f"sqlite:///{folder}/bench.db"
        if given.database == "postgres":
            postgres = stack.enter_context(running_postgres(durable=True))
            url = stack.enter_context(fresh_database(postgres))
        ports: multiprocessing.Queue[int] = multiprocessing.Queue()
        function = multiprocessing.Process(target=serve_function, args=(ports,), daemon=True)
        function.start()
        stack.callback(function.terminate)
        servers = [stack.enter_context(ServerProcess(url, "--migrate"))]
        primary = None
        if given.database == "postgres":
            servers += [stack.enter_context(ServerProcess(url)) for _ in range(1, given.nodes)]
            primary = stack.enter_context(Primary(url))
        function_url = f"http://127.0.0.1:{ports.get(timeout=30)}/"
        urls = [server.url for server in servers]
        meter = make_meter(servers, primary)
        figures = asyncio.run(run_load(urls, function_url, given.executions, given.in_flight, meter))
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}"
    setting = {"database": given.database, "nodes": len(servers), "machine": machine, "steps": STEPS}
    print(json.dumps({**setting, **figures}, indent=2))


if __name__ == "__main__":
    main()
