"""Measures the space that the data uses, and returns free space to the file system."""

from typing import Any

from sqlalchemy import Connection, Table, func, literal, select, tablesample

from flowserver.store.schema.all_tables import metadata

SAMPLED_PAGES = 500
"""Pages read of each table of a PostgreSQL database: 4 MB, which takes some milliseconds."""

ROW_BYTES = 120
"""Space of a row in PostgreSQL besides its values: its header, its share of indexes and of half-empty pages."""

PAGE_BYTES = 8_192


def used_bytes(connection: Connection) -> int:
    """Bytes that the data uses, without free pages.

    On SQLite the used pages of the file, without the log. On PostgreSQL an estimate from a sample of the rows of every
    table: it falls when rows are deleted, although PostgreSQL reuses their space only later.
    """
    if connection.dialect.name == "sqlite":
        pages, free = _pages(connection)
        return (pages - free) * int(connection.exec_driver_sql("PRAGMA page_size").scalar_one())
    return sum(_sampled_bytes(connection, table) for table in metadata.sorted_tables)


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
    width = sum((func.coalesce(func.pg_column_size(column), 0) for column in rows.c), start=literal(ROW_BYTES))
    found = connection.execute(select(func.coalesce(func.sum(width), 0)).select_from(rows)).scalar_one()
    return int(float(found) * 100 / percent)
