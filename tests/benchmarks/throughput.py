"""Executions per second and CPU per execution: N executions of five function steps, 64 in flight.

`python -m tests.benchmarks.throughput [--executions N] [--in-flight N] [--database sqlite|postgres]`

A real server process (full fsync), a trivial function in a second process, and a load generator in a third, all on
this machine. CPU is the server process's own, user and system, from the operating system's accounting.
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
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from tests.support.postgres import fresh_database, running_postgres
from tests.support.server import ServerProcess

STEPS = 5
ALONE = 20
"""Executions run one after another at the end, for the latency of a server with nothing else to do."""

CpuClock = Callable[[], float]
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


async def run_one(session: aiohttp.ClientSession, name: str) -> float:
    """One execution from its start until its end is known; returns seconds."""
    began = time.perf_counter()
    form = {"Action": "StartSyncExecution", "FlowName": "bench", "ExecutionName": name, "Input": INPUT}
    async with session.post("/", data=form) as response:
        body = json.loads(await response.read())
    assert body["Status"] == "Succeeded", body
    return time.perf_counter() - began


async def run_load(
    base_url: str, function_url: str, executions: int, in_flight: int, cpu_seconds: CpuClock
) -> dict[str, Any]:
    """Run the load after a warm-up; returns the figures."""
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(base_url, connector=connector, trust_env=False) as session:
        await prepare(session, function_url)
        numbers = itertools.count()

        async def worker(latencies: list[float], count: int) -> None:
            for _ in range(count):
                latencies.append(await run_one(session, f"e{next(numbers)}"))

        await asyncio.gather(*(worker([], 1) for _ in range(in_flight)))
        latencies: list[float] = []
        cpu_before, began = cpu_seconds(), time.perf_counter()
        await asyncio.gather(*(worker(latencies, executions // in_flight) for _ in range(in_flight)))
        seconds = time.perf_counter() - began
        cpu = cpu_seconds() - cpu_before
        alone: list[float] = []
        await worker(alone, ALONE)
    done = len(latencies)
    latencies.sort()
    return {
        "executions": done,
        "in_flight": in_flight,
        "executions_per_second": round(done / seconds, 1),
        "server_cpu_ms_per_execution": round(cpu * 1000 / done, 2),
        "p50_ms": round(statistics.median(latencies) * 1000, 1),
        "p99_ms": round(latencies[int(done * 0.99) - 1] * 1000, 1),
        "alone_p50_ms": round(statistics.median(alone) * 1000, 1),
    }


def cpu_seconds_of(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executions", type=int, default=3_200)
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--database", choices=["sqlite", "postgres"], default="sqlite")
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
        server = stack.enter_context(ServerProcess(url, "--migrate"))
        function_url = f"http://127.0.0.1:{ports.get(timeout=30)}/"
        load = run_load(
            server.url, function_url, given.executions, given.in_flight, lambda: cpu_seconds_of(server.process.pid)
        )
        figures = asyncio.run(load)
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}"
    print(json.dumps({"database": given.database, "machine": machine, "steps": STEPS, **figures}, indent=2))


if __name__ == "__main__":
    main()
