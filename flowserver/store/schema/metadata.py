"""Shared by all tables: the metadata and the type of names."""

from sqlalchemy import MetaData, Text
from sqlalchemy.dialects import postgresql

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "pk": "pk_%(table_name)s",
    }
)

Name = Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
"""Text that lists are ordered by. It sorts by code points, like SQLite, in every locale of PostgreSQL."""
