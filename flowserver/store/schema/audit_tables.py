"""The table of the audit. Instants are integer ms since the epoch."""

from sqlalchemy import BigInteger, Column, Integer, Table, Text

from flowserver.store.schema.metadata import Name, metadata, required

audit_records = Table(
    "audit_records",
    metadata,
    Column("record_id", Name, primary_key=True),
    Column("at", BigInteger, nullable=False),
    *required(Text, "key_id", "label", "api", "remote", "request_id", "operation", "object", "result"),
    Column("count", Integer, nullable=False),
    Column("until", BigInteger),
    sqlite_with_rowid=False,
)
"""Who did what, and what was refused. Rows are added, finished once, and deleted by age alone.

`record_id` begins with `at`, so its order is that of time, and the primary key is the only index: lists are read in its
order, and filters apply to what is read. `result` is "" until the operation has ended. `count` and `until` are
those of refusals of one kind: how many, and when the last was.
"""
