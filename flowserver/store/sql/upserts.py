"""INSERT … ON CONFLICT. Both databases have it, but SQLAlchemy has a separate construct for each.

One statement resolves the conflict: between a read and a write another node could insert the row.
"""

from typing import Any

from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite


def insert_of(connection: Connection) -> Any:
    """The connection's own `insert`, whose statements have `on_conflict_do_nothing` and `on_conflict_do_update`."""
    return sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
