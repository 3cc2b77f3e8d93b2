"""retention: how long a flow's ended executions are kept, and an index of those that may be deleted"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0006"
down_revision: str | None = "0005"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

FORGETTABLE = sa.text("stopped_at IS NOT NULL AND NOT callback_due")


def upgrade() -> None:
    op.add_column("flows", sa.Column("retention_days", sa.Integer(), nullable=True))
    op.create_index(
        "ix_executions_ended",
        "executions",
        ["flow_id", "stopped_at"],
        sqlite_where=FORGETTABLE,
        postgresql_where=FORGETTABLE,
    )


def downgrade() -> None:
    op.drop_index("ix_executions_ended", "executions")
    op.drop_column("flows", "retention_days")
