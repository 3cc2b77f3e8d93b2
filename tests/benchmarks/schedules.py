"""Many schedules due in the same second: does each start one execution, and how late?"""

import asyncio
import time
from datetime import datetime

from tests.benchmarks import definitions
from tests.benchmarks.client import rpc
from tests.benchmarks.figures import Rows, percentile
from tests.benchmarks.load import run_in_flight
from tests.benchmarks.stage import Stage
from tests.benchmarks.workloads import IN_FLIGHT, Scale

FLOW = "ticks"
MADE_PER_SECOND = 150
"""The slowest expected rate of creating schedules before they are due. If creation is slower, they are due a minute
later.
"""

PATIENCE_SECONDS = 180


async def schedules(stage: Stage, scale: Scale) -> Rows:
    """1,000 schedules whose only tick is in the same second; lateness is that of their executions' starts."""
    count = scale(1_000)
    await stage.create_flow(FLOW, definitions.passes(1))
    due = int(time.time() + count / MADE_PER_SECOND + 3)
    fields = {"cronExpression": f"{due % 60} * * * * ?", "remainingActions": 1, "catchUpSeconds": 3600}

    async def make(number: int) -> None:
        await stage.client.put(f"/v1/flows/{FLOW}/schedules/s{number}", fields)

    await run_in_flight(range(count), IN_FLIGHT, make)
    until = time.time() + PATIENCE_SECONDS
    late: list[int] = []
    while len(late) < count and time.time() < until:
        await asyncio.sleep(1)
        late = await _lateness(stage, due * 1000)
    late.sort()
    return {
        "schedules": {
            "schedules": count,
            "not_started": count - len(late),
            "late_p50_ms": percentile(late, 0.5),
            "late_p99_ms": percentile(late, 0.99),
            "late_max_ms": percentile(late, 1.0),
        }
    }


async def _lateness(stage: Stage, due_ms: int) -> list[int]:
    """Ms from each tick to the start of its execution. Ticks are in the second of `due_ms`, or whole minutes later."""
    late, token = [], ""
    while True:
        action = rpc("ListExecutions", FlowName=FLOW, Limit=100, MetadataOnly="true", NextToken=token)
        page = (await stage.client.call(action)).json()
        for execution in page["Executions"]:
            started = round(1000 * datetime.fromisoformat(execution["StartedTime"]).timestamp())
            late.append((started - due_ms) % 60_000)
        token = page.get("NextToken", "")
        if not token:
            return late
