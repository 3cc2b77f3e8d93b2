"""The schema revision that this version needs, and whether a database has it.

Lists only the migrations' names: every start checks the revision, and must not need Alembic for that.
"""

from typing import Final

from sqlalchemy import Connection, column, inspect, select, table

from flowserver.store.schema.foreign_databases import VERSION_TABLE, require_own_revisions
from flowserver.store.sql.database import Database

REVISIONS: Final = (
    "0001",
    "0002",
    "0003",
    "0004",
    "0005",
    "0006",
    "0007",
    "0008",
    "0009",
    "0010",
    "0011",
    "0012",
    "0013",
    "0014",
    "0015",
    "0016",
    "0017",
    "0018",
    "0019",
    "0020",
    "0021",
    "0022",
    "0023",
    "0024",
    "0025",
    "0026",
    "0027",
    "0028",
    "0029",
    "0030",
    "0031",
    "0032",
)
"""The revision of every migration, oldest first."""

_VERSION: Final = table(VERSION_TABLE, column("version_num"))
"""Alembic's own table, with one row."""


class SchemaOutdated(Exception):
    """The database lacks migrations that this flowserver needs."""


class SchemaTooNew(Exception):
    """The database was migrated by a newer flowserver than this one."""


def revision_of(connection: Connection) -> str | None:
    """The database's revision; None if it was never migrated.

    Raises SchemaTooNew if the revision is unknown, and ForeignDatabase if it is that of another program.
    """
    inspector = inspect(connection)
    if not inspector.has_table(_VERSION.name):
        return None
    require_own_revisions(connection, inspector)
    revision: str | None = connection.execute(select(_VERSION.c.version_num)).scalar_one_or_none()
    if revision is not None and revision not in REVISIONS:
        raise SchemaTooNew(
            f"the database is at revision {revision}, which this flowserver does not know: a newer one has migrated it."
            " Use that one, or restore the backup that was made before"
        )
    return revision


def is_up_to_date(database: Database) -> bool:
    """Whether the database has exactly this version's schema; raises SchemaTooNew."""
    return database.run_read(revision_of) == REVISIONS[-1]


def require_current_schema(database: Database) -> None:
    """Raises SchemaOutdated or SchemaTooNew unless the database has exactly this version's schema."""
    if not is_up_to_date(database):
        raise SchemaOutdated("the database is not up to date; run: flowserver migrate")
