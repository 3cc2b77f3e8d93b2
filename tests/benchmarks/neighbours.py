"""The effect of a hostile neighbour on a healthy flow and on `/healthz`: each attack runs against its own server.

Both are requested one at a time, first alone and then during the attack. A request that fails or times out counts as
lasting the whole time limit.
"""

import asyncio
import os
import sys
import time
from asyncio.subprocess import PIPE, create_subprocess_exec
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from tests.benchmarks import definitions
from tests.benchmarks.attacks import ATTACKS, BUILD_UP_SECONDS, flow_of
from tests.benchmarks.bytecode import compiled
from tests.benchmarks.client import Client, Reply, rpc
from tests.benchmarks.figures import MIB, Figures, Rows, latency_figures
from tests.benchmarks.function import FunctionProcess
from tests.benchmarks.stage import Stage
from tests.benchmarks.workloads import Scale
from tests.support.server import clean_environment

HEALTHY = "healthy"
PROBE_SECONDS = 10.0
"""The time of each measurement, once alone and once during the attack."""

ANSWER_SECONDS = 60.0
PAUSE_SECONDS = 0.01
"""The pause between two requests, so the measurement is not itself a load."""

Asking = Callable[[Client, int], Awaitable[Reply]]


def neighbour(name: str) -> Callable[[Stage, Scale], Awaitable[Rows]]:
    """The workload that measures during an attack."""

    async def workload(stage: Stage, scale: Scale) -> Rows:
        return {f"neighbour of {name}": await _measure_beside(stage, scale, name)}

    return workload


async def _measure_beside(stage: Stage, scale: Scale, name: str) -> Figures:
    attack, seconds = ATTACKS[name], PROBE_SECONDS * scale.factor
    await stage.create_flow(HEALTHY, definitions.calls())
    if attack.definition is not None:
        await stage.create_flow(flow_of(name), attack.definition)
    if attack.prepare is not None:
        await attack.prepare(stage.client, flow_of(name))
    await _ask_both(stage.client, min(seconds, 1.0))  # warm-up
    alone = await _ask_both(stage.client, seconds)
    with FunctionProcess(
        compiled()
    ) as hostile:  # in its own process, so it does not delay the client of the healthy flow
        for path in attack.functions:
            await stage.client.put(f"/v1/functions/hostile/{path}", {"url": f"{hostile.url}/{path}"})
        async with _under_attack(name, stage.client.url, 2 * seconds + BUILD_UP_SECONDS):
            await asyncio.sleep(min(BUILD_UP_SECONDS, seconds))
            beside = await _ask_both(stage.client, seconds)
            stopped_seconds = await _stop_all(stage.client, flow_of(name)) if attack.definition is not None else 0.0
    figures: Figures = {"stop_ms": 1000 * stopped_seconds, "peak_mib": stage.peak_bytes() / MIB}
    for title, values, failed in ((*alone[0],), (*alone[1],)):
        figures |= {f"{title}_alone_{figure}": value for figure, value in latency_figures(values).items()}
        assert not failed, f"{title} fails without any attack"
    for title, values, failed in beside:
        figures |= {f"{title}_{figure}": value for figure, value in latency_figures(values).items()}
        figures |= {f"{title}_answers": len(values), f"{title}_failed": failed}
        normal = figures[f"{title}_alone_p99_ms"]
        figures[f"{title}_p99_times"] = figures[f"{title}_p99_ms"] / normal
    return figures


async def _ask_both(client: Client, seconds: float) -> list[tuple[str, list[float], int]]:
    """Title, latencies in seconds, and failures of both."""
    action = rpc("StartSyncExecution", FlowName=HEALTHY, Input=definitions.INPUT)
    health, flow = await asyncio.gather(
        _ask(client, lambda asked, _: asked.get("/healthz"), seconds, b"ok"),
        _ask(client, lambda asked, _: asked.call(action), seconds, b'"Status":"Succeeded"'),
    )
    return [("healthz", *health), ("flow", *flow)]


async def _ask(client: Client, asking: Asking, seconds: float, wanted: bytes) -> tuple[list[float], int]:
    latencies: list[float] = []
    failed, end = 0, time.perf_counter() + seconds
    while not latencies or time.perf_counter() < end:
        began = time.perf_counter()
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                reply = await asking(client, len(latencies))
            is_good = reply.status == 200 and wanted in reply.body
        except OSError:  # includes TimeoutError
            is_good = False
        failed += not is_good
        latencies.append(time.perf_counter() - began if is_good else ANSWER_SECONDS)
        await asyncio.sleep(PAUSE_SECONDS)
    return latencies, failed


async def _stop_all(client: Client, flow: str) -> float:
    """Stop the attack's executions. Returns the longest latency in seconds, `ANSWER_SECONDS` if none could be
    stopped.
    """
    slowest = 0.0
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            listing = rpc("ListExecutions", FlowName=flow, Status="Running", Limit=100)
            for execution in (await client.call(listing)).json()["Executions"]:
                began = time.perf_counter()
                await client.call(rpc("StopExecution", FlowName=flow, ExecutionName=execution["Name"]))
                slowest = max(slowest, time.perf_counter() - began)
    except OSError:
        return ANSWER_SECONDS
    return slowest


@asynccontextmanager
async def _under_attack(name: str, url: str, seconds: float) -> AsyncIterator[None]:
    """Attack while the block runs. The attacker ends after the given time, or with the block."""
    command = [sys.executable, "-m", "tests.benchmarks.attacks", name, url, str(seconds)]
    process = await create_subprocess_exec(*command, env=clean_environment() | _path(), stdout=PIPE)
    try:
        assert process.stdout is not None
        await process.stdout.readline()
        yield
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _path() -> dict[str, str]:
    return {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
