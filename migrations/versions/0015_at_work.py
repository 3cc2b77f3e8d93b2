"""at_work: the large executions that a node is working on, to find one that kills the process"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0015"
down_revision: str | None = "0014"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.create_table(
        "at_work",
        sa.Column("execution_id", sa.Text(), nullable=False),
        sa.Column("node_id", sa.Text(), nullable=False),
        sa.Column("unclean_ends", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("execution_id", "node_id", name=op.f("pk_at_work")),
    )


def downgrade() -> None:
    op.drop_table("at_work")
