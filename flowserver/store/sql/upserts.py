"""INSERT … ON CONFLICT, which both databases know but SQLAlchemy has once for each.

What one node reads may be overtaken by another before it writes; one statement that settles a conflict is not.
"""

from typing import Any

from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite


def insert_of(connection: Connection) -> Any:
    """The connection's own `insert`, whose statements have `on_conflict_do_nothing` and `on_conflict_do_update`."""
    return sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
