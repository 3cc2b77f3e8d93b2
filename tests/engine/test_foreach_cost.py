"""A foreach over ten times the items writes ten times as much, not more: counted in pages of SQLite's log."""

import random
from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection

from flowserver.base.json_values import dump_json
from flowserver.base.limits import Limits
from flowserver.engine.batches import Batch, BatchResult, Envelope, NewExecution, Workshop
from flowserver.engine.definitions import Definitions
from flowserver.engine.lease import Lease
from flowserver.engine.warm import WarmExecutions
from flowserver.machine.commands import InvokeTask
from flowserver.machine.messages import Continue, Start, Success, TaskReplied
from flowserver.machine.state import Status
from flowserver.store.database import Database
from flowserver.store.nodes import register_node
from tests.engine.nodes import TOKENS, definition
from tests.store.rows import flow_row, insert_flow
from tests.support.clock import ManualClock

FEW, MANY = 500, 5_000
TIMES_AT_MOST = 11
"""Twelve are promised, with what checkpoints bring into the file, which `tests/benchmarks` measure."""

REPLIES_AT_ONCE = 20
"""Of a window of 100 calls, in any order; with few in a batch, the pages that all batches touch count for most."""

CALLS = """
    - type: foreach
      name: each
      iterationMapping: {collection: $.items, item: item}
      steps:
        - type: task
          name: call
          resourceArn: acs:fc:::services/s/functions/f
          inputMappings: [{target: item, source: $input.item}]
          outputMappings: [{target: ok, source: $local.ok}]
      outputMappings: [{target: done, source: true}]
"""


class Calls:
    """Runs batches and makes the calls that they order."""

    def __init__(self, database: Database, clock: ManualClock) -> None:
        self._database = database
        warm = WarmExecutions(Limits().cached_executions_bytes_max)
        self._workshop = Workshop(clock, Limits(), "null", TOKENS, Lease("node-1"), Definitions(), warm)
        self._chance = random.Random(0)
        with database.write() as connection:
            register_node(connection, "node-1", "session", 0)
            insert_flow(connection, flow_row("each", definition=definition(CALLS)))

    def run(self, items: int) -> None:
        """One execution over so many items, until its end."""
        given = {"items": list(range(items))}
        name = f"over-{items}"
        waiting = [Envelope(name, Start(), NewExecution(name, "each", name, dump_json(given), given))]
        while waiting:
            batch, waiting = waiting[:REPLIES_AT_ONCE], waiting[REPLIES_AT_ONCE:]
            result = self._commit(batch)
            waiting.extend(_replies(result))
            self._chance.shuffle(waiting)
        assert [changes.stored.execution.status for changes in result.changes] == [Status.SUCCEEDED]

    def _commit(self, batch: list[Envelope]) -> BatchResult:
        with self._database.write() as connection:
            working = Batch(connection, self._workshop)
            result = working.run(batch)
        working.settle()
        return result


def _replies(result: BatchResult) -> Iterator[Envelope]:
    """Of the calls that a batch ordered; and the messages by which its executions go on."""
    for changes in result.changes:
        execution_id = changes.stored.execution.execution_id
        for command in changes.commands:
            assert isinstance(command, InvokeTask)
            yield Envelope(execution_id, TaskReplied(command.scope_id, command.wait_id, Success({"ok": True})))
    yield from (Envelope(execution_id, Continue()) for execution_id in result.continuing)


def _ask(connection: Connection, pragma: str) -> tuple[Any, ...]:
    """What SQLite answers, outside of SQLAlchemy's transactions."""
    driver: Any = connection.connection.driver_connection
    row: tuple[Any, ...] = driver.execute(f"PRAGMA {pragma}").fetchone()
    return row


def _logged_pages(database: Database, calls: Calls, items: int) -> int:
    """Pages that one execution over so many items adds to an empty log."""
    database.checkpoint()
    calls.run(items)
    with database.read() as connection:
        connection.rollback()
        _, logged, _ = _ask(connection, "wal_checkpoint(PASSIVE)")
    return int(logged)


def test_ten_times_the_items_write_ten_times_the_pages(sqlite_database: Database, clock: ManualClock) -> None:
    with sqlite_database.write() as connection:
        _ask(connection, "wal_autocheckpoint = 0")  # of the connection that is kept for the writer
    calls = Calls(sqlite_database, clock)
    calls.run(10)
    few = _logged_pages(sqlite_database, calls, FEW)
    many = _logged_pages(sqlite_database, calls, MANY)
    assert many <= TIMES_AT_MOST * few, f"{few} pages for {FEW} items, {many} for {MANY}"
