"""A foreach over ten times the items costs at most ten times as much: pages of SQLite's log, rows that are read."""

import random
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Connection, func, select

from flowserver.base.json_values import Json, dump_json
from flowserver.base.limits import Limits
from flowserver.engine.cluster.lease import Lease
from flowserver.engine.commit.batch import Batch, BatchResult
from flowserver.engine.commit.batch_context import BatchContext
from flowserver.engine.commit.batch_items import Envelope
from flowserver.engine.commit.execution_cache import ExecutionCache
from flowserver.machine.commands import InvokeTask
from flowserver.machine.messages import Continue, Start, Success, TaskReplied, TaskReported
from flowserver.machine.state import Status
from flowserver.store.cluster.nodes import register_node
from flowserver.store.definition_cache import DefinitionCache
from flowserver.store.executions.new_executions import NewExecution
from flowserver.store.schema.tables import history_parts
from flowserver.store.sql import prepared
from flowserver.store.sql.database import Database
from tests.engine.nodes import TOKENS, definition
from tests.store.rows import flow_row, insert_flow
from tests.support.clock import ManualClock

FEW, MANY = 500, 5_000
TIMES_AT_MOST = 11
"""Twelve are promised, including a checkpoint's writes into the file, which `tests/benchmarks` measures."""

MESSAGES_AT_ONCE = 20
"""Of a window of 100 calls, in random order. With fewer in a batch, the pages that all batches touch would dominate."""

STEPS = {
    "passes": "{type: pass, name: step}",
    "tasks": """{type: task, name: step, resourceArn: 'acs:fc:::services/s/functions/f',
         inputMappings: [{target: item, source: $input.item}], outputMappings: [{target: ok, source: $local.ok}]}""",
    "callbacks": """{type: task, name: step, pattern: waitForCallback, resourceArn: 'acs:fc:::services/s/functions/f',
         inputMappings: [{target: token, source: $context.task.token}],
         outputMappings: [{target: ok, source: $local.ok}]}""",
}
"""The work for each item, by kind."""

EACH = """
    - type: foreach
      name: each
      iterationMapping: {collection: $.items, item: item}
      steps:
      - %s
      outputMappings: [{target: done, source: true}]
"""


class Calls:
    """Runs batches, makes the calls that they order, and reports the task tokens of the calls."""

    def __init__(self, database: Database, clock: ManualClock, *, keeps: bool = True) -> None:
        """Without `keeps`, executions are loaded for each batch, as if other nodes ran the batches in between."""
        limits = Limits()
        self._keeps = keeps
        self._database = database
        self._warm = ExecutionCache(limits.cached_executions_bytes_max)
        self._context = BatchContext(clock, limits, "null", TOKENS, Lease("node-1"), DefinitionCache(), self._warm)
        self._chance = random.Random(0)
        with database.write() as connection:
            register_node(connection, "node-1", "session", 0)
            for kind, step in STEPS.items():
                insert_flow(connection, flow_row(kind, definition=definition(EACH % step)))

    def run(self, kind: str, items: list[Json]) -> None:
        """One execution over these items, until its end."""
        given = {"items": items}
        name = f"{kind}-over-{len(items)}"
        waiting = [Envelope(name, Start(), NewExecution(name, kind, name, dump_json(given), given))]
        while waiting:
            # Reports arrive when no call is under way, so the execution waits for tokens only.
            reports = [each for each in waiting if isinstance(each.message, TaskReported)]
            others = [each for each in waiting if not isinstance(each.message, TaskReported)]
            batch = (others or reports)[:MESSAGES_AT_ONCE]
            waiting = [*others[len(batch) :], *reports] if others else reports[len(batch) :]
            result = self._commit(batch)
            waiting.extend(_messages(result))
            self._chance.shuffle(waiting)
        assert [changes.stored.execution.status for changes in result.changes] == [Status.SUCCEEDED]

    def _commit(self, batch: list[Envelope]) -> BatchResult:
        with self._database.write() as connection:
            working = Batch(connection, self._context)
            result = working.run(batch)
        working.settle()
        if not self._keeps:
            self._warm.clear()
        return result


