"""history_parts: large values of events, each stored once"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0007"
down_revision: str | None = "0006"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.create_table(
        "history_parts",
        sa.Column("execution_id", sa.Text(), nullable=False),
        sa.Column("event_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("execution_id", "event_id", "number", name="pk_history_parts"),
    )


def downgrade() -> None:
    """Events lose their parts, which the older form cannot hold."""
    op.drop_table("history_parts")
