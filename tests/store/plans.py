"""How a database would carry out the statements of a query function."""

from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection

Asked = list[tuple[str, Any]]


def plan_of(connection: Connection, query: Callable[[Connection], Any]) -> list[str]:
    """The plan, line by line; of every statement that reaches the driver, whoever sends it."""
    pooled: Any = connection.connection
    driver = pooled.dbapi_connection
    asked: Asked = []
    pooled.dbapi_connection = _Listening(driver, asked)
    try:
        query(connection)
    finally:
        pooled.dbapi_connection = driver
    assert asked, "nothing was asked"
    is_sqlite = connection.dialect.name == "sqlite"
    cursor, plan = driver.cursor(), list[str]()
    for sql, values in asked:
        cursor.execute(f"EXPLAIN {'QUERY PLAN ' if is_sqlite else ''}{sql}", values)
        plan.extend(str(line[-1]) for line in cursor.fetchall())
    cursor.close()
    return plan


class _Through:
    """Has all that another object has."""

    def __init__(self, driver: Any, asked: Asked) -> None:
        self._driver = driver
        self._asked = asked

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driver, name)


class _Listening(_Through):
    """A driver's connection that notes what is asked of it."""

    def cursor(self, *arguments: Any, **named: Any) -> Any:
        return _Noting(self._driver.cursor(*arguments, **named), self._asked)


class _Noting(_Through):
    def execute(self, sql: str, values: Any = ()) -> Any:
        self._asked.append((sql, values))
        return self._driver.execute(sql, values)

    def executemany(self, sql: str, rows: Any) -> Any:
        self._asked.append((sql, rows[0]))
        return self._driver.executemany(sql, rows)
