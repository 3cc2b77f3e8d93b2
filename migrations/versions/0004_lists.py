"""lists by status and start; parked executions in the same order"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0004"
down_revision: str | None = "0003"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

RUNNING = sa.text("status = 'Running'")
PARKED = sa.text("parked_error IS NOT NULL")
STILL_PARKED = sa.text("parked_error IS NOT NULL AND stopped_at IS NULL")
NEWEST = sa.text("started_at DESC")


def upgrade() -> None:
    op.drop_index("ix_executions_flow_id_started_at", "executions")
    op.drop_index("ix_executions_running_flow_id", "executions")
    op.drop_index("ix_executions_parked", "executions")
    op.create_index("ix_executions_flow_id_status", "executions", ["flow_id", "status", NEWEST, "name"])
    op.create_index(
        "ix_executions_parked",
        "executions",
        ["flow_id", NEWEST, "name"],
        sqlite_where=STILL_PARKED,
        postgresql_where=STILL_PARKED,
    )


def downgrade() -> None:
    op.drop_index("ix_executions_parked", "executions")
    op.drop_index("ix_executions_flow_id_status", "executions")
    op.create_index("ix_executions_flow_id_started_at", "executions", ["flow_id", "started_at", "name"])
    op.create_index(
        "ix_executions_running_flow_id", "executions", ["flow_id"], sqlite_where=RUNNING, postgresql_where=RUNNING
    )
    op.create_index("ix_executions_parked", "executions", ["flow_id"], sqlite_where=PARKED, postgresql_where=PARKED)
