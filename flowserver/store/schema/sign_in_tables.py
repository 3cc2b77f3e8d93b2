"""The table of sign-in links. Instants are integer ms since the epoch."""

from sqlalchemy import BigInteger, Boolean, Column, Table, Text

from flowserver.store.schema.metadata import metadata, required

sign_in_links = Table(
    "sign_in_links",
    metadata,
    Column("digest", Text, primary_key=True),
    *required(Text, "label", "role", "flows"),
    Column("key_expires_at", BigInteger),
    Column("is_first", Boolean, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
)
"""Links that make one access key each: how that key will be, and until when the link may be used.

`digest` is SHA-256 of the link's code. The key of a link with `is_first` must be the first one of the database.
"""
