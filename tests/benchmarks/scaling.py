"""Checks that cost does not grow faster than the work: long foreaches, a long loop."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.benchmarks import definitions
from tests.benchmarks.client import rpc
from tests.benchmarks.figures import Figures, Rows, cost_figures
from tests.benchmarks.stage import Counters, Stage
from tests.benchmarks.workloads import SUCCEEDED, Scale, finish

TIMES = 10
"""One execution over 1,000 items takes half a second, too short for reliable figures."""

TURNS = 10_000

WINDOW = 100
"""The number of turns at the beginning and at the end whose cost is compared."""

PATIENCE_SECONDS = 900

REPORTS_IN_FLIGHT = 16


async def foreach(stage: Stage, scale: Scale) -> Rows:
    """A foreach over 1,000 items, ten times, and one over 10,000, each item a call; rows of both, and their ratio.

    The ratio compares one execution over 10,000 items with one over 1,000, which is a tenth of the ten.
    """
    await stage.create_flow("each", definitions.each())
    await _each(stage, "warm-up", scale(100), 1)
    few, many = scale(1_000), scale(10_000)
    small = await _each(stage, "small", few, TIMES)
    large = await _each(stage, "large", many, 1)
    ratio = {name: many * large[f"{name}_each"] / (few * small[f"{name}_each"]) for name in ("cpu_ms", "written_kib")}
    ratio["seconds"] = (many / large["per_second"]) / (few / small["per_second"])
    titled = {f"{name}_ratio": value for name, value in ratio.items()}
    return {"foreach, few": small, "foreach, many": large, "foreach": titled}


async def _each(stage: Stage, name: str, items: int, times: int) -> Figures:
    return await _foreaches(stage, "each", name, definitions.items(items), items, times)


async def _foreaches(stage: Stage, flow: str, name: str, input: str, items: int, times: int) -> Figures:
    """The cost of an item. The bytes include a last checkpoint; the time does not include the checkpoint, which the
    benchmark makes.
    """
    before = stage.read()
    for number in range(times):
        await _run(stage, flow, f"{name}{number}", input)
    ended = stage.read()
    await stage.until_quiet()
    stage.checkpoint()
    ended |= {name: stage.read()[name] for name in ("written_bytes", "size_bytes")}
    return finish(stage, cost_figures(before, ended, items * times))


async def growth(stage: Stage, scale: Scale) -> Rows:
    """The cost of ten times the items of a foreach, by the work for each item: a pass step over numbers (1,000 and
    10,000) or over objects of 117 bytes (200 and 2,000, the most that one step's data can hold), a call, a callback.

    For each kind rows of both, and their ratios. The smaller one is run ten times.
    """
    kinds = {
        "passes": (definitions.each_pass(), definitions.items, 1_000),
        "objects": (definitions.each_pass(), definitions.objects, 200),
        "tasks": (definitions.each(), definitions.items, 1_000),
        "callbacks": (definitions.each_callback(), definitions.items, 1_000),
    }
    rows: Rows = {}
    for kind, (definition, made_of, count) in kinds.items():
        flow = f"growth-{kind}"
        await stage.create_flow(flow, definition)
        few, many = scale(count), scale(10 * count)
        async with _reporting(stage):
            await _foreaches(stage, flow, "warm-up", made_of(few), few, 1)
            small = await _foreaches(stage, flow, "small", made_of(few), few, TIMES)
            large = await _foreaches(stage, flow, "large", made_of(many), many, 1)
        ratios = {
            f"{name}_ratio": many * large[f"{name}_each"] / (few * small[f"{name}_each"])
            for name in ("cpu_ms", "written_kib")
        }
        titles = f"growth {kind}, few", f"growth {kind}, many", f"growth {kind}"
        rows |= dict(zip(titles, (small, large, ratios), strict=True))
    return rows


@asynccontextmanager
async def _reporting(stage: Stage) -> AsyncIterator[None]:
    """Report every task token that a function receives, `REPORTS_IN_FLIGHT` at a time."""
    tokens: asyncio.Queue[str] = asyncio.Queue()
    stage.reports.on_token = tokens.put_nowait

    async def report() -> None:
        while True:
            action = rpc("ReportTaskSucceeded", TaskToken=await tokens.get(), Output='{"ok":true}')
            (await stage.client.call(action)).require(b'"EventId"')

    async with asyncio.TaskGroup() as group:
        reporters = [group.create_task(report()) for _ in range(REPORTS_IN_FLIGHT)]
        yield
        for reporter in reporters:
            reporter.cancel()


async def loop(stage: Stage, scale: Scale) -> Rows:
    """The polling tutorial's loop without its pause: the cost of a turn at the beginning, and at the end."""
    await stage.create_flow("polling", definitions.polling())
    turns, window = scale(TURNS, 20), max(5, min(WINDOW, scale(WINDOW)))
    await _run(stage, "polling", "warm-up", f'{{"turns":{window}}}')
    marks = (1, 1 + window, turns - window, turns)
    read: dict[int, Counters] = {}

    def mark(turn: int, _: float) -> None:
        if turn in marks:
            read[turn] = stage.read()

    stage.reports.on_turn = mark
    await _run(stage, "polling", "long", f'{{"turns":{turns}}}')
    early, late = (cost_figures(read[first], read[last], window) for first, last in (marks[:2], marks[2:]))
    ratios = {f"{name}_ratio": late[f"{name}_each"] / early[f"{name}_each"] for name in ("cpu_ms", "written_kib")}
    ratios["seconds_ratio"] = early["per_second"] / late["per_second"]
    return {"loop, early": finish(stage, early), "loop, late": finish(stage, late), "loop": ratios | {"turns": turns}}


async def _run(stage: Stage, flow: str, name: str, input: str) -> None:
    """One execution until its end, which must be a success."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        action = rpc("StartExecution", FlowName=flow, ExecutionName=name, Input=input)
        (await stage.client.call(action)).require(b'"Status"')
        (await stage.describe_end(flow, name)).require(SUCCEEDED)
