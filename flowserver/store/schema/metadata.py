"""What all tables have in common: the metadata that they are part of, and the type of names."""

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
"""Text that listings are ordered by: by code points, as SQLite does it, whatever PostgreSQL's own locale is."""
