"""`python -m tests.benchmarks.pairs CHECKOUT`: compares this server with that of another checkout, such as an earlier
commit.

Both run at the same time, and small slices of each workload go to one and the other in turn, so other load on the
machine slows both alike. Two runs of one commit in sequence differ by a fifth; two servers of one commit measured in
pairs differ by two hundredths. The other checkout needs its environment (`make install`).

`python -m tests.benchmarks.pairs . --keys v3 --their-keys open` compares signed requests with open ones.
"""

import argparse
import asyncio
import statistics
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from tests.benchmarks import definitions
from tests.benchmarks.credentials import KINDS
from tests.benchmarks.load import run_in_flight
from tests.benchmarks.stage import Shape, Stage, staged
from tests.benchmarks.suspended import complete, suspend
from tests.benchmarks.workloads import IN_FLIGHT, start_sync
from tests.support.postgres import fresh_database, running_postgres

WARM_UP_SLICES = 2

Slice = Callable[[Stage, range], Awaitable[object]]
"""Does the work of these numbers."""


@dataclass(frozen=True)
class Workload:
    """Work in slices; each of `parts` is measured separately."""

    flow: str
    definition: str
    size: int
    """Executions in a slice."""
    parts: dict[str, Slice]


def _runs(flow: str, in_flight: int) -> Slice:
    async def run(stage: Stage, numbers: range) -> object:
        return await run_in_flight(numbers, in_flight, start_sync(stage, flow, definitions.INPUT))

    return run


def _suspend(stage: Stage, numbers: range) -> Awaitable[object]:
    return suspend(stage, "callback", numbers, 32)


def _complete(stage: Stage, numbers: range) -> Awaitable[object]:
    return complete(stage, "callback", numbers, 32)


WORKLOADS = {
    "W1": Workload("calls", definitions.calls(), 128, {"W1": _runs("calls", IN_FLIGHT)}),
    "W2": Workload("passes", definitions.passes(), 256, {"W2": _runs("passes", IN_FLIGHT)}),
    "W4": Workload("callback", definitions.callback(), 128, {"W4 suspended": _suspend, "W4 completed": _complete}),
    "alone": Workload("alone", definitions.calls(), 20, {"alone": _runs("alone", 1)}),
}

Taken = tuple[float, float]
"""Elapsed seconds, and the server's processor seconds."""


async def compare(here: Stage, there: Stage, workload: Workload, slices: int) -> dict[str, list[tuple[Taken, Taken]]]:
    """The cost of each slice on both servers, by part."""
    stages = {"here": here, "there": there}
    for stage in stages.values():
        await stage.create_flow(workload.flow, workload.definition)
    found: dict[str, list[tuple[Taken, Taken]]] = {part: [] for part in workload.parts}
    for number in range(-WARM_UP_SLICES, slices):
        first = (number + WARM_UP_SLICES) * workload.size
        taken: dict[tuple[str, str], Taken] = {}
        for name in sorted(stages, reverse=bool(number % 2)):
            for part, work in workload.parts.items():
                taken[part, name] = await _measured(stages[name], work, range(first, first + workload.size))
        if number >= 0:
            for part, pairs in found.items():
                pairs.append((taken[part, "here"], taken[part, "there"]))
    return found


async def _measured(stage: Stage, work: Slice, numbers: range) -> Taken:
    before = stage.read()
    await work(stage, numbers)
    after = stage.read()
    return after["seconds"] - before["seconds"], after["cpu_seconds"] - before["cpu_seconds"]


def line_of(part: str, pairs: Sequence[tuple[Taken, Taken]], size: int) -> str:
    """A line: the ratio of work done here and there, in the same elapsed time and in the same processor time."""
    executions = size * len(pairs)
    here, cpu_here, there, cpu_there = (sum(each) for each in zip(*(a + b for a, b in pairs), strict=True))
    median, cpu_median = (statistics.median(b[each] / a[each] for a, b in pairs) for each in (0, 1))
    figures = (
        f"{executions / seconds:.0f}/s and {1000 * cpu / executions:.3f} ms CPU each"
        for seconds, cpu in ((here, cpu_here), (there, cpu_there))
    )
    rate, cpu = there / here, cpu_there / cpu_here
    ratios = f"rate {rate:.3f} times (median of slices {median:.3f}), CPU {cpu:.3f} times (median {cpu_median:.3f})"
    return f"{part:14}{ratios}; here {next(figures)}, there {next(figures)}"


async def _main(stages: Sequence[Stage], names: Sequence[str], slices: int) -> None:
    async with AsyncExitStack() as stack:
        for stage in stages:
            await stage.open()
            stack.push_async_callback(stage.close)
        for name in names:
            workload = WORKLOADS[name]
            for part, pairs in (await compare(*stages, workload, slices)).items():
                print(line_of(part, pairs, workload.size), flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare, and print a line for each workload."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.pairs", description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path, help="the other checkout")
    parser.add_argument("--only", default=",".join(WORKLOADS), help="workloads, by default %(default)s")
    parser.add_argument("--database", choices=("sqlite", "postgres"), default="sqlite", help="default %(default)s")
    parser.add_argument("--slices", type=int, default=40, help="slices of each, by default %(default)s")
    parser.add_argument("--processes", type=int, default=1, help="of each server (default 1)")
    parser.add_argument(
        "--keys", choices=KINDS, default="open", help="how requests prove who sends them (default open)"
    )
    parser.add_argument("--their-keys", choices=KINDS, help="the same, at the other server (default as --keys)")
    options = parser.parse_args(arguments)
    shape = Shape(processes=options.processes, keys=options.keys)
    their_shape = replace(shape, keys=options.their_keys or options.keys)
    with ExitStack() as stack:
        urls: list[str | None] = [None, None]
        if options.database == "postgres":
            server = stack.enter_context(running_postgres(durable=True))
            urls = [stack.enter_context(fresh_database(server)) for _ in urls]
        here = stack.enter_context(staged(urls[0], shape))
        there = stack.enter_context(staged(urls[1], their_shape, str(options.checkout.resolve() / ".venv/bin/python")))
        asyncio.run(_main([here, there], options.only.split(","), options.slices))


if __name__ == "__main__":
    main()
