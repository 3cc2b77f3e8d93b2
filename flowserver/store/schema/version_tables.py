"""The tables of published versions of flows, and of the aliases that route starts to them.

Both are deleted with their flow. Instants are integer ms since the epoch, as in `tables`.
"""

from sqlalchemy import BigInteger, CheckConstraint, Column, Integer, Table, Text

from flowserver.store.schema.metadata import Name, metadata, required

flow_versions = Table(
    "flow_versions",
    metadata,
    Column("flow_id", Text, primary_key=True),
    Column("version", Integer, primary_key=True),
    *required(Text, "definition_id", "description"),
    Column("created_at", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)
"""Published versions of flows: definitions under a number. They never change, and a number is never used again
(`flows.last_version`). Retention keeps their definitions.
"""

flow_aliases = Table(
    "flow_aliases",
    metadata,
    Column("flow_id", Text, primary_key=True),
    Column("name", Name, primary_key=True),
    Column("description", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("other_version", Integer),
    Column("other_weight", Integer, nullable=False),
    *required(BigInteger, "created_at", "modified_at"),
    CheckConstraint(
        "other_weight BETWEEN 0 AND 100 AND (other_version IS NOT NULL OR other_weight = 0)", name="other_weight"
    ),
    sqlite_with_rowid=False,
)
"""Aliases of flows. `other_weight` percent of starts run `other_version`, if there is one, and the rest `version`."""
