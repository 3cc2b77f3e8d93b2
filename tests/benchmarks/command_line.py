"""The command line as a person uses it: whole processes of `flowserver start FLOW --wait`, one after another."""

import asyncio
import os
import sys
import time
from typing import Final

from tests.benchmarks.figures import Rows, latency_figures
from tests.benchmarks.stage import Stage
from tests.benchmarks.workloads import Scale
from tests.support.server import clean_environment

RUNS: Final = 40
FLOW: Final = "command-line"
ONE_STEP: Final = "version: v1\ntype: flow\nsteps:\n  - {type: pass, name: only}\n"


async def command_line(stage: Stage, scale: Scale) -> Rows:
    """The duration of `start --wait` for a flow of one step, from the start of the process to its end."""
    await stage.create_flow(FLOW, ONE_STEP)
    environment = clean_environment() | {"FLOWSERVER_URL": stage.servers[0].url}
    seconds: list[float] = []
    before = os.times()
    count = scale(RUNS)
    for _ in range(count):
        began = time.perf_counter()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "flowserver", "start", FLOW, "--wait"),
            env=environment,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        assert await process.wait() == 0
        seconds.append(time.perf_counter() - began)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return {"command line": latency_figures(seconds) | {"process_cpu_ms_each": 1000 * used / count}}
