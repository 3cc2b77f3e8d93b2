"""The table of schedules and its indexes, each with its reason. Instants are integer ms since the epoch."""

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, Table, Text, text

from flowserver.store.schema.metadata import Name, metadata

WAKES = text("wake_at IS NOT NULL")

schedules = Table(
    "schedules",
    metadata,
    Column("schedule_id", Text, primary_key=True),
    Column("flow_id", Text, nullable=False),
    Column("flow_name", Name, nullable=False),
    Column("name", Name, nullable=False),
    Column("description", Text, nullable=False),
    Column("expression", Text, nullable=False),
    Column("time_zone", Text, nullable=False),
    Column("payload", Text, nullable=False),
    Column("is_enabled", Boolean, nullable=False),
    Column("note", Text, nullable=False),
    Column("overlap", Text, nullable=False),
    Column("catch_up_seconds", Integer, nullable=False),
    Column("pauses_on_failure", Boolean, nullable=False),
    Column("actions_left", Integer),
    Column("anchor_at", BigInteger, nullable=False),
    Column("next_at", BigInteger),
    Column("wake_at", BigInteger),
    Column("version", Integer, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("modified_at", BigInteger, nullable=False),
    Column("memory", Text, nullable=False),
    Column("qualifier", Text, nullable=False, server_default=text("''")),
    Index("uq_schedules_flow_name_name", "flow_name", "name", unique=True),
)
"""Schedules of flows that exist: those of a flow are deleted with it, so the flow's name finds them.

`wake_at` is a schedule's one reason to wake up: `next_at`, or when to look again at what it waits for. `version` rises
with every change, and the transaction of a tick changes the row only at the version that was decided on. `memory` is
the JSON text of what waits, what ran last, and the counters (`machine/schedules/state.py`).
"""
Index("ix_schedules_wake_at", schedules.c.wake_at, sqlite_where=WAKES, postgresql_where=WAKES)
