"""Measures the space that the data uses, and returns free space to the file system."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    LargeBinary,
    Table,
    cast,
    func,
    literal,
    literal_column,
    select,
    tablesample,
)

from flowserver.store.schema.all_tables import metadata
from flowserver.store.schema.invocation_tables import invocations
from flowserver.store.schema.queue_tables import deliveries, queue_messages

WAITING_TABLES = (queue_messages, deliveries, invocations)
"""What others send to this server, at their own pace. It does not count against the space for executions."""

SAMPLED_PAGES = 500
"""Pages read of each table of a PostgreSQL database: 4 MB, which takes some milliseconds."""

ROW_BYTES = 120
"""Space of a row in PostgreSQL besides its values: its header, its share of indexes and of half-empty pages."""

PAGE_BYTES = 8_192
SAMPLED_ROWS = 200
"""Rows read of a table of a SQLite file, evenly spread over its row ids."""


def used_bytes(connection: Connection) -> int:
    """Bytes that the data uses, without free pages.

    On SQLite the used pages of the file, without the log. On PostgreSQL an estimate from a sample of the rows of every
    table: it falls when rows are deleted, although PostgreSQL reuses their space only later.
    """
    if connection.dialect.name == "sqlite":
        pages, free = _pages(connection)
        return (pages - free) * int(connection.exec_driver_sql("PRAGMA page_size").scalar_one())
    return sum(_sampled_bytes(connection, table) for table in metadata.sorted_tables)


def database_bytes(connection: Connection) -> int:
    """Bytes of the database's files, without logs: of all its tables and indexes, those of other programs too."""
    if connection.dialect.name == "sqlite":
        pages, _ = _pages(connection)
        return pages * int(connection.exec_driver_sql("PRAGMA page_size").scalar_one())
    return int(connection.execute(select(func.pg_database_size(func.current_database()))).scalar_one())


def executions_bytes(connection: Connection) -> int:
    """The used bytes without those of queues, deliveries and invocations, which are estimated from samples."""
    if connection.dialect.name == "sqlite":
        return used_bytes(connection) - sum(_estimated_bytes(connection, table) for table in WAITING_TABLES)
    counted = (table for table in metadata.sorted_tables if table not in WAITING_TABLES)
    return sum(_sampled_bytes(connection, table) for table in counted)


def free_pages(connection: Connection) -> tuple[int, int]:
    """The numbers of free pages and of all pages of a SQLite file."""
    pages, free = _pages(connection)
    return free, pages


def give_back(connection: Connection, pages: int) -> None:
    """Shorten a SQLite file by up to `pages` free pages; the file shrinks on the disk with the next checkpoint."""
    driver: Any = connection.connection.driver_connection
    for _ in range(pages):  # one by one: the driver executes one step of the statement, which frees one page
        driver.execute("PRAGMA incremental_vacuum(1)")


def _pages(connection: Connection) -> tuple[int, int]:
    pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
    return int(pages), int(connection.exec_driver_sql("PRAGMA freelist_count").scalar_one())


def _sampled_bytes(connection: Connection, table: Table) -> int:
    pages = connection.execute(select(func.pg_relation_size(table.name) / PAGE_BYTES)).scalar_one()
    percent = min(100.0, 100.0 * SAMPLED_PAGES / max(int(pages), 1))
    rows = tablesample(table, func.system(percent))
    # Stored sizes: a value outside its row is not read.
    width = _width(func.pg_column_size(column) for column in rows.c)
    found = connection.execute(select(func.coalesce(func.sum(width), 0)).select_from(rows)).scalar_one()
    return int(float(found) * 100 / percent)


def _estimated_bytes(connection: Connection, table: Table) -> int:
    """The number of rows of a table of a SQLite file, times the mean width of some of them."""
    row_id = literal_column("rowid", BigInteger)
    ends = select(func.count(), func.min(row_id), func.max(row_id)).select_from(table)
    count, first, last = connection.execute(ends).one()
    if not count:
        return 0
    step = (last - first) // SAMPLED_ROWS + 1
    points = select(literal(first).label("point")).cte("points", recursive=True)
    next_point = points.c.point + step
    points = points.union_all(select(next_point).where(next_point <= last))
    width = _width(func.length(cast(column, LargeBinary)) for column in table.c)
    nearest = select(width).where(row_id >= points.c.point).order_by(row_id).limit(1).scalar_subquery()
    mean = connection.execute(select(func.avg(nearest)).select_from(points)).scalar_one()
    return int(count * mean)


def _width(sizes: Iterable[ColumnElement[int]]) -> ColumnElement[int]:
    return sum((func.coalesce(size, 0) for size in sizes), start=literal(ROW_BYTES))
