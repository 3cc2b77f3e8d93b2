"""The cost of deletion: executions per second, the longest transaction, and how the file shrinks.

`python -m tests.benchmarks.retention [--executions N] [--events N]`

Fills a SQLite file with long ended executions of the same number of events, and lets one round of retention delete them
with full fsync. Meanwhile it commits a small change repeatedly. It prints a Markdown table.
"""

import argparse
import asyncio
import os
import platform
import statistics
import tempfile
import time
from pathlib import Path

from sqlalchemy import Connection

from flowserver.base.clock import SystemClock
from flowserver.base.limits import Limits
from flowserver.base.nonces import Nonce
from flowserver.base.task_tokens import TaskTokens
from flowserver.engine.engine import Engine
from flowserver.engine.options import EngineOptions
from flowserver.machine.retention_rules import Rules
from flowserver.machine.state import Status
from flowserver.store.access_keys import use_nonce
from flowserver.store.schema.migrating import migrate
from flowserver.store.sql.database import Database
from tests.benchmarks.filling import Model, fill, keep_flow

PAUSE_SECONDS = 0.002


class ConcurrentWriter:
    """Commits small changes one after another, and records the latency of each."""

    def __init__(self, engine: Engine) -> None:
        self.waited: list[float] = []
        self._engine = engine

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self.change()
            await asyncio.sleep(PAUSE_SECONDS)

    async def change(self) -> None:
        """One change."""
        began = time.perf_counter()
        await self._engine.committer.write(self._write)
        self.waited.append(time.perf_counter() - began)

    def _write(self, connection: Connection) -> None:
        use_nonce(connection, Nonce("benchmark", str(len(self.waited)), 2**50))


async def measure(database: Database, executions: int, events: int) -> None:
    """Print the table."""
    engine = Engine(
        database,
        clock=SystemClock(),
        limits=Limits(),
        tokens=TaskTokens(b"a key of benchmarks"),
        node_id="benchmark",
        options=EngineOptions(rules=Rules(days=30, bytes_max=0)),
    )
    file = database.sqlite_file
    assert file is not None
    async with engine.running(0):
        alone, during = ConcurrentWriter(engine), ConcurrentWriter(engine)
        for _ in range(200):
            await alone.change()
        before = file.stat().st_size
        longest = _LongestTransaction(engine)
        others = asyncio.create_task(during.run())
        clock, processor = time.perf_counter(), time.process_time()
        deleted = await engine.retention.run_once()
        clock, processor = time.perf_counter() - clock, time.process_time() - processor
        others.cancel()
        assert deleted == executions
    print("| | |\n|---|---|")
    print(f"| executions deleted, of {events} events each | {deleted:,} |")
    print(f"| executions per second | {executions / clock:,.0f}, which are {executions * events / clock:,.0f} events |")
    print(f"| CPU per execution | {1000 * processor / executions:.3f} ms, the changes beside it included |")
    print(f"| longest transaction | {1000 * longest.seconds:.0f} ms |")
    print(f"| a change beside it waits, p50 and p99 | {_figures(during.waited)} |")
    print(f"| the same without deletions | {_figures(alone.waited)} |")
    database.checkpoint()  # the changes committed meanwhile may keep it from finishing
    print(f"| file before and after | {before / 2**20:,.1f} MiB, {file.stat().st_size / 2**20:,.1f} MiB |")


class _LongestTransaction:
    def __init__(self, engine: Engine) -> None:
        self.seconds = 0.0
        self._committed = engine.metrics.committed
        engine.metrics.committed = self._note  # type: ignore[method-assign]

    def _note(self, items: int, seconds: float) -> None:
        self.seconds = max(self.seconds, seconds)
        self._committed(items, seconds)


def _figures(seconds: list[float]) -> str:
    ordered = sorted(seconds)
    return f"{1000 * statistics.median(ordered):.1f} and {1000 * ordered[len(ordered) * 99 // 100]:.1f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executions", type=int, default=50_000)
    parser.add_argument("--events", type=int, default=37)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        database = Database(f"sqlite:///{Path(folder) / 'retention.db'}")
        migrate(database)
        old = Model("old", Status.SUCCEEDED, given.events, 1_600_000_000_000, 1_000)
        fill(database, keep_flow(database, "old"), old, range(given.executions))
        database.checkpoint()
        print(f"{os.cpu_count()} cores, Python {platform.python_version()}, full fsync\n")
        asyncio.run(measure(database, given.executions, given.events))
        database.close()


if __name__ == "__main__":
    main()
