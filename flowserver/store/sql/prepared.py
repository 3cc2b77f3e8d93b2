"""Runs the statements of every turn directly on the driver.

SQLAlchemy's work around a statement, and around every row of an executemany, costs several times SQLite's own. Here a
statement is compiled once per database and set of keys, and parameters and rows are passed unchanged. So this works
only for columns whose values need no conversion: text, integers, and booleans in writes. Errors are SQLAlchemy's.
"""

from collections import namedtuple
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from sqlalchemy import Connection, Select
from sqlalchemy.engine import Dialect
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.base import Executable
from sqlalchemy.sql.dml import UpdateBase

from flowserver.base.json_values import dump_json
from flowserver.store.sql.statements_for_many_rows import ROWS, over_recordset

T = TypeVar("T")

Rows = list[tuple[Any, ...]]


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
        given = {ROWS: dump_json(rows)}
        return _run(connection, sql, lambda cursor: int(cursor.execute(sql, given).rowcount))
    sql, order = _compiled(statement, connection.dialect, keys)
    assert order is not None
    ordered = [tuple([row[key] for key in order]) for row in rows]
    return _run(connection, sql, lambda cursor: int(cursor.executemany(sql, ordered).rowcount))


def execute_plain(connection: Connection, sql: str) -> None:
    """Execute one statement without parameters."""
    _run(connection, sql, lambda cursor: cursor.execute(sql))


def fetch_all(connection: Connection, statement: Executable, parameters: dict[str, Any]) -> Rows:
    """All rows of a query, as the driver returns them."""
    sql, order = _compiled(statement, connection.dialect, tuple(parameters))
    given = parameters if order is None else tuple([parameters[key] for key in order])

    def fetch(cursor: Any) -> Rows:
        rows: Rows = cursor.execute(sql, given).fetchall()
        return rows

    return _run(connection, sql, fetch)


def fetch_rows(connection: Connection, statement: Select[Any], parameters: dict[str, Any]) -> list[Any]:
    """Like `fetch_all`, as named tuples: an attribute for each column, `_asdict`."""
    return list(map(_row_type(statement)._make, fetch_all(connection, statement, parameters)))


def _run(connection: Connection, sql: str, work: Callable[[Any], T]) -> T:
    cursor = connection.connection.cursor()
    try:
        return work(cursor)
    except connection.dialect.loaded_dbapi.Error as error:
        raise _wrapped(connection, sql, error) from error
    finally:
        cursor.close()


def _wrapped(connection: Connection, sql: str, error: Any) -> BaseException:
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


@lru_cache(maxsize=64)
def _compiled(statement: Executable, dialect: Dialect, keys: tuple[str, ...]) -> tuple[str, tuple[str, ...] | None]:
    """The driver's SQL, and for positional drivers the order of the parameters."""
    compiled = statement.compile(dialect=dialect, column_keys=list(keys))  # type: ignore[attr-defined]
    order = compiled.positiontup  # of SQLCompiler
    return compiled.string, None if order is None else tuple(order)
