"""Databases of other programs: their tables are found before flowserver writes anything beside them.

On SQLite a file is flowserver's alone. In PostgreSQL other programs may have tables beside ours, but not of our names.
"""

import shutil
import sqlite3
from collections.abc import Collection
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from sqlalchemy import Connection, Inspector, func, inspect, select, table

from flowserver.store.schema.all_tables import metadata
from flowserver.store.sql.sqlite_files import log_of

NAMES_SHOWN = 5
"""How many of the tables that were found a message names."""

VERSION_TABLE = "alembic_version"

FIRST_TABLES = ("flows", "executions", "scopes")
"""Every revision has these."""

ELSEWHERE = "name a database or a schema for flowserver with --database-url (FLOWSERVER_DATABASE_URL)"


class ForeignDatabase(Exception):
    """The database has tables of another program where flowserver would put its own; the message names them."""


def require_own_file(file: Path) -> None:
    """Raises ForeignDatabase for a SQLite file with tables of another program, before a connection changes it.

    A log beside the file is read as well, but in a copy: SQLite would copy it into the file. Raises nothing for what
    cannot be read: `require_room` looks again.
    """
    if not file.is_file():
        return
    with suppress(sqlite3.Error, OSError):
        found = _tables_of(file, "mode=ro&immutable=1")  # without the log
        if not found and log_of(file).exists():
            found = _tables_with_log(file)
        _refuse_file(str(file.resolve()), found)


def _tables_with_log(file: Path) -> set[str]:
    """The file is small, because it has no tables yet: all are in the log."""
    with TemporaryDirectory() as folder:
        copy = Path(folder) / "copy.db"
        shutil.copyfile(file, copy)
        shutil.copyfile(log_of(file), log_of(copy))
        return _tables_of(copy, "mode=rw")


def _tables_of(file: Path, options: str) -> set[str]:
    with closing(sqlite3.connect(f"file:{quote(str(file))}?{options}", uri=True)) as connection:
        found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    return {str(name) for (name,) in found}


def require_room(connection: Connection, file: Path | None) -> None:
    """Before the first migration of a database without a revision: raises ForeignDatabase for another program's tables.

    `file` is the SQLite file; on PostgreSQL it is None, and the tables are those of the schema that is in use.
    """
    inspector = inspect(connection)
    found = set(inspector.get_table_names())
    if file is not None:
        _refuse_file(str(file.resolve()), found)
    elif ours := found & metadata.tables.keys():
        raise ForeignDatabase(
            f"the PostgreSQL schema {inspector.default_schema_name} is another program's: "
            f"it has the tables {_shown(ours)}, but no {VERSION_TABLE} with a revision; "
            f"{ELSEWHERE}"
        )


def require_own_revisions(connection: Connection, inspector: Inspector) -> None:
    """Raises ForeignDatabase if the database's table of revisions is another program's, which uses Alembic as well."""
    if all(map(inspector.has_table, FIRST_TABLES)):
        return
    found = set(inspector.get_table_names())
    rows = connection.execute(select(func.count()).select_from(table(VERSION_TABLE))).scalar_one()
    if found == {VERSION_TABLE} and rows == 0:  # flowserver's tables were here once, and all migrations undone
        return
    place = connection.engine.url.database
    if inspector.dialect.name != "sqlite":
        place = f"the PostgreSQL schema {inspector.default_schema_name}"
    raise ForeignDatabase(
        f"{place} is another program's: it has Alembic's table {VERSION_TABLE}, but no tables of flowserver; "
        f"{ELSEWHERE}"
    )


def _refuse_file(place: str, found: set[str]) -> None:
    named = {name for name in found if not name.startswith("sqlite_")} - {VERSION_TABLE}
    has_revision = VERSION_TABLE in found  # Alembic's own table, which another program may have as well
    if named and not (has_revision and named & metadata.tables.keys()):
        raise ForeignDatabase(
            f"{place} is another program's: it has the tables {_shown(named)}, and none of flowserver's; "
            "name a file for flowserver alone with --database-url (FLOWSERVER_DATABASE_URL)"
        )


def _shown(names: Collection[str]) -> str:
    first = ", ".join(sorted(names)[:NAMES_SHOWN])
    return first if len(names) <= NAMES_SHOWN else f"{first} and {len(names) - NAMES_SHOWN} more"
