"""queues: queues, topics, deliveries, configurations of asynchronous invocations, hooks and limits of functions"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = "0008"
down_revision: str | None = "0007"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

NAME = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
READY = sa.text("is_ready")
NOT_READY = sa.text("NOT is_ready")
FUNCTION_COLUMNS = (
    ("initialize_url", sa.Text()),
    ("pre_stop_url", sa.Text()),
    ("hook_seconds", sa.Integer()),
    ("concurrency_max", sa.Integer()),
    ("waiting_max", sa.Integer()),
)


def upgrade() -> None:
    for name, type_ in FUNCTION_COLUMNS:
        op.add_column("functions", sa.Column(name, type_, nullable=True))
    _create_async_configs()
    _create_queues()
    _create_topics()
    _create_deliveries()


def _create_async_configs() -> None:
    op.create_table(
        "async_configs",
        sa.Column("service", NAME, nullable=False),
        sa.Column("function", NAME, nullable=False),
        sa.Column("qualifier", NAME, nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("modified_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("service", "function", "qualifier", name="pk_async_configs"),
    )


def _create_queues() -> None:
    op.create_table(
        "queues",
        sa.Column("name", NAME, nullable=False),
        sa.Column("delay_seconds", sa.Integer(), nullable=False),
        sa.Column("message_bytes_max", sa.Integer(), nullable=False),
        sa.Column("retention_seconds", sa.Integer(), nullable=False),
        sa.Column("visibility_seconds", sa.Integer(), nullable=False),
        sa.Column("polling_seconds", sa.Integer(), nullable=False),
        sa.Column("is_logged", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("modified_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_queues"),
    )
    op.create_table(
        "queue_messages",
        sa.Column("queue", NAME, nullable=False),
        sa.Column("message_id", NAME, nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("body_md5", sa.Text(), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("is_ready", sa.Boolean(), nullable=False),
        sa.Column("visible_at", sa.BigInteger(), nullable=False),
        sa.Column("enqueued_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("first_dequeued_at", sa.BigInteger(), nullable=True),
        sa.Column("dequeue_count", sa.Integer(), nullable=False),
        sa.Column("receipt", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("queue", "message_id", name="pk_queue_messages"),
    )
    op.create_index(
        "ix_queue_messages_ready",
        "queue_messages",
        ["queue", "priority", "enqueued_at", "message_id"],
        sqlite_where=READY,
        postgresql_where=READY,
    )
    op.create_index(
        "ix_queue_messages_visible_at",
        "queue_messages",
        ["queue", "visible_at"],
        sqlite_where=NOT_READY,
        postgresql_where=NOT_READY,
    )
    op.create_index("ix_queue_messages_expires_at", "queue_messages", ["expires_at"])


def _create_topics() -> None:
    op.create_table(
        "topics",
        sa.Column("name", NAME, nullable=False),
        sa.Column("message_bytes_max", sa.Integer(), nullable=False),
        sa.Column("is_logged", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("modified_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_topics"),
    )
    op.create_table(
        "subscriptions",
        sa.Column("topic", NAME, nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("endpoint", sa.Text(), nullable=False),
        sa.Column("filter_tag", sa.Text(), nullable=True),
        sa.Column("strategy", sa.Text(), nullable=False),
        sa.Column("content_format", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("modified_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("topic", "name", name="pk_subscriptions"),
    )


def _create_deliveries() -> None:
    op.create_table(
        "deliveries",
        sa.Column("delivery_id", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("strategy", sa.Text(), nullable=False),
        sa.Column("content_format", sa.Text(), nullable=False),
        sa.Column("topic", sa.Text(), nullable=False),
        sa.Column("subscription", sa.Text(), nullable=False),
        sa.Column("invocation_key", sa.Text(), nullable=True),
        sa.Column("message_id", sa.Text(), nullable=False),
        sa.Column("tag", sa.Text(), nullable=True),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("wake_at", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("delivery_id", name="pk_deliveries"),
    )
    op.create_index("ix_deliveries_wake_at", "deliveries", ["wake_at"])
    op.create_index("ix_deliveries_subscription", "deliveries", ["topic", "subscription"])


def downgrade() -> None:
    for table in ("deliveries", "subscriptions", "topics", "queue_messages", "queues", "async_configs"):
        op.drop_table(table)
    for name, _ in reversed(FUNCTION_COLUMNS):
        op.drop_column("functions", name)
