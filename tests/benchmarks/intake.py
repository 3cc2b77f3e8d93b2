"""More starts than the server can run, or accept: is any lost, does running work wait, do timers fire in time?"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from tests.benchmarks import definitions
from tests.benchmarks.client import rpc
from tests.benchmarks.figures import Figures, Rows, latency_figures
from tests.benchmarks.stage import Stage
from tests.benchmarks.timers import FLOW, ended_at, lateness_figures, start_waiting
from tests.benchmarks.workloads import SUCCEEDED, Scale

TICK_SECONDS = 0.01


@dataclass(frozen=True)
class Pace:
    """The rate of starts, which are sent whether or not earlier ones are answered."""

    name: str
    """The prefix of its executions' names."""
    per_second: float
    seconds: float
    unanswered_max: int
    """The limit of unanswered starts, above `pending_messages_max`. At the limit fewer starts are sent than planned."""


STEADY = Pace(name="steady", per_second=50_000 / 60, seconds=60.0, unanswered_max=12_000)
FLOOD = Pace(name="flood", per_second=10_000, seconds=20.0, unanswered_max=4_000)
"""Three times the accepted rate, so more starts are always under way than may wait."""

NO_ANSWER = 0
"""The status of a start whose connection broke."""

PENDING = "pending"
TURNS = 1_000


async def intake(stage: Stage, scale: Scale) -> Rows:
    """50,000 starts a minute, all pending, beside one execution that polls a function, and ten timers a second."""
    return {"intake": await _take_in(stage, scale, STEADY)}


async def flood(stage: Stage, scale: Scale) -> Rows:
    """The same with more starts than the server can accept: it refuses some, and runs those that it has accepted."""
    return {"flood": await _take_in(stage, scale, FLOOD)}


async def _take_in(stage: Stage, scale: Scale, pace: Pace) -> Figures:
    seconds = pace.seconds * scale.factor
    for flow, definition in ((FLOW, definitions.wait_until()), ("polling", definitions.polling())):
        await stage.create_flow(flow, definition)
    await stage.create_flow(PENDING, definitions.callback().replace("functions/token", "functions/echo"))
    async with _running_one(stage, pace.name) as steps:
        await asyncio.sleep(max(0.2, 2 * scale.factor))
        before, during = list(steps), len(steps)
        soon = int(1000 * (time.time() + 0.5))
        due = {f"{pace.name}-beat{n}": soon + 100 * n for n in range(max(1, round(10 * seconds)))}
        await start_waiting(stage, due)
        began = time.perf_counter()
        replies = await _start_many(stage, seconds, pace)
        took = time.perf_counter() - began
        meanwhile = steps[during:]
    kept = await _names(stage)
    accepted = [latency for status, latency in replies.values() if status == 200]
    figures: Figures = {
        "starts": len(replies),
        "starts_per_minute": 60 * len(replies) / took,
        "accepted": len(accepted),
        "throttled": sum(status == 429 for status, _ in replies.values()),
        "no_answer": sum(status == NO_ANSWER for status, _ in replies.values()),
        "other_answers": sum(status not in (200, 429, NO_ANSWER) for status, _ in replies.values()),
        "lost": sum(status == 200 and name not in kept for name, (status, _) in replies.items()),
        "accepted_per_second": len(accepted) / took,
        "refused_p50_ms": latency_figures([latency for status, latency in replies.values() if status == 429])["p50_ms"],
        "peak_mib": stage.peak_bytes() / 2**20,
        "accepted_p50_ms": latency_figures(accepted)["p50_ms"],
        "accepted_p99_ms": latency_figures(accepted)["p99_ms"],
        "turn_before_p50_ms": latency_figures(before)["p50_ms"],
        "turn_meanwhile_p50_ms": latency_figures(meanwhile)["p50_ms"],
        "turn_meanwhile_p99_ms": latency_figures(meanwhile)["p99_ms"],
    }
    lateness = lateness_figures(due, await ended_at(stage))
    return figures | {f"timer_{name}": lateness[name] for name in ("late_p50_ms", "late_p99_ms", "not_fired")}


async def _start_many(stage: Stage, seconds: float, pace: Pace) -> dict[str, tuple[int, float]]:
    """Status and latency of each start, by name."""
    replies: dict[str, tuple[int, float]] = {}
    action = rpc("StartExecution", FlowName=PENDING)

    async def start(number: int) -> None:
        began = time.perf_counter()
        try:
            status = (await stage.client.call(action + b"&ExecutionName=%b%d" % (pace.name.encode(), number))).status
        except OSError:
            status = NO_ANSWER
        replies[f"{pace.name}{number}"] = status, time.perf_counter() - began

    began, sent = time.perf_counter(), 0
    async with asyncio.TaskGroup() as group:
        while (passed := time.perf_counter() - began) < seconds:
            wanted = min(int(passed * pace.per_second), len(replies) + pace.unanswered_max)
            for number in range(sent, wanted):
                group.create_task(start(number))
            sent = max(sent, wanted)
            await asyncio.sleep(TICK_SECONDS)
    return replies


@asynccontextmanager
async def _running_one(stage: Stage, prefix: str) -> AsyncIterator[list[float]]:
    """Run polling executions one after another; the list receives the seconds of each turn."""
    steps: list[float] = []
    last = 0.0

    def note(turn: int, now: float) -> None:
        nonlocal last
        if turn > 1:
            steps.append(now - last)
        last = now

    async def poll() -> None:
        for number in range(1_000):
            name = f"{prefix}-polling{number}"
            action = rpc("StartExecution", FlowName="polling", ExecutionName=name, Input=f'{{"turns":{TURNS}}}')
            if (await stage.client.call(action)).status == 429:
                await asyncio.sleep(1)
            else:
                (await stage.describe_end("polling", name)).require(SUCCEEDED)

    stage.reports.on_turn = note
    polling = asyncio.create_task(poll())
    try:
        yield steps
    finally:
        polling.cancel()
        with suppress(asyncio.CancelledError):
            await polling


async def _names(stage: Stage) -> set[str]:
    """The executions that exist among those that were started."""
    names: set[str] = set()
    token = ""
    while True:
        action = rpc("ListExecutions", FlowName=PENDING, Limit=100, MetadataOnly="true", NextToken=token)
        page = (await stage.client.call(action)).json()
        names.update(execution["Name"] for execution in page["Executions"])
        token = page.get("NextToken", "")
        if not token:
            return names
