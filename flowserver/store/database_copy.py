"""Copies all data of one database into another, empty one, which may be of the other kind.

The copy is one transaction of the target, read from one snapshot of the source: an interruption leaves the target
empty. Rows are not translated: both kinds of databases have the same tables, and a row means the same in both. Left out
are the nodes that had the source open. A task that was leased to one of them is then leased to a node that does not
exist, so the first server on the target makes its call, as after a crash. Left out are also sign-in links: each makes
one key, and would make one in each database.

A row that the target could not hold, or that is damaged, ends the copy; its error says which row. At the end the
target is read, and compared with what was read from the source: a table's digest is the sum of its rows' hashes, so
that the order in which a database returns them does not matter.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Table, delete, func, insert, select, text
from sqlalchemy.exc import DBAPIError

from flowserver.store.schema.all_tables import metadata
from flowserver.store.schema.sign_in_tables import sign_in_links
from flowserver.store.schema.tables import nodes
from flowserver.store.sql.database import Database
from flowserver.store.sql.errors import reason_of
from flowserver.store.sql.unreadable import checks_of, damage_in, legible

ROWS_AT_ONCE: Final = 500
"""Rows that are read and written at a time: a history's row may have 2 MiB."""

DIGEST_BYTES: Final = 16


class CopyRefused(Exception):
    """The databases cannot be copied; the message says why. The target has not changed."""


@dataclass(frozen=True, slots=True)
class TableCopied:
    """A table whose rows are the same in both databases."""

    name: str
    rows: int
    text_bytes: int
    """Of all its texts, in UTF-8."""


@dataclass(slots=True)
class _Digest:
    """What is compared of a table."""

    rows: int = 0
    total: int = 0
    text_bytes: int = 0

    def add(self, row: Sequence[Any]) -> None:
        packed = repr(tuple(row)).encode("utf-8", "surrogateescape")
        self.rows += 1
        self.total += int.from_bytes(hashlib.blake2b(packed, digest_size=DIGEST_BYTES).digest(), "big")
        self.text_bytes += sum(len(value.encode("utf-8", "replace")) for value in row if isinstance(value, str))


def copied_tables() -> list[Table]:
    """Every table with data, in an order in which rows come before those that refer to them."""
    return [table for table in metadata.sorted_tables if table not in (nodes, sign_in_links)]


def copy_database(source: Database, target: Database) -> Iterator[TableCopied]:
    """Copy every row; yields each table once its rows are compared, and commits at the end of the iteration.

    Both must have this version's schema, and no server may use them: on SQLite the caller holds their locks, on
    PostgreSQL this looks for sessions, and keeps servers from registering until the end.

    Raises CopyRefused, and DBAPIError if a database fails.
    """
    with source.read() as reading, target.write() as writing:
        for connection, database in ((reading, source), (writing, target)):
            hold_off_servers(connection, database)
        if found := _first_row(writing):
            raise CopyRefused(f"the target has rows in {found}; it must be empty")
        writing.execute(delete(sign_in_links))  # of the target's own start, for a first key
        written = {table.name: _copy_table(table, reading, writing) for table in copied_tables()}
        for table in copied_tables():
            there = _digest_of(table, writing)
            if there != written[table.name]:
                raise CopyRefused(f"the rows of {table.name} differ after the copy")
            yield TableCopied(table.name, there.rows, there.text_bytes)


def hold_off_servers(connection: Connection, database: Database) -> None:
    """On PostgreSQL: raises CopyRefused if a server is connected; a server that starts waits, and reads see one
    snapshot.
    """
    if database.is_sqlite:
        return
    connection.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"))
    connection.execute(text("LOCK TABLE nodes IN SHARE MODE"))
    others = connection.execute(_SESSIONS, {"own": database.session_name}).scalar_one()
    if others:
        raise CopyRefused(f"{others} sessions of flowserver use the database {database.url.database}; stop them first")


_SESSIONS: Final = text(
    "SELECT count(DISTINCT application_name) FROM pg_stat_activity WHERE datname = current_database()"
    " AND application_name LIKE 'flowserver %' AND application_name <> :own"
)


def _first_row(connection: Connection) -> str | None:
    """The name of a table that has a row; None if there is none."""
    for table in copied_tables():
        if connection.execute(select(func.count()).select_from(select(table).limit(1).subquery())).scalar_one():
            return table.name
    return None


def _pages(table: Table, connection: Connection) -> Iterator[Sequence[Any]]:
    """All rows, some at a time, without holding them all."""
    found = connection.execute(select(table).execution_options(yield_per=ROWS_AT_ONCE))
    yield from found.partitions()


def _copy_table(table: Table, reading: Connection, writing: Connection) -> _Digest:
    digest, checks = _Digest(), checks_of(table.columns)
    for page in _pages(table, reading):
        for row in page:
            if damage := damage_in(row, checks):
                raise CopyRefused(f"{_named(table, row)} is damaged: {damage}")
            digest.add(row)
        with _naming_refused_rows(table, page, writing):
            _write(table, page, writing)
    return digest


def _write(table: Table, page: Sequence[Any], writing: Connection) -> None:
    """PostgreSQL takes rows by COPY, which costs a third of inserts."""
    if writing.dialect.name == "sqlite":
        writing.execute(insert(table), [row._asdict() for row in page])
        return
    driver: Any = writing.connection.driver_connection
    columns = ", ".join(f'"{column.name}"' for column in table.columns)
    with driver.cursor() as cursor, cursor.copy(f'COPY "{table.name}" ({columns}) FROM STDIN') as rows:
        for row in page:
            rows.write_row(tuple(row))


@contextmanager
def _naming_refused_rows(table: Table, page: Sequence[Any], writing: Connection) -> Iterator[None]:
    """Say which rows the target cannot hold: PostgreSQL's texts have no NUL, which SQLite's may have."""
    try:
        yield
    except Exception as error:
        for row in page:
            if any(isinstance(value, str) and "\0" in value for value in row):
                reason = "it contains a NUL character, which PostgreSQL cannot store"
                raise CopyRefused(f"{_named(table, row)} cannot be copied: {reason}") from None
        if isinstance(error, DBAPIError):
            raise
        driver_error = writing.dialect.loaded_dbapi.Error
        if isinstance(error, driver_error):
            raise CopyRefused(f"{table.name}: {reason_of(error)}") from None
        raise


def _digest_of(table: Table, connection: Connection) -> _Digest:
    digest = _Digest()
    for page in _pages(table, connection):
        for row in page:
            digest.add(row)
    return digest


def _named(table: Table, row: Any) -> str:
    key = ", ".join(str(legible(row[list(table.columns).index(column)])) for column in table.primary_key)
    return f"the row {key} of {table.name}"
