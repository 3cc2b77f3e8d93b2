"""Migrates a database to the schema of `tables` with the Alembic scripts that the project and its wheel contain."""

from pathlib import Path
from typing import NamedTuple

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import text

from flowserver.store.schema.foreign_databases import require_room
from flowserver.store.schema.revision import REVISIONS, revision_of
from flowserver.store.sql.database import Database

PACKAGE = Path(__file__).resolve().parent.parent.parent
MIGRATIONS_LOCK = 7_162_530_801
"""The advisory lock (any fixed number) that lets only one node at a time migrate a PostgreSQL database."""


class Migration(NamedTuple):
    """A change of the schema."""

    revision: str
    meaning: str
    """In one line, without a full stop."""


def missing_migrations(database: Database) -> list[Migration]:
    """What `migrate` would apply, oldest first. Raises SchemaTooNew, ForeignDatabase."""
    before = database.run_read(revision_of)
    scripts = ScriptDirectory.from_config(_config())
    names = REVISIONS if before is None else REVISIONS[REVISIONS.index(before) + 1 :]
    documented = ((name, scripts.get_revision(name).doc) for name in names)
    return [Migration(name, meaning.splitlines()[0].removesuffix(".")) for name, meaning in documented]


def migrate(database: Database) -> list[str]:
    """Apply the missing migrations in one transaction and return their revisions, oldest first.

    Raises SchemaTooNew when the database holds a revision that this version does not know, ForeignDatabase when the
    first migration would put its tables beside another program's.
    """
    database.make_folder()
    config = _config()
    with database.write() as connection:
        if not database.is_sqlite:
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": MIGRATIONS_LOCK})
        before = revision_of(connection)
        if before is None:
            require_room(connection, database.sqlite_file)
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
    return list(REVISIONS if before is None else REVISIONS[REVISIONS.index(before) + 1 :])


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(_scripts()).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config


def _scripts() -> Path:
    """`_migrations` beside the package in a wheel, `migrations` beside it in a checkout."""
    carried = PACKAGE / "_migrations"
    return carried if carried.is_dir() else PACKAGE.parent / "migrations"
