"""W4 and W5: executions that are suspended on a task token, their completion, and a crash."""

import asyncio
import time
from collections.abc import Iterable

from tests.benchmarks import definitions
from tests.benchmarks.client import rpc
from tests.benchmarks.figures import MIB, Rows, cost_figures, latency_figures
from tests.benchmarks.load import run_in_flight
from tests.benchmarks.stage import Stage
from tests.benchmarks.workloads import IN_FLIGHT, SUCCEEDED, Scale, finish

IDLE_SECONDS = 10.0


async def suspend_and_complete(stage: Stage, scale: Scale) -> Rows:
    """W4: 1,000 executions suspended, then completed, 32 in flight; a row for each half."""
    count, in_flight = scale(1_000), 32
    flow = "callback"
    await stage.create_flow(flow, definitions.callback())
    warm_up = range(min(count, 2 * in_flight))
    await suspend(stage, flow, warm_up, in_flight)
    await complete(stage, flow, warm_up, in_flight)
    numbers = range(len(warm_up), len(warm_up) + count)
    before = stage.read()
    latencies = await suspend(stage, flow, numbers, in_flight)
    between = stage.read()
    suspended = finish(stage, latency_figures(latencies) | cost_figures(before, between, count))
    latencies = await complete(stage, flow, numbers, in_flight)
    completed = finish(stage, latency_figures(latencies) | cost_figures(between, stage.read(), count))
    return {"W4 suspended": suspended, "W4 completed": completed}


async def suspend_and_crash(stage: Stage, scale: Scale) -> Rows:
    """W5: the cost of 10,000 suspended executions while they wait, and how soon one of them continues after a crash."""
    count = scale(10_000)
    flow = "crash"
    await stage.create_flow(flow, definitions.callback())
    empty, before = stage.resident_bytes(), stage.read()
    latencies = await suspend(stage, flow, range(count), IN_FLIGHT)
    figures = finish(stage, latency_figures(latencies) | cost_figures(before, stage.read(), count))
    figures["memory_grown_mib"] = (stage.resident_bytes() - empty) / MIB
    figures["idle_cpu_percent"] = await idle_cpu_percent(stage, scale)
    began = await stage.kill_and_restart()
    await complete(stage, flow, [0], 1)
    figures["restart_to_completed_seconds"] = time.perf_counter() - began
    figures["memory_grown_after_restart_mib"] = (stage.resident_bytes() - empty) / MIB
    return {"W5": figures}


async def suspend(stage: Stage, flow: str, numbers: Iterable[int], in_flight: int) -> list[float]:
    """Start executions. Returns seconds from each start to its token, once the server is idle."""
    action = rpc("StartExecution", FlowName=flow) + b"&ExecutionName="

    async def piece(number: int) -> None:
        execution = f"{flow}-{number}"
        token = stage.reports.token_of(execution)
        (await stage.client.call(action + execution.encode())).require(b'"Status"')
        await token

    latencies = await run_in_flight(numbers, in_flight, piece)
    await stage.until_quiet()
    return latencies


async def complete(stage: Stage, flow: str, numbers: Iterable[int], in_flight: int) -> list[float]:
    """Report tokens; returns seconds from each report to the end as a waiting client sees it."""

    async def piece(number: int) -> float:
        execution = f"{flow}-{number}"
        action = rpc("ReportTaskSucceeded", TaskToken=await stage.reports.token_of(execution), Output='{"ok":true}')
        waiting = asyncio.create_task(stage.describe_end(flow, execution))
        await asyncio.sleep(0)  # the waiter's request is on its way
        began = time.perf_counter()
        (await stage.client.call(action)).require(b"EventId")
        (await waiting).require(SUCCEEDED)
        return time.perf_counter() - began

    return await run_in_flight(numbers, in_flight, piece)


async def idle_cpu_percent(stage: Stage, scale: Scale) -> float:
    """Processor time of the servers in percent of one core without any requests, over ten seconds."""
    seconds = max(0.2, IDLE_SECONDS * min(1.0, scale.factor))
    before = stage.cpu_seconds()
    await asyncio.sleep(seconds)
    return 100 * (stage.cpu_seconds() - before) / seconds
