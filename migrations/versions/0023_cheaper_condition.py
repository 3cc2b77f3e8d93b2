"""The condition of the index of unsuccessful executions without IN: SQLite builds such a list anew at each write"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0023"
down_revision: str | None = "0022"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

BEFORE = sa.text("status IN ('Failed', 'Stopped', 'TimedOut')")
AFTER = sa.text("status <> 'Succeeded' AND status <> 'Running'")


def upgrade() -> None:
    _replace(AFTER)


def downgrade() -> None:
    _replace(BEFORE)


def _replace(condition: sa.TextClause) -> None:
    op.drop_index("ix_executions_unsuccessful", "executions")
    op.create_index(
        "ix_executions_unsuccessful",
        "executions",
        [sa.text("started_at DESC"), "execution_id"],
        sqlite_where=condition,
        postgresql_where=condition,
    )
