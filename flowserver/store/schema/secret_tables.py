"""The table of secrets that users have named."""

from sqlalchemy import BigInteger, Column, Table, Text

from flowserver.store.schema.metadata import Name, metadata, required

named_secrets = Table(
    "named_secrets",
    metadata,
    Column("name", Name, primary_key=True),
    Column("value", Text, nullable=False),
    *required(BigInteger, "created_at", "modified_at"),
)
"""Secrets by name. `value` is always encrypted."""
