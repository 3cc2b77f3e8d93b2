"""Indexes for lists of the executions of all flows."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0021"
down_revision: str | None = "0020"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

UNSUCCESSFUL = sa.text("status IN ('Failed', 'Stopped', 'TimedOut')")


def upgrade() -> None:
    op.create_index("ix_executions_started_at", "executions", [sa.text("started_at DESC"), "execution_id"])
    op.create_index(
        "ix_executions_unsuccessful",
        "executions",
        [sa.text("started_at DESC"), "execution_id"],
        sqlite_where=UNSUCCESSFUL,
        postgresql_where=UNSUCCESSFUL,
    )


def downgrade() -> None:
    op.drop_index("ix_executions_unsuccessful", "executions")
    op.drop_index("ix_executions_started_at", "executions")
