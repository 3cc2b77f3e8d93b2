"""Executions know the execution whose step started them, and whether that step has stopped waiting"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0031"
down_revision: str | None = "0030"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

SUB_FLOW = sa.text("parent_id IS NOT NULL")
STOP_DUE = sa.text("stop_due AND stopped_at IS NULL")
INDEXES = (
    ("ix_executions_parent_id", ["parent_id", "parent_wait"], SUB_FLOW),
    ("ix_executions_stop_due", ["execution_id"], STOP_DUE),
)


def upgrade() -> None:
    op.add_column("executions", sa.Column("parent_id", sa.Text()))
    op.add_column("executions", sa.Column("parent_wait", sa.Integer()))
    op.add_column("executions", sa.Column("depth", sa.Integer(), nullable=False, server_default=sa.text("0")))
    op.add_column("executions", sa.Column("stop_due", sa.Boolean(), nullable=False, server_default=sa.false()))
    for name, columns, where in INDEXES:
        op.create_index(name, "executions", columns, sqlite_where=where, postgresql_where=where)


def downgrade() -> None:
    for name, _, _ in INDEXES:
        op.drop_index(name, "executions")
    for column in ("stop_due", "depth", "parent_wait", "parent_id"):
        op.drop_column("executions", column)
