"""How SQLite would carry out the statements of a query function."""

from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, event


def plan_of(connection: Connection, query: Callable[[Connection], Any]) -> list[str]:
    """The plan, line by line."""
    asked: list[tuple[str, Any]] = []

    def note(_: Any, __: Any, statement: str, parameters: Any, *rest: Any) -> None:
        asked.append((statement, parameters))

    event.listen(connection.engine, "before_cursor_execute", note)
    query(connection)
    event.remove(connection.engine, "before_cursor_execute", note)
    plans = [connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", values).all() for sql, values in asked]
    return [row.detail for plan in plans for row in plan]
