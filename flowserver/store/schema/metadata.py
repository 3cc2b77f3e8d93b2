"""Shared by all tables: the metadata, the type of names, and short forms of columns and partial indexes."""

from typing import Any

from sqlalchemy import Column, Index, MetaData, Text, TextClause
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


def required(kind: Any, *names: str) -> list[Column[Any]]:
    """Columns of one type that are NOT NULL."""
    return [Column(name, kind, nullable=False) for name in names]


def optional(kind: Any, *names: str) -> list[Column[Any]]:
    """Columns of one type that may be NULL."""
    return [Column(name, kind) for name in names]


def partial_index(name: str, *columns: Any, where: TextClause, unique: bool = False) -> Index:
    """An index of the rows that meet a condition, on both databases."""
    return Index(name, *columns, unique=unique, sqlite_where=where, postgresql_where=where)
