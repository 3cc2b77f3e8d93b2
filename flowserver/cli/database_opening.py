"""How commands open the database, and bring it up to date."""

import os
import shlex
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import NamedTuple

import typer
from sqlalchemy.exc import DBAPIError

from flowserver.base.default_database import default_database_url
from flowserver.base.lazy_import import load
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed
from flowserver.cli.options import flag_of, read_settings, variable_of
from flowserver.server import sole_use
from flowserver.store.schema.foreign_databases import require_own_file
from flowserver.store.schema.revision import REVISIONS, is_up_to_date, revision_of
from flowserver.store.sql.database import Database, parse_url
from flowserver.store.sql.errors import reason_of
from flowserver.store.sqlite_backup import BackupDamaged, back_up


@contextmanager
def open_database(url: str) -> Iterator[Database]:
    """The database for the length of a command.

    Raises DatabaseUrlInvalid, ForeignDatabase, and CommandFailed with the database's name if the database refuses.
    """
    database = Database(url)
    try:
        if database.sqlite_file is not None:
            require_own_file(database.sqlite_file)
        yield database
    except DBAPIError as error:
        reason = f"the database {place_of(database)} refuses: {reason_of(error)}"
        raise CommandFailed(reason, ExitCode.UNREACHABLE) from None
    finally:
        database.close()


@contextmanager
def open_ready_database(url_flag: str | None, *, or_new: bool = False) -> Iterator[Database]:
    """The database of the flag or the environment, its tables as this version needs them; raises what both may.

    If it may be `or_new`, a SQLite database that does not exist is made and named on stderr, unless the setting
    `migrate` forbids that.
    """
    settings = read_settings({"database_url": url_flag})
    with open_database(settings.database_url) as database:
        if or_new and settings.migrate is not False and is_new(database):
            bring_up_to_date(database)
            typer.echo(f"There was no database yet: made {place_of(database)}", err=True)
        require_up_to_date(database)
        yield database


class BroughtUp(NamedTuple):
    """What bringing a database up to date has done."""

    applied: list[str]
    """The revisions of the migrations that were missing."""

    backup: Path | None
    """A copy of the SQLite database as it was before; None if there was nothing to keep or to do."""


def bring_up_to_date(database: Database, *, backs_up: bool = True) -> BroughtUp:
    """Apply the migrations that are missing, after a backup of a SQLite database that is not new.

    Raises DatabaseInUse (SQLite), SchemaTooNew, and CommandFailed if the backup fails; then nothing has changed.
    """
    with sole_use(database):
        if is_up_to_date(database):
            return BroughtUp([], None)
        backup = _back_up(database) if backs_up and not is_new(database) else None
        migrate: Callable[[Database], list[str]] = load("flowserver.store.schema.migrating:migrate")
        return BroughtUp(migrate(database), backup)


def _back_up(database: Database) -> Path | None:
    """Copy the SQLite file to `NAME.before-REVISION`, which is not overwritten; None on PostgreSQL."""
    if database.sqlite_file is None:
        return None
    file = database.sqlite_file.resolve()
    wanted = f"{file}.before-{REVISIONS[-1]}"
    target = next(path for path in map(Path, _numbered(wanted)) if not path.exists())
    try:
        back_up(file, target)
    except (BackupDamaged, sqlite3.Error, OSError) as error:
        raise CommandFailed(
            f"the backup before the migration failed, and nothing was changed: {error}; "
            "with your own backup, run: flowserver migrate --no-backup"
        ) from None
    return target


def _numbered(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}-{number}" for number in count(2))


def is_new(database: Database) -> bool:
    """Whether it is a SQLite database without tables, which no server has used yet."""
    if database.sqlite_file is None:
        return False
    return not database.sqlite_file.exists() or database.run_read(revision_of) is None


def require_up_to_date(database: Database) -> None:
    """Raises CommandFailed, which names the command that helps, if there is no SQLite file (looking would create it) or
    migrations are missing; SchemaTooNew.
    """
    if database.sqlite_file is not None and not database.sqlite_file.exists():
        raise CommandFailed(
            f"there is no database {place_of(database)}; create it: {migrate_command(database)}", ExitCode.NOT_FOUND
        )
    if not is_up_to_date(database):
        raise CommandFailed(
            f"the database {place_of(database)} is not up to date; run: {migrate_command(database)}", ExitCode.CONFLICT
        )


def place_of(database: Database) -> str:
    """Where the data is, for people: the file in full, or the URL without its password."""
    if database.sqlite_file is not None:
        return str(database.sqlite_file.resolve())
    return _without_password(database)


def migrate_command(database: Database) -> str:
    """The command that migrates this database, for messages: with a URL other than the default, without a password."""
    default = parse_url(default_database_url())
    elsewhere = any(variable_of(name) in os.environ for name in ("database_url", "settings"))
    if database.url == default and not elsewhere:
        return "flowserver migrate"
    return f"flowserver migrate {flag_of('database_url')} {shlex.quote(_without_password(database))}"


def _without_password(database: Database) -> str:
    """The URL, its password as ***; one among its parameters, which SQLAlchemy would show, is left out."""
    url = database.url.difference_update_query(["password", "sslpassword"])
    return (url if database.is_sqlite else url.set(drivername="postgresql")).render_as_string(hide_password=True)
