"""schedules: when flows start by themselves"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0017"
down_revision: str | None = "0016"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
WAKES = sa.text("wake_at IS NOT NULL")


def upgrade() -> None:
    op.create_table(
        "schedules",
        sa.Column("schedule_id", sa.Text(), nullable=False),
        sa.Column("flow_id", sa.Text(), nullable=False),
        sa.Column("flow_name", NAME, nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("expression", sa.Text(), nullable=False),
        sa.Column("time_zone", sa.Text(), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("is_enabled", sa.Boolean(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("overlap", sa.Text(), nullable=False),
        sa.Column("catch_up_seconds", sa.Integer(), nullable=False),
        sa.Column("pauses_on_failure", sa.Boolean(), nullable=False),
        sa.Column("actions_left", sa.Integer()),
        sa.Column("anchor_at", sa.BigInteger(), nullable=False),
        sa.Column("next_at", sa.BigInteger()),
        sa.Column("wake_at", sa.BigInteger()),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("modified_at", sa.BigInteger(), nullable=False),
        sa.Column("memory", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("schedule_id", name=op.f("pk_schedules")),
    )
    op.create_index("uq_schedules_flow_name_name", "schedules", ["flow_name", "name"], unique=True)
    op.create_index("ix_schedules_wake_at", "schedules", ["wake_at"], sqlite_where=WAKES, postgresql_where=WAKES)


def downgrade() -> None:
    op.drop_table("schedules")
