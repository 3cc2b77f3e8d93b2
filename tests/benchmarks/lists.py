"""The latency of lists and histories in a flow with a million ended executions, on SQLite.

`python -m tests.benchmarks.lists [--executions N] [--asked N] [--keep FILE]`

Fills a file, which takes some minutes and about 1.5 GB for a million executions, then makes the requests of clients by
calling the API's operations, and prints a Markdown table in milliseconds: elapsed time, and processor time, which
depends less on other work on the machine. `--keep FILE` leaves the file there, and uses it if it exists.

The flow is a worst case for lists. All failures are the oldest executions, and none has timed out. There are two name
prefixes: most executions share one, and the oldest ten thousand share the other.
"""

import argparse
import asyncio
import os
import platform
import random
import sqlite3
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from sqlalchemy import func, update

from flowserver.base.clock import SystemClock
from flowserver.base.limits import Limits
from flowserver.base.task_tokens import TaskTokens
from flowserver.engine.engine import Engine
from flowserver.machine.state import Status
from flowserver.operations.operations import Operations
from flowserver.store.executions.listing_of_flow import ExecutionFilter
from flowserver.store.schema.migrating import migrate
from flowserver.store.schema.tables import executions
from flowserver.store.sql.database import Database
from tests.benchmarks.filling import Model, fill, keep_flow

FLOW = "many"
BEGAN_MS = 1_700_000_000_000
EVERY_MS = 1_000
OLD = 10_000
LONG_HISTORY = 10_000
PAGE = 100

Ask = Callable[[Operations, random.Random], Awaitable[object]]


OLD_ONES = Model("old", Status.FAILED, 4, BEGAN_MS, EVERY_MS)
OTHERS = Model("run", Status.SUCCEEDED, 4, BEGAN_MS, EVERY_MS)
LONG = Model("long", Status.SUCCEEDED, LONG_HISTORY, BEGAN_MS, EVERY_MS)


def prepare(database: Database, count: int) -> None:
    """Number 0 is the oldest; the newest has a long history, and one in a thousand of the others was stopped."""
    flow = keep_flow(database, FLOW)
    fill(database, flow, OLD_ONES, range(OLD))
    fill(database, flow, OTHERS, range(OLD, count - 1))
    fill(database, flow, LONG, range(count - 1, count))
    header = executions.c
    with database.write() as connection:
        stopped = header.name.like("run-%000")
        connection.execute(update(executions).where(stopped).values(status=str(Status.STOPPED)))
        rare = header.name.like("run-%00001")
        connection.execute(update(executions).where(rare).values(name=func.replace(header.name, "run-", "rare-")))


def name_of(number: int) -> str:
    """The name of an execution that is neither rare nor the newest."""
    return (OLD_ONES if number < OLD else OTHERS).name(number + (number % 100_000 == 1))


