"""Prepared statements over libpq's own calls: many in one message to PostgreSQL, with one wait for all results.

With a cursor of psycopg a statement takes four times as much processor time, and waits for its own result. Between two
calls of a pipeline the connection is in its normal state, so psycopg and SQLAlchemy can use it as well.

Every statement is prepared at its first use, so psycopg must not prepare any itself (`prepare_threshold` None): after a
rollback it would deallocate all.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from psycopg import Connection, DataError, OperationalError
from psycopg.abc import PQGen
from psycopg.adapt import Transformer
from psycopg.errors import DivisionByZero, error_from_result
from psycopg.pq import ConnStatus, ExecStatus, TransactionStatus
from psycopg.pq.abc import PGconn, PGresult
from psycopg.waiting import READY_R, WAIT_R, WAIT_RW, wait

BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
COMMIT = "COMMIT"

WAIT_SECONDS = 0.1
"""A wait looks this often whether the main thread was interrupted."""

_NUMBERS = count(1)
"""Of prepared statements; no two of a process have the same."""

Check = Callable[[PGresult], object]
"""Looks at a statement's result; may raise."""


@dataclass(slots=True)
class _Statement:
    sql: str
    values: list[bytes | None]
    check: Check | None
    error: type[Exception] | None


class Pipeline:
    """What one connection has prepared, and the statements that wait to be sent. Used by one thread at a time."""

    def __init__(self, driver: Connection[Any]) -> None:
        self._driver = driver
        self._transformer = Transformer(driver)
        self._names: dict[str, bytes] = {}
        self._waiting: list[_Statement] = []

    def later(
        self, sql: str, values: Sequence[object], check: Check | None = None, error: type[Exception] | None = None
    ) -> None:
        """Add a statement to the next message. `error` is raised in place of a division by zero in the statement."""
        self._waiting.append(_Statement(sql, [_encoded(value) for value in values], check, error))

    def run(self, sql: str, values: Sequence[object]) -> PGresult:
        """Send what waits, and this statement; returns its result."""
        results: list[PGresult] = []
        self.later(sql, values, results.append)
        self.send()
        return results[0]

    def rows(self, result: PGresult) -> list[tuple[Any, ...]]:
        """All rows of a result."""
        self._transformer.set_pgresult(result)
        return self._transformer.load_rows(0, result.ntuples, tuple)

    def send(self) -> None:
        """Send what waits, in a transaction, and wait for the results. The first failure or check that raises counts.

        Raises psycopg's errors; if the connection is gone or in an unknown state, it is closed then.
        """
        if not self._waiting:
            return
        statements, self._waiting = self._waiting, []
        connection = self._driver.pgconn
        if connection.transaction_status == TransactionStatus.IDLE and not self._driver.autocommit:
            statements.insert(0, _Statement(BEGIN, [], None, None))
        results = self._exchange(connection, statements)
        for statement, result in zip(statements, results, strict=True):
            if result.status == ExecStatus.FATAL_ERROR:
                error = error_from_result(result)
                error.add_note(statement.sql)
                if statement.error is not None and isinstance(error, DivisionByZero):
                    raise statement.error from error
                raise error
        for statement, result in zip(statements, results, strict=True):
            if statement.check is not None:
                statement.check(result)

    def commit(self) -> None:
        """Send what waits; then COMMIT, if a transaction is open."""
        if any(statement.check is not None for statement in self._waiting):
            self.send()
        if self._waiting or self._driver.pgconn.transaction_status != TransactionStatus.IDLE:
            self.later(COMMIT, (), _require_commit)
            self.send()

    def forget(self) -> None:
        """Drop what waits: the transaction is rolled back."""
        self._waiting.clear()

    def _exchange(self, connection: PGconn, statements: Sequence[_Statement]) -> list[PGresult]:
        new: dict[str, bytes] = {}
        try:
            connection.enter_pipeline_mode()
            for statement in statements:
                name = self._names.get(statement.sql) or new.get(statement.sql)
                if name is None:
                    name = new[statement.sql] = b"flowserver_%d" % next(_NUMBERS)
                    connection.send_prepare(name, statement.sql.encode())
                connection.send_query_prepared(name, statement.values)
            connection.pipeline_sync()
            results = wait(_results(connection), connection.socket, WAIT_SECONDS)
            connection.exit_pipeline_mode()
        except BaseException:
            self._driver.close()
            raise
        return self._without_preparations(statements, results, new)

    def _without_preparations(
        self, statements: Sequence[_Statement], results: Sequence[PGresult], new: dict[str, bytes]
    ) -> list[PGresult]:
        """The result of each statement; that of its preparation if this has failed."""
        own: list[PGresult] = []
        left = iter(results)
        for statement in statements:
            result = next(left)
            name = new.pop(statement.sql, None)
            if name is not None:
                executed = next(left)
                if result.status == ExecStatus.COMMAND_OK:
                    self._names[statement.sql] = name
                    result = executed
            own.append(result)
        return own


def _results(connection: PGconn) -> PQGen[list[PGresult]]:
    """Sends what libpq still holds, and reads one result for each thing sent."""
    while connection.flush():  # it could not send everything at once
        ready = yield WAIT_RW
        if ready & READY_R:
            connection.consume_input()
    results: list[PGresult] = []
    while True:
        while connection.is_busy():
            yield WAIT_R
            connection.consume_input()
        result = connection.get_result()
        if result is None:
            if connection.status == ConnStatus.BAD:
                raise OperationalError("the connection is lost")
        elif result.status == ExecStatus.PIPELINE_SYNC:
            return results
        else:
            results.append(result)


def _encoded(value: object) -> bytes | None:
    """A value as text. Raises DataError for a NUL, at which libpq would end the text."""
    if value is None:
        return None
    if isinstance(value, bool):
        return b"t" if value else b"f"
    if isinstance(value, list):
        return _encoded("{" + ",".join(map(_element, value)) + "}")
    text = str(value).encode()
    if b"\0" in text:
        raise DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
    return text


def _element(text: str) -> str:
    """A text as an element of an array."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _require_commit(result: PGresult) -> None:
    if result.command_status != b"COMMIT":
        raise OperationalError("the transaction had failed and was rolled back")
