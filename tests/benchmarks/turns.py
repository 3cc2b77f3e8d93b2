"""`python -m tests.benchmarks.turns`: the writer's processor time for an execution of five function calls.

No server, no calls and no load: the turns are committed batch by batch in this thread, on a RAM disk if there is one.
So the fastest round hardly depends on what else the machine does, and shows differences of a few hundredths.
"""

import argparse
import gc
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from sqlalchemy import Connection

from flowserver.base.json_values import load_json_object
from flowserver.base.limits import Limits
from flowserver.base.task_tokens import TaskTokens
from flowserver.engine.cluster.lease import Lease
from flowserver.engine.commit.batch import Batch, BatchResult
from flowserver.engine.commit.batch_context import BatchContext
from flowserver.engine.commit.batch_items import Envelope
from flowserver.engine.commit.execution_cache import ExecutionCache
from flowserver.machine.commands import InvokeTask
from flowserver.machine.messages import Start, Success, TaskReplied
from flowserver.machine.state import Status
from flowserver.store.cluster.nodes import register_node
from flowserver.store.definition_cache import DefinitionCache
from flowserver.store.executions.new_executions import NewExecution
from flowserver.store.schema.migrating import migrate
from flowserver.store.sql.database import Database
from tests.benchmarks import definitions
from tests.store.plans import listening
from tests.store.rows import flow_row, insert_flow
from tests.support.clock import ManualClock

RAM_DISK = Path("/dev/shm")


@dataclass
class Cost:
    """Of some executions; bytes and rows on SQLite only."""

    commits: int = 0
    turns: int = 0
    statements: int = 0
    """Messages to the driver, each of one statement with the values of one row or many; BEGIN and COMMIT are none."""
    rows: int = 0
    """Inserted, changed and deleted ones."""
    log_bytes: int = 0
    """Whole pages, as they are written to the log of SQLite."""


class Writer:
    """Runs executions of five function calls batch by batch, and answers the calls at once.

    The database has the server's tables. Execution ids are equal in each run, so the counts are, too.
    """

    def __init__(self, database: Database, clock: ManualClock, warm_up: int = 64) -> None:
        """`warm_up` executions come first, so that the tables have more than one page."""
        self._database = database
        self._clock = clock
        self._chance = Random(0)
        self._count = 0
        cache = ExecutionCache(Limits().cached_executions_bytes_max)
        tokens = TaskTokens(b"the key of a benchmark")
        self._context = BatchContext(clock, Limits(), "null", tokens, Lease("node-1"), DefinitionCache(), cache)
        with database.write() as connection:
            insert_flow(connection, flow_row("calls", definition=definitions.calls()))
            register_node(connection, "node-1", "session", 0)
        self.run(self.starts(warm_up))

    def starts(self, count: int) -> list[Envelope]:
        """The first messages of new executions."""
        return [self._start() for _ in range(count)]

    def run(self, waiting: list[Envelope]) -> None:
        """Executions from start to end; their messages share batches."""
        while waiting:
            waiting = self._commit(waiting)

    def cost_of(self, waiting: list[Envelope]) -> Cost:
        """As `run`; returns what it took."""
        cost = Cost()
        self._logged_pages()  # which lets the next batch begin the log anew
        while waiting:
            waiting = self._commit(waiting, cost)
        cost.log_bytes = 4_096 * self._logged_pages()
        return cost

    def _start(self) -> Envelope:
        self._count += 1
        execution_id = f"{self._count:08x}-{self._chance.getrandbits(96):024x}"  # in order, like the server's own
        given = load_json_object(definitions.INPUT)
        new = NewExecution(execution_id, "calls", f"e{self._count}", definitions.INPUT, given)
        return Envelope(execution_id, Start(), new)

    def _commit(self, messages: list[Envelope], cost: Cost | None = None) -> list[Envelope]:
        self._clock.advance(seconds=0.01)
        with self._database.write() as connection:
            batch = Batch(connection, self._context)
            result = batch.run(messages) if cost is None else _counted(connection, batch, messages, cost)
        batch.settle()
        replies = []
        for changes in result.changes:
            execution = changes.stored.execution
            assert changes.commands or execution.status is Status.SUCCEEDED
            for call in changes.commands:
                assert isinstance(call, InvokeTask)
                reply = TaskReplied(call.scope_id, call.wait_id, Success({"ok": True}), "a-request-id")
                replies.append(Envelope(execution.execution_id, reply, lease="node-1"))
        return replies

    def _logged_pages(self) -> int:
        if not self._database.is_sqlite:
            return 0
        with self._database.read() as connection:
            connection.rollback()
            _, logged, _ = _driver_of(connection).execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        return int(logged)


def _counted(connection: Connection, batch: Batch, messages: list[Envelope], cost: Cost) -> BatchResult:
    driver = _driver_of(connection)
    is_sqlite = connection.dialect.name == "sqlite"
    before = driver.total_changes if is_sqlite else 0
    sent: list[str] = []
    with listening(connection, lambda _, sql, values: sent.append(sql)):
        result = batch.run(messages)
    cost.rows += driver.total_changes - before if is_sqlite else 0
    cost.commits += 1
    cost.turns += len(result.answers)
    cost.statements += len(sent)
    return result


def _driver_of(connection: Connection) -> Any:
    return connection.connection.driver_connection


def measure(folder: Path, together: int, rounds: int) -> list[float]:
    """Milliseconds of processor time for an execution, by round; `together` share each transaction."""
    database = Database(f"sqlite:///{folder}/turns.db")
    migrate(database)
    writer = Writer(database, ManualClock())
    gc.collect()
    gc.freeze()
    taken = []
    for _ in range(rounds):
        waiting = writer.starts(together)
        began = time.thread_time()
        writer.run(waiting)
        taken.append(1000 * (time.thread_time() - began) / together)
    gc.unfreeze()
    database.close()
    return taken


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print a line."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.turns", description=__doc__.splitlines()[0])
    parser.add_argument("--together", type=int, default=32, help="executions in each batch, by default %(default)s")
    parser.add_argument("--rounds", type=int, default=50, help="by default %(default)s")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=RAM_DISK if RAM_DISK.is_dir() else None) as folder:
        taken = measure(Path(folder), options.together, options.rounds)
    print(
        f"{options.together} together: {min(taken):.3f} ms of processor time for each in the fastest round,"
        f" {statistics.median(taken):.3f} ms in the median of {len(taken)}"
    )


if __name__ == "__main__":
    main()
