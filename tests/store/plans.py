"""A database's plans for the statements of a query function."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from psycopg import RawCursor
from sqlalchemy import Connection

from flowserver.store.sql.pipeline import Pipeline
from flowserver.store.sql.prepared import PIPELINE, send_waiting

Heard = Callable[[Any, str, Any], None]
"""Called with the driver's connection, a statement and its values, before the statement is executed."""


def plan_of(connection: Connection, query: Callable[[Connection], Any]) -> list[str]:
    """The plan, line by line, of every statement that reaches the driver."""
    asked: list[tuple[str, Any]] = []
    with listening(connection, lambda _, sql, values: asked.append((sql, values))) as driver:
        query(connection)
    assert asked, "no statement was executed"
    is_sqlite = connection.dialect.name == "sqlite"
    plan = list[str]()
    for sql, values in asked:
        cursor = RawCursor(driver) if isinstance(values, list) else driver.cursor()
        cursor.execute(f"EXPLAIN {'QUERY PLAN ' if is_sqlite else ''}{sql}", values)
        plan.extend(str(line[-1]) for line in cursor.fetchall())
        cursor.close()
    return plan


@contextmanager
def listening(connection: Connection, heard: Heard) -> Iterator[Any]:
    """Pass every statement that reaches the driver to `heard` first; yields the driver's connection."""
    pooled: Any = connection.connection
    driver = pooled.dbapi_connection
    pooled.dbapi_connection = _ReportingConnection(driver, heard)
    if connection.dialect.name == "postgresql":
        connection.info[PIPELINE] = _ReportingPipeline(driver, heard)
    try:
        yield driver
        send_waiting(connection)
    finally:
        pooled.dbapi_connection = driver
        connection.info.pop(PIPELINE, None)


class _Proxy:
    """Has all attributes of another object."""

    def __init__(self, driver: Any, heard: Callable[[str, Any], None]) -> None:
        self._driver = driver
        self._heard = heard

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driver, name)


class _ReportingConnection(_Proxy):
    """A driver's connection that reports its statements."""

    def __init__(self, driver: Any, heard: Heard) -> None:
        super().__init__(driver, lambda sql, values: heard(driver, sql, values))

    def cursor(self, *arguments: Any, **named: Any) -> Any:
        return _ReportingCursor(self._driver.cursor(*arguments, **named), self._heard)


class _ReportingPipeline(Pipeline):
    """A pipeline that reports its statements, with their values in a list."""

    def __init__(self, driver: Any, heard: Heard) -> None:
        super().__init__(driver)
        self._heard = heard

    def later(self, sql: str, values: Sequence[object], *arguments: Any, **named: Any) -> None:
        self._heard(self._driver, sql, list(values))
        super().later(sql, values, *arguments, **named)


class _ReportingCursor(_Proxy):
    def execute(self, sql: str, values: Any = ()) -> Any:
        self._heard(sql, values)
        return self._driver.execute(sql, values)

    def executemany(self, sql: str, rows: Any) -> Any:
        self._heard(sql, rows[0])
        return self._driver.executemany(sql, rows)
