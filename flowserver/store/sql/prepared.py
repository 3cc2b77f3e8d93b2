"""Runs the statements of every turn directly on the driver.

SQLAlchemy's work around a statement, and around every row of an executemany, costs several times SQLite's own. Here a
statement is compiled once per database and set of keys, and parameters and rows are passed unchanged. So this works
only for columns whose values need no conversion: text, integers, and booleans in writes. Errors are SQLAlchemy's.

On PostgreSQL a statement may wait for the next one, or for the COMMIT, and be sent with it (`Pipeline`). The order
stays the same, also beside SQLAlchemy's own statements.
"""

from collections import namedtuple
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import Connection, Select
from sqlalchemy.engine import Dialect
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.base import Executable
from sqlalchemy.sql.dml import UpdateBase

from flowserver.base.json_values import dump_json
from flowserver.base.lazy_import import load
from flowserver.store.sql.statements_for_many_rows import over_recordset

if TYPE_CHECKING:  # psycopg takes longer to import than SQLite to open
    from flowserver.store.sql.pipeline import Pipeline

T = TypeVar("T")

Rows = list[tuple[Any, ...]]

PIPELINE = "flowserver pipeline"
"""The key of a PostgreSQL connection's pipeline in `Connection.info`."""


def execute_many(connection: Connection, statement: UpdateBase, rows: Sequence[dict[str, Any]]) -> int:
    """Execute the statement for every row and return how many rows changed.

    All rows must have the same keys and name different rows of the table: SQLite executes them one by one, PostgreSQL
    all at once.
    """
    if not rows:
        return 0
    keys = tuple(rows[0])
    if connection.dialect.name == "postgresql":
        sql, _ = _compiled(over_recordset(statement, keys), connection.dialect, ())
        return _in_pipeline(connection, lambda pipeline: pipeline.run(sql, [dump_json(rows)]).command_tuples or 0)
    sql, order = _compiled(statement, connection.dialect, keys)
    assert order is not None
    ordered = [tuple([row[key] for key in order]) for row in rows]
    return _run(connection, sql, lambda cursor: int(cursor.executemany(sql, ordered).rowcount))


def without_nulls(rows: Sequence[dict[str, Any]], key: str) -> Sequence[dict[str, Any]]:
    """The rows to insert, without that key if it is None in all of them, as it mostly is: that costs nothing then."""
    if all(row[key] is None for row in rows):
        for row in rows:
            del row[key]
    return rows


def write_later(
    connection: Connection,
    statement: UpdateBase,
    rows: Sequence[dict[str, Any]],
    *,
    unless_all_change: type[Exception] | None = None,
) -> None:
    """Like `execute_many`, but on PostgreSQL the statement may be sent, and fail, as late as with the COMMIT.

    Then nothing is committed. With `unless_all_change` that error is raised unless every row changes a row.
    """
    if not rows:
        return
    if connection.dialect.name == "sqlite":
        if execute_many(connection, statement, rows) != len(rows) and unless_all_change is not None:
            raise unless_all_change
        return
    sql, _ = _compiled(over_recordset(statement, tuple(rows[0])), connection.dialect, ())
    values: list[object] = [dump_json(rows)]
    if unless_all_change is not None:
        # The statement itself fails, so that COMMIT can be sent before its result is known.
        sql = f"WITH changed AS ({sql} RETURNING 1) SELECT 1 / CAST(count(*) = $2 AS integer) FROM changed"  # noqa: S608 # as compiled
        values.append(len(rows))
    _in_pipeline(connection, lambda pipeline: pipeline.later(sql, values, error=unless_all_change))


def execute_plain(connection: Connection, sql: str) -> None:
    """Execute one statement without parameters."""
    if connection.dialect.name == "postgresql":
        _in_pipeline(connection, lambda pipeline: pipeline.run(sql, ()))
    else:
        _run(connection, sql, lambda cursor: cursor.execute(sql))


def fetch_all(connection: Connection, statement: Executable, parameters: dict[str, Any]) -> Rows:
    """All rows of a query, as the driver returns them."""
    sql, order = _compiled(statement, connection.dialect, tuple(parameters))
    assert order is not None
    given = tuple([parameters[key] for key in order])
    if connection.dialect.name == "postgresql":
        return _in_pipeline(connection, lambda pipeline: pipeline.rows(pipeline.run(sql, given)))

    def fetch(cursor: Any) -> Rows:
        rows: Rows = cursor.execute(sql, given).fetchall()
        return rows

    return _run(connection, sql, fetch)


