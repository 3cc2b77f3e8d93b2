"""Very many executions that wait: their cost meanwhile, and how soon they are ready after a crash."""

import time

from tests.benchmarks import definitions
from tests.benchmarks.client import rpc
from tests.benchmarks.figures import MIB, Rows, cost_figures
from tests.benchmarks.stage import Stage
from tests.benchmarks.suspended import complete, idle_cpu_percent, suspend
from tests.benchmarks.timers import FLOW, start_waiting
from tests.benchmarks.workloads import IN_FLIGHT, Scale, finish

DAY_MS = 24 * 60 * 60 * 1000
CALLBACK = "waiting"


async def waiting(stage: Stage, scale: Scale) -> Rows:
    """100,000 executions, half of them at wait steps and half on task tokens."""
    count = scale(50_000)
    await stage.create_flow(FLOW, definitions.wait_until())
    await stage.create_flow(CALLBACK, definitions.callback())
    empty, before = stage.resident_bytes(), stage.read()
    at = int(time.time() * 1000) + DAY_MS
    await start_waiting(stage, {f"waiting{n}": at for n in range(count)})
    await suspend(stage, CALLBACK, range(count), IN_FLIGHT)
    figures = finish(stage, cost_figures(before, stage.read(), 2 * count))
    figures["memory_grown_mib"] = (stage.resident_bytes() - empty) / MIB
    figures["idle_cpu_percent"] = await idle_cpu_percent(stage, scale)
    [figures["completed_ms"]] = [1000 * took for took in await complete(stage, CALLBACK, [0], 1)]
    began = await stage.kill_and_restart()
    description = rpc("DescribeExecution", FlowName=CALLBACK, ExecutionName=f"{CALLBACK}-1")
    (await stage.client.call(description)).require(b'"Status":"Running"')
    figures["restart_to_first_answer_seconds"] = time.perf_counter() - began
    [figures["completed_after_restart_ms"]] = [1000 * took for took in await complete(stage, CALLBACK, [1], 1)]
    figures["memory_grown_after_restart_mib"] = (stage.resident_bytes() - empty) / MIB
    figures["idle_cpu_after_restart_percent"] = await idle_cpu_percent(stage, scale)
    return {"waiting": figures}
