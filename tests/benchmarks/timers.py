"""Many timers due in the same second: do all fire, in order of time, and does new work get its turn meanwhile?"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import UTC, datetime

from tests.benchmarks import definitions
from tests.benchmarks.client import rpc
from tests.benchmarks.figures import Figures, Rows, latency_figures, percentile
from tests.benchmarks.load import run_in_flight
from tests.benchmarks.stage import Stage
from tests.benchmarks.workloads import IN_FLIGHT, Scale, start_sync

FLOW = "until"
FORWARD = 1.6
"""A factor for the time that starting all is expected to take, judged by the first few, before they are due."""

PATIENCE_SECONDS = 300


async def timers(stage: Stage, scale: Scale) -> Rows:
    """20,000 wait steps due within one second; lateness is that of the instants at which they ended."""
    count = scale(20_000)
    await stage.create_flow(FLOW, definitions.wait_until())
    await stage.create_flow("passes", definitions.passes())
    rate = await _start_rate(stage, min(count, 500))
    first_ms = int(1000 * (time.time() + FORWARD * count / rate + 2))
    due = {f"timer{n}": first_ms + n * 1000 // count for n in _mixed(count)}
    await start_waiting(stage, due)
    assert time.time() * 1000 < first_ms, "the machine was too slow: some fell due before all waited"
    looking = rpc("ListExecutions", FlowName=FLOW, Status="Running", Limit=1, MetadataOnly="true")

    async def is_due() -> bool:
        return time.time() * 1000 >= first_ms

    async def none_is_left() -> bool:
        return not (await stage.client.call(looking)).json()["Executions"]

    before = await _fresh_starts(stage, is_due)
    during = await _fresh_starts(stage, none_is_left)
    figures = lateness_figures(due, await ended_at(stage)) | {
        "fresh_start_before_p50_ms": latency_figures(before)["p50_ms"],
        "fresh_start_meanwhile_p50_ms": latency_figures(during)["p50_ms"],
        "fresh_start_meanwhile_max_ms": 1000 * max(during),
        "fresh_starts_meanwhile": len(during),
    }
    return {"timers": figures}


async def start_waiting(stage: Stage, due: Mapping[str, int]) -> None:
    """Start executions, by name, that wait until an instant in ms."""
    action = rpc("StartExecution", FlowName=FLOW)
    names = list(due)

    async def piece(number: int) -> None:
        name = names[number]
        at = datetime.fromtimestamp(due[name] / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        form = b"&ExecutionName=%s&Input=%%7B%%22at%%22:%%22%s%%22%%7D" % (name.encode(), at.encode())
        (await stage.client.call(action + form)).require(b'"Status"')

    await run_in_flight(range(len(names)), IN_FLIGHT, piece)


async def ended_at(stage: Stage) -> dict[str, int]:
    """The ends (ms) of the executions that wait, by name; those that still run are left out."""
    ended: dict[str, int] = {}
    token = ""
    while True:
        action = rpc("ListExecutions", FlowName=FLOW, Limit=100, MetadataOnly="true", NextToken=token)
        page = (await stage.client.call(action)).json()
        for execution in page["Executions"]:
            if execution["Status"] == "Succeeded":
                ended[execution["Name"]] = round(1000 * datetime.fromisoformat(execution["StoppedTime"]).timestamp())
        token = page.get("NextToken", "")
        if not token:
            return ended


def lateness_figures(due: Mapping[str, int], ended: Mapping[str, int]) -> Figures:
    """How many fired, how late, over how long, and how far a later timer fired before an earlier one."""
    fired = sorted((due[name], ended[name]) for name in due if name in ended)
    late = [end - at for at, end in fired]
    latest, out_of_order = 0, 0
    for _, end in fired:
        latest = max(latest, end)
        out_of_order = max(out_of_order, latest - end)
    return {
        "timers": len(due),
        "not_fired": len(due) - len(fired),
        "late_p50_ms": percentile(late, 0.5),
        "late_p99_ms": percentile(late, 0.99),
        "late_max_ms": percentile(late, 1.0),
        "early_max_ms": -min([0, *late]),
        "spread_ms": latest - min((end for _, end in fired), default=latest),
        "out_of_order_ms": out_of_order,
    }


async def _start_rate(stage: Stage, count: int) -> float:
    """Starts a second, measured with executions whose time has passed."""
    began = time.perf_counter()
    await start_waiting(stage, {f"past{n}": 0 for n in range(count)})
    return count / (time.perf_counter() - began)


def _mixed(count: int) -> Iterable[int]:
    """The numbers below `count` in mixed order, so firing in order differs from starting in order."""
    return sorted(range(count), key=lambda number: number * 2_654_435_761 % 2**32)


async def _fresh_starts(stage: Stage, is_over: Callable[[], Awaitable[bool]]) -> list[float]:
    """Latencies of small executions one after another, until it is over."""
    piece = start_sync(stage, "passes", "{}")
    latencies: list[float] = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not latencies or not await is_over():
            latencies += await run_in_flight([len(latencies)], 1, piece)
    return latencies
