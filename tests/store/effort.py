"""Counts how much of a table a database reads for the statements of a query function; the counts are independent of
time.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

from psycopg import RawCursor
from sqlalchemy import Connection

from tests.store.plans import listening


def effort_of(connection: Connection, query: Callable[[Connection], Any]) -> int:
    """Rows that scans visit on PostgreSQL, steps of the virtual machine on SQLite; the sum over all statements."""
    return (_steps if connection.dialect.name == "sqlite" else _rows_visited)(connection, query)


def _steps(connection: Connection, query: Callable[[Connection], Any]) -> int:
    pooled: Any = connection.connection
    driver = pooled.dbapi_connection
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    driver.set_progress_handler(count, 1)
    try:
        query(connection)
    finally:
        driver.set_progress_handler(None, 0)
    return steps


def _rows_visited(connection: Connection, query: Callable[[Connection], Any]) -> int:
    """Each statement is executed twice: once to be counted, and rolled back, and once for its result."""
    visited = 0

    def count(driver: Any, sql: str, values: Any) -> None:
        nonlocal visited
        with RawCursor(driver) if isinstance(values, list) else driver.cursor() as cursor:
            cursor.execute("SAVEPOINT counted")
            ((found,),) = cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", values).fetchall()
            cursor.execute("ROLLBACK TO counted")
        visited += sum(map(_visited_by, _nodes((json.loads(found) if isinstance(found, str) else found)[0]["Plan"])))

    with listening(connection, count):
        query(connection)
    return visited


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", ()):
        yield from _nodes(below)


def _visited_by(node: dict[str, Any]) -> int:
    if "Scan" not in node["Node Type"] or "Relation Name" not in node:
        return 0
    removed = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
    return int((node["Actual Rows"] + removed) * node["Actual Loops"])
