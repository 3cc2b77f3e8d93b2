"""How commands open the database, and bring it up to date."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from flowserver.base.loading import load
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed
from flowserver.cli.options import read_settings
from flowserver.server import sole_use
from flowserver.store.database import Database
from flowserver.store.schema import check_schema, is_up_to_date, revision_of


@contextmanager
def open_database(url: str) -> Iterator[Database]:
    """The database for the length of a command; raises DatabaseUrlInvalid."""
    database = Database(url)
    try:
        yield database
    finally:
        database.close()


@contextmanager
def open_ready_database(url_flag: str | None) -> Iterator[Database]:
    """The database of the flag or the environment, its tables as this version needs them; raises what both may."""
    with open_database(read_settings({"database_url": url_flag}).database_url) as database:
        require_up_to_date(database)
        yield database


def bring_up_to_date(database: Database) -> list[str]:
    """Apply the migrations that are missing; returns them. Raises DatabaseInUse (SQLite), SchemaTooNew."""
    with sole_use(database):
        if is_up_to_date(database):
            return []
        migrate: Callable[[Database], list[str]] = load("flowserver.store.migrating:migrate")
        return migrate(database)


def is_new(database: Database) -> bool:
    """Whether it is a SQLite database without tables: one that nothing has been kept in."""
    if database.sqlite_file is None:
        return False
    return not database.sqlite_file.exists() or database.run_read(revision_of) is None


def require_up_to_date(database: Database) -> None:
    """Raises CommandFailed when there is no SQLite file, which looking would create; SchemaOutdated, SchemaTooNew."""
    if database.sqlite_file is not None and not database.sqlite_file.exists():
        raise CommandFailed(
            f"there is no database {place_of(database)}; create it: flowserver migrate", ExitCode.NOT_FOUND
        )
    check_schema(database)


def place_of(database: Database) -> str:
    """Where the data is, for people: the file in full, or the URL without its password."""
    if database.sqlite_file is not None:
        return str(database.sqlite_file.resolve())
    return database.url.set(drivername="postgresql").render_as_string()
