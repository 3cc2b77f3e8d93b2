"""The command line as a person uses it: whole processes of `flowserver start FLOW --wait`, one after another."""

import asyncio
import os
import sys
import time
from collections.abc import Mapping
from typing import Final

from tests.benchmarks.bytecode import compiled
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
    environment = clean_environment() | compiled() | {"FLOWSERVER_URL": stage.servers[0].url}
    await _run(environment)  # which compiles the modules, if they are not
    before = os.times()
    count = scale(RUNS)
    seconds = [await _run(environment) for _ in range(count)]
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return {"command line": latency_figures(seconds) | {"process_cpu_ms_each": 1000 * used / count}}


async def _run(environment: Mapping[str, str]) -> float:
    """The seconds that one process takes."""
    began = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "flowserver", "start", FLOW, "--wait"),
        env=environment,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert await process.wait() == 0
    return time.perf_counter() - began