def queries(count: int) -> dict[str, Ask]:
    """The requests, by their labels in the table."""
    newest, oldest = BEGAN_MS + (count - 1) * EVERY_MS, BEGAN_MS

    def listed(token: Callable[[random.Random], int | None] = lambda _: None, **wanted: object) -> Ask:
        async def ask(operations: Operations, chance: random.Random) -> object:
            number = token(chance)
            begin = None if number is None else f"{name_of(number)}/{BEGAN_MS + number * EVERY_MS}"
            return await operations.executions.list(
                FLOW,
                ExecutionFilter(**wanted),
                next_token=begin,
                limit=PAGE,  # type: ignore[arg-type]
            )

        return ask

    def random_position(chance: random.Random) -> int:
        return chance.randrange(count)

    async def describe(operations: Operations, chance: random.Random) -> object:
        return await operations.executions.describe(FLOW, name_of(chance.randrange(count)))

    async def history(operations: Operations, chance: random.Random) -> object:
        name = name_of(chance.randrange(count - 1))
        return await operations.executions.history(FLOW, name, next_token=None, limit=None)

    async def long_history(operations: Operations, chance: random.Random) -> object:
        token = str(chance.randrange(1, LONG_HISTORY))
        return await operations.executions.history(FLOW, LONG.name(count - 1), next_token=token, limit=1_000)

    async def flows(operations: Operations, _: random.Random) -> object:
        return await operations.flows.list(next_token=None, limit=None)

    return {
        "first page": listed(),
        "any page": listed(random_position),
        "the last page": listed(lambda _: PAGE // 2),
        "`Status=Succeeded`, any page": listed(random_position, status=Status.SUCCEEDED),
        "`Status=Failed`, all of them the oldest": listed(status=Status.FAILED),
        "`Status=Stopped`, one in a thousand, any page": listed(random_position, status=Status.STOPPED),
        "`Status=TimedOut`, which none is": listed(status=Status.TIMED_OUT),
        "`Status=Running`, which none is": listed(status=Status.RUNNING),
        "started within a minute, long ago": listed(started_from=oldest, started_to=oldest + 60_000),
        "started after all": listed(started_from=newest + 1),
        "a prefix of all names": listed(name_prefix="run-"),
        "a prefix of ten names": listed(name_prefix="rare-"),
        "a prefix of no name": listed(name_prefix="nobody"),
        "a prefix of 10,000 names, all the oldest*": listed(name_prefix="old-"),
        "the same, started lately, so none*": listed(name_prefix="old-", started_from=oldest + OLD * EVERY_MS),
        "the same, and `Status=Stopped`, so none*": listed(name_prefix="old-", status=Status.STOPPED),
        "a prefix of all names, started long ago": listed(name_prefix="run-", started_to=oldest + 2 * OLD * EVERY_MS),
        "parked": listed(parked=True),
        "not parked, any page": listed(random_position, parked=False),
        "not parked, `Status=Failed`, with a prefix": listed(
            random_position, parked=False, status=Status.FAILED, name_prefix="old-"
        ),
        "DescribeExecution": describe,
        "GetExecutionHistory": history,
        "GetExecutionHistory, any page of 1,000 of 10,000 events": long_history,
        "ListFlows": flows,
    }


async def measure(database: Database, count: int, asked: int) -> None:
    """Print the table, row by row."""
    engine = Engine(
        database,
        clock=SystemClock(),
        limits=Limits(),
        tokens=TaskTokens(b"a key of benchmarks"),
        node_id="benchmark",
    )
    operations = Operations.of(engine)
    print("| asked for | p50 | p99 | max | p50 CPU | p99 CPU |\n|---|---|---|---|---|---|")
    for words, ask in queries(count).items():
        chance = random.Random(words)
        await ask(operations, chance)  # the first request compiles the statements
        took = [await _milliseconds(ask, operations, chance) for _ in range(asked)]
        clock, processor = (sorted(each) for each in zip(*took, strict=True))
        late = min(asked * 99 // 100, asked - 1)
        figures = (clock[asked // 2], clock[late], clock[-1], processor[asked // 2], processor[late])
        print(f"| {words} | " + " | ".join(f"{each:.1f}" for each in figures) + " |", flush=True)
    await engine.invoker.close()


async def _milliseconds(ask: Ask, operations: Operations, chance: random.Random) -> tuple[float, float]:
    clock, processor = time.perf_counter(), time.process_time()
    await ask(operations, chance)
    return (time.perf_counter() - clock) * 1000, (time.process_time() - processor) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executions", type=int, default=1_000_000)
    parser.add_argument("--asked", type=int, default=300, help="times that each is asked")
    parser.add_argument("--keep", type=Path, help="the database file, to be used again")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = given.keep or Path(folder) / "lists.db"
        is_new = not file.exists()
        database = Database(f"sqlite:///{file}")
        migrate(database)
        began = time.perf_counter()
        if is_new:
            prepare(database, given.executions)
        size, seconds = file.stat().st_size / 2**20, time.perf_counter() - began
        machine = f"{os.cpu_count()} cores, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
        print(f"{given.executions:,} ended executions in {size:,.0f} MiB, filled in {seconds:.0f} s; pages of {PAGE};")
        print(f"each asked {given.asked} times; milliseconds; {machine}\n")
        asyncio.run(measure(database, given.executions, given.asked))
        database.close()


if __name__ == "__main__":
    main()
