"""Scopes remember the wait whose attempt started their sub-flow's execution, so that a redrive continues that"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0032"
down_revision: str | None = "0031"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

TABLES = ("scopes", "kept_scopes")


def upgrade() -> None:
    for table in TABLES:
        op.add_column(table, sa.Column("child_wait", sa.Integer()))


def downgrade() -> None:
    for table in TABLES:
        op.drop_column(table, "child_wait")
