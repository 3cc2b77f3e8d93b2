"""invocations: asynchronous calls become tasks with states"""

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import NAMESPACE_OID, uuid5

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = "0009"
down_revision: str | None = "0008"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

NAME = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
ROWS_AT_ONCE = 500
INDEXES = (
    ("listed", ["service", "function", sa.text("created_at DESC"), "invocation_key"], None),
    ("status", ["service", "function", "status", sa.text("created_at DESC"), "invocation_key"], None),
    ("node_id", ["node_id", "invocation_key"], "node_id IS NOT NULL"),
    ("wake_at", ["wake_at"], "wake_at IS NOT NULL"),
    ("execution_id", ["execution_id"], "ended_at IS NULL"),
    ("ended_at", ["ended_at"], "ended_at IS NOT NULL"),
    ("unwanted", ["is_unwanted"], "is_unwanted"),
    ("callback_due", ["callback_due"], "callback_due"),
)
SAME = ("node_id", "attempt", "service", "qualifier", "function", "flow_name", "execution_name", "step_name")
"""Columns that both forms have."""


def upgrade() -> None:
    old = _set_aside()
    new = _create_new()
    _carry_over(old, new, _as_new)
    op.drop_table(old.name)


def _create_new() -> sa.Table:
    table = op.create_table(
        "invocations",
        sa.Column("invocation_key", sa.Text(), nullable=False),
        sa.Column("service", NAME, nullable=False),
        sa.Column("qualifier", sa.Text(), nullable=False),
        sa.Column("function", NAME, nullable=False),
        sa.Column("invocation_id", NAME, nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("node_id", sa.Text(), nullable=True),
        sa.Column("wake_at", sa.BigInteger(), nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("retries", sa.Integer(), nullable=False),
        sa.Column("is_unwanted", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("settings", sa.Text(), nullable=False),
        sa.Column("events", sa.Text(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.Column("result", sa.LargeBinary(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("cause", sa.Text(), nullable=True),
        sa.Column("duration_ms", sa.Integer(), nullable=True),
        sa.Column("destination_status", sa.Text(), nullable=True),
        sa.Column("execution_id", sa.Text(), nullable=True),
        sa.Column("flow_name", sa.Text(), nullable=False),
        sa.Column("execution_name", sa.Text(), nullable=False),
        sa.Column("step_name", sa.Text(), nullable=False),
        sa.Column("callback_token", sa.Text(), nullable=True),
        sa.Column("callback_due", sa.Boolean(), nullable=False),
        *_checks(),
        sa.PrimaryKeyConstraint("invocation_key", name="pk_invocations"),
    )
    op.create_index(
        "uq_invocations_invocation_id", "invocations", ["service", "function", "invocation_id"], unique=True
    )
    for name, columns, where in INDEXES:
        condition = None if where is None else sa.text(where)
        op.create_index(
            f"ix_invocations_{name}", "invocations", columns, sqlite_where=condition, postgresql_where=condition
        )
    return table


def _checks() -> Iterator[sa.CheckConstraint]:
    ended = "'Succeeded', 'Failed', 'Stopped', 'Expired', 'Invalid'"
    conditions = {
        "status": f"status IN ('Enqueued', 'Dequeued', 'Running', 'Retrying', 'Stopping', {ended})",
        "ended_at": f"(status IN ({ended})) = (ended_at IS NOT NULL)",
        "has_a_reason": "(ended_at IS NULL) = (node_id IS NOT NULL OR wake_at IS NOT NULL)",
        "has_one_reason": "node_id IS NULL OR wake_at IS NULL",
        "retrying_wakes": "wake_at IS NULL OR status = 'Retrying'",
    }
    for name, condition in conditions.items():
        yield sa.CheckConstraint(condition, name=op.f(f"ck_invocations_{name}"))


def _set_aside() -> sa.Table:
    """Copy the rows and drop the table, so that its names are free for the new one."""
    op.execute("CREATE TABLE old_invocations AS SELECT * FROM invocations")
    op.drop_table("invocations")
    return sa.Table("old_invocations", sa.MetaData(), autoload_with=op.get_bind())


def _carry_over(old: sa.Table, new: sa.Table, change: Any) -> None:
    connection = op.get_bind()
    rows = connection.execute(sa.select(old)).mappings()
    seen: set[tuple[str, ...]] = set()
    while some := rows.fetchmany(ROWS_AT_ONCE):
        carried = [row for each in some if (row := change(each, seen)) is not None]
        if carried:
            connection.execute(sa.insert(new), carried)


def _as_new(row: Any, seen: set[tuple[str, ...]]) -> dict[str, Any]:
    """An old call becomes a waiting invocation; of two with one id of a function, the later one gets another id."""
    key = row["idempotency_key"]
    request_id = str(uuid5(NAMESPACE_OID, key))
    names = (row["service"], row["function"], row["invocation_id"] or request_id)
    invocation_id = request_id if names in seen else names[2]
    seen.add(names)
    return {name: row[name] for name in SAME} | {
        "invocation_key": key,
        "invocation_id": invocation_id,
        "request_id": request_id,
        "status": "Enqueued",
        "retries": 0,
        "is_unwanted": False,
        "created_at": row["created_at"],
        "settings": "{}",
        "events": f'[["Enqueued",{row["created_at"]},""]]',
        "payload": row["event"].encode(),
        "callback_due": False,
    }


def downgrade() -> None:
    """Ended invocations are deleted; the others are called once more, and their results are not reported."""
    new = _set_aside()
    old = op.create_table(
        "invocations",
        sa.Column("idempotency_key", sa.Text(), nullable=False),
        sa.Column("node_id", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("service", sa.Text(), nullable=False),
        sa.Column("qualifier", sa.Text(), nullable=False),
        sa.Column("function", sa.Text(), nullable=False),
        sa.Column("invocation_id", sa.Text(), nullable=True),
        sa.Column("flow_name", sa.Text(), nullable=False),
        sa.Column("execution_name", sa.Text(), nullable=False),
        sa.Column("step_name", sa.Text(), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("idempotency_key", name="pk_invocations"),
    )
    op.create_index("ix_invocations_node_id", "invocations", ["node_id"])
    _carry_over(new, old, _as_old)
    op.drop_table(new.name)


def _as_old(row: Any, _seen: set[tuple[str, ...]]) -> dict[str, Any] | None:
    if row["ended_at"] is not None:
        return None
    return {name: row[name] for name in SAME} | {
        "idempotency_key": row["invocation_key"],
        "node_id": row["node_id"] or "",
        "attempt": max(row["attempt"], 1),
        "invocation_id": row["invocation_id"],
        "event": bytes(row["payload"]).decode("utf-8", "replace").replace("\0", "\ufffd"),
        "created_at": row["created_at"],
    }
