"""The step at which an execution failed."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0020"
down_revision: str | None = "0019"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("execution_documents", sa.Column("failed_step", sa.Text()))


def downgrade() -> None:
    op.drop_column("execution_documents", "failed_step")