def _messages(result: BatchResult) -> Iterator[Envelope]:
    """Replies and reports of the calls that a batch ordered, and the messages that continue its executions."""
    for changes in result.changes:
        execution_id = changes.stored.execution.execution_id
        for command in changes.commands:
            assert isinstance(command, InvokeTask)
            yield Envelope(execution_id, TaskReplied(command.scope_id, command.wait_id, Success({"ok": True})))
            if command.token is not None:
                claim = TOKENS.read(command.token)
                assert claim is not None
                report = TaskReported(claim.scope_id, claim.entered_event_id, claim.wait_id, Success({"ok": True}))
                yield Envelope(execution_id, report)
    yield from (Envelope(execution_id, Continue()) for execution_id in result.continuing)


def _ask(connection: Connection, pragma: str) -> tuple[Any, ...]:
    """The result of a query outside SQLAlchemy's transactions."""
    driver: Any = connection.connection.driver_connection
    row: tuple[Any, ...] = driver.execute(f"PRAGMA {pragma}").fetchone()
    return row


def _logged_pages(database: Database, calls: Calls, kind: str, items: list[Json]) -> int:
    """Pages that one execution over these items adds to an empty log."""
    database.checkpoint()
    calls.run(kind, items)
    with database.read() as connection:
        connection.rollback()
        _, logged, _ = _ask(connection, "wal_checkpoint(PASSIVE)")
    return int(logged)


@pytest.fixture
def counting_database(sqlite_database: Database) -> Database:
    """A database whose log is not checkpointed, so that its pages can be counted."""
    with sqlite_database.write() as connection:
        _ask(connection, "wal_autocheckpoint = 0")  # of the connection that is kept for the writer
    return sqlite_database


@pytest.mark.parametrize(
    ("kind", "few", "many"),
    [
        ("passes", list(range(FEW)), list(range(MANY))),
        ("passes", [{"sku": "x" * 100}] * 200, [{"sku": "x" * 100}] * 2_000),
        ("tasks", list(range(FEW)), list(range(MANY))),
        ("callbacks", list(range(FEW)), list(range(MANY))),
    ],
)
def test_ten_times_the_items_write_ten_times_the_pages(
    counting_database: Database, clock: ManualClock, kind: str, few: list[Json], many: list[Json]
) -> None:
    calls = Calls(counting_database, clock)
    calls.run(kind, few[:10])
    small = _logged_pages(counting_database, calls, kind, few)
    large = _logged_pages(counting_database, calls, kind, many)
    assert large <= TIMES_AT_MOST * small, f"{small} pages for {len(few)} items, {large} for {len(many)}"


@pytest.fixture
def read_rows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of rows that each statement of a turn has read."""
    counts: list[int] = []
    fetch_all = prepared.fetch_all

    def counting(*arguments: Any) -> prepared.Rows:
        rows = fetch_all(*arguments)
        counts.append(len(rows))
        return rows

    monkeypatch.setattr(prepared, "fetch_all", counting)
    return counts


@pytest.mark.parametrize("keeps", [True, False])
def test_ten_times_the_callbacks_read_ten_times_the_rows(
    sqlite_database: Database, clock: ManualClock, read_rows: list[int], *, keeps: bool
) -> None:
    calls = Calls(sqlite_database, clock, keeps=keeps)
    read = []
    for count in (FEW, MANY):
        read_rows.clear()
        calls.run("callbacks", list(range(count)))
        read.append(sum(read_rows))
    assert read[1] <= TIMES_AT_MOST * read[0], f"{read[0]} rows for {FEW} items, {read[1]} for {MANY}"
    if keeps:
        assert read[0] < 10 * FEW, "an execution that waits for many messages is not loaded for each"


@pytest.mark.parametrize("keeps", [True, False])
def test_a_large_collection_is_stored_once_in_the_history(
    sqlite_database: Database, clock: ManualClock, *, keeps: bool
) -> None:
    Calls(sqlite_database, clock, keeps=keeps).run("callbacks", list(range(FEW)))
    with sqlite_database.read() as connection:
        assert connection.execute(select(func.count()).select_from(history_parts)).scalar_one() == 1
