"""An index of executions that ended without success by their end, for lists of what failed within some time"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0025"
down_revision: str | None = "0024"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

UNSUCCESSFUL = sa.text("status <> 'Succeeded' AND status <> 'Running'")


def upgrade() -> None:
    op.create_index(
        "ix_executions_unsuccessful_ended",
        "executions",
        ["status", sa.text("stopped_at DESC"), "execution_id"],
        sqlite_where=UNSUCCESSFUL,
        postgresql_where=UNSUCCESSFUL,
    )


def downgrade() -> None:
    op.drop_index("ix_executions_unsuccessful_ended", "executions")
