"""Many rows through one statement, with as little work per row as the driver allows.

SQLAlchemy prepares the parameters of every row of an executemany in Python, which costs more than SQLite's own work
on the row. Here a statement is compiled once per database and set of keys, and rows go to the driver as they are.
Only for columns whose values need no conversion: text, integers, booleans.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.dml import UpdateBase


def execute_many(connection: Connection, statement: UpdateBase, rows: Sequence[dict[str, Any]]) -> int:
    """Execute the statement for every row; all rows have the same keys. Returns how many rows it changed."""
    if not rows:
        return 0
    sql, order = _compiled(statement, connection.dialect, tuple(rows[0]))
    if order is None:
        return connection.exec_driver_sql(sql, list(rows)).rowcount
    return connection.exec_driver_sql(sql, [tuple([row[key] for key in order]) for row in rows]).rowcount


@lru_cache(maxsize=64)
def _compiled(statement: UpdateBase, dialect: Dialect, keys: tuple[str, ...]) -> tuple[str, tuple[str, ...] | None]:
    """The driver's SQL, and for positional drivers the order of the parameters."""
    compiled = statement.compile(dialect=dialect, column_keys=list(keys))
    order = compiled.positiontup  # of SQLCompiler
    return compiled.string, None if order is None else tuple(order)
