"""The database that two nodes share: real tables in memory. Faults are injected at the moment of commit."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, create_engine, delete, event
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import StaticPool

from flowserver.engine.commit.batch import BatchResult
from flowserver.engine.commit.batch_items import Item
from flowserver.store.schema.all_tables import metadata
from tests.simulation.fault_rates import Crash, Fault

TABLES = (
    "flows",
    "flow_versions",
    "definitions",
    "executions",
    "execution_documents",
    "scopes",
    "kept_scopes",
    "kept_items",
    "histories",
    "history_parts",
    "invocations",
    "nodes",
    "schedules",
)

Witness = Callable[[Sequence[Item], BatchResult], None]


class SharedDatabase:
    """One SQLite database in memory, with the two methods of `Database` that the engine uses."""

    def __init__(self) -> None:
        engine = create_engine("sqlite://", poolclass=StaticPool)
        event.listen(engine, "connect", _prepare)
        event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
        metadata.create_all(engine)
        self._connection = engine.connect()
        self._written: tuple[Sequence[Item], BatchResult] | None = None
        self.session_name = "simulated"
        self.next_fault: Callable[[int], Fault] = lambda _: Fault.NONE
        self.witness: Witness = lambda items, result: None

    def wipe(self) -> None:
        """Empty the tables for the next world."""
        with self.read() as connection:
            for name in TABLES:
                connection.execute(delete(metadata.tables[name]))

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction of the test itself or of a reader; it never fails."""
        with self._connection.begin():
            yield self._connection

    def wrote(self, items: Sequence[Item], result: BatchResult) -> None:
        """Set the result of the current transaction; the witness gets it once the transaction is durable."""
        self._written = items, result

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction of a node. It may end in a crash or an error, before or after it is durable."""
        self._written = None
        transaction = self._connection.begin()
        try:
            yield self._connection
        except BaseException:
            transaction.rollback()
            raise
        fault = self.next_fault(0 if self._written is None else len(self._written[0]))
        if fault in (Fault.CRASH_BEFORE, Fault.LOST):
            transaction.rollback()
        else:
            transaction.commit()
            if self._written is not None:
                self.witness(*self._written)
        if fault in (Fault.CRASH_BEFORE, Fault.CRASH_AFTER):
            raise Crash(fault)
        if fault is not Fault.NONE:
            raise OperationalError("COMMIT", None, sqlite3.OperationalError(fault.value))


def _prepare(connection: Any, _record: object) -> None:
    connection.isolation_level = None
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("PRAGMA journal_mode = MEMORY")