def fetch_rows(connection: Connection, statement: Select[Any], parameters: dict[str, Any]) -> list[Any]:
    """Like `fetch_all`, as named tuples: an attribute for each column, `_asdict`."""
    return list(map(_row_type(statement)._make, fetch_all(connection, statement, parameters)))


def require_later(connection: Connection, statement: Executable, parameters: dict[str, Any], error: Exception) -> None:
    """Raise the error if the query has no rows; on PostgreSQL as late as with the COMMIT, which then is not sent."""
    if connection.dialect.name == "sqlite":
        if not fetch_all(connection, statement, parameters):
            raise error
        return
    sql, order = _compiled(statement, connection.dialect, tuple(parameters))
    assert order is not None

    def check(result: Any) -> None:
        if not result.ntuples:
            raise error

    given = [parameters[key] for key in order]
    _in_pipeline(connection, lambda pipeline: pipeline.later(sql, given, check))


def send_waiting(connection: Connection) -> None:
    """Send the statements that wait on a PostgreSQL connection, and raise if one fails."""
    if PIPELINE in connection.info:
        _in_pipeline(connection, lambda pipeline: pipeline.send())


def commit_waiting(connection: Connection) -> None:
    """Commit on PostgreSQL, in one message with the statements that wait; the driver finds nothing to commit then."""
    if PIPELINE in connection.info:
        _in_pipeline(connection, lambda pipeline: pipeline.commit())


def forget_waiting(connection: Connection) -> None:
    """Drop the statements that wait on a PostgreSQL connection: its transaction is rolled back."""
    if not connection.invalidated and PIPELINE in connection.info:
        connection.info[PIPELINE].forget()


def _in_pipeline(connection: Connection, work: "Callable[[Pipeline], T]") -> T:
    info = connection.info
    pipeline = info.get(PIPELINE)
    if pipeline is None:
        pipeline = info[PIPELINE] = load("flowserver.store.sql.pipeline:Pipeline")(
            connection.connection.driver_connection
        )
    try:
        return work(pipeline)
    except connection.dialect.loaded_dbapi.Error as error:
        raise _wrapped(connection, next(iter(getattr(error, "__notes__", ())), None), error) from error


def _run(connection: Connection, sql: str, work: Callable[[Any], T]) -> T:
    cursor = connection.connection.cursor()
    try:
        return work(cursor)
    except connection.dialect.loaded_dbapi.Error as error:
        raise _wrapped(connection, sql, error) from error
    finally:
        cursor.close()


def _wrapped(connection: Connection, sql: str | None, error: Any) -> BaseException:
    """The driver's error as SQLAlchemy's. If it closed the connection, the connection is invalidated."""
    dialect = connection.dialect
    is_gone = dialect.is_disconnect(error, connection.connection, None)
    wrapped: BaseException = DBAPIError.instance(
        sql,
        None,
        error,
        dialect.loaded_dbapi.Error,
        hide_parameters=True,
        connection_invalidated=is_gone,
        dialect=dialect,
    )
    if is_gone:
        connection.invalidate(error)
    return wrapped


@lru_cache(maxsize=64)
def _row_type(statement: Select[Any]) -> Any:
    return namedtuple("Row", statement.selected_columns.keys())


@lru_cache(maxsize=128)
def _compiled(statement: Executable, dialect: Dialect, keys: tuple[str, ...]) -> tuple[str, tuple[str, ...] | None]:
    """The database's own SQL, with `?` or `$1` for parameters, and their order."""
    spelled = _numbering() if dialect.name == "postgresql" else dialect
    compiled = statement.compile(dialect=spelled, column_keys=list(keys))  # type: ignore[attr-defined]
    order = compiled.positiontup  # of SQLCompiler
    return compiled.string, None if order is None else tuple(order)


@cache
def _numbering() -> Dialect:
    dialect: Dialect = load("sqlalchemy.dialects.postgresql.psycopg:PGDialect_psycopg")(paramstyle="numeric_dollar")
    return dialect
