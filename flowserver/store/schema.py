"""Brings a database to the schema of `tables`, by the Alembic scripts that the project and its wheel carry."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from flowserver.store.database import Database

PACKAGE = Path(__file__).resolve().parent.parent
MIGRATIONS_LOCK = 7_162_530_801
"""Any fixed number: the advisory lock under which only one node at a time migrates a PostgreSQL database."""


class SchemaOutdated(Exception):
    """The database lacks migrations that this flowserver needs."""


class SchemaTooNew(Exception):
    """The database was migrated by a newer flowserver than this one."""


def migrate(database: Database) -> list[str]:
    """Apply the migrations that are missing, in one transaction; returns their revisions, oldest first.

    Raises SchemaTooNew when the database holds a revision that this version does not know.
    """
    database.make_folder()
    config = _config()
    scripts = ScriptDirectory.from_config(config)
    with database.write() as connection:
        if not database.is_sqlite:
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": MIGRATIONS_LOCK})
        before = _revision(connection)
        known = [script.revision for script in scripts.walk_revisions()][::-1]
        if before is not None and before not in known:
            raise SchemaTooNew(f"the database is at revision {before}, which this flowserver does not know")
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
    return known[known.index(before) + 1 :] if before is not None else known


def check_schema(database: Database) -> None:
    """Raises SchemaOutdated or SchemaTooNew unless the database has exactly this version's schema."""
    scripts = ScriptDirectory.from_config(_config())
    with database.read() as connection:
        revision = _revision(connection)
    if revision == scripts.get_current_head():
        return
    if revision is None or revision in {script.revision for script in scripts.walk_revisions()}:
        raise SchemaOutdated("the database is not up to date; run: flowserver migrate")
    raise SchemaTooNew(f"the database is at revision {revision}, which this flowserver does not know")


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(_scripts()).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config


def _revision(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def _scripts() -> Path:
    """`_migrations` beside the package in a wheel, `migrations` beside it in a checkout."""
    carried = PACKAGE / "_migrations"
    return carried if carried.is_dir() else PACKAGE.parent / "migrations"
