"""What sent a message, a delivery or an invocation, for traces"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0030"
down_revision: str | None = "0029"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

TABLES = ("queue_messages", "deliveries", "invocations")


def upgrade() -> None:
    for table in TABLES:
        op.add_column(table, sa.Column("traceparent", sa.Text(), nullable=True))


def downgrade() -> None:
    for table in TABLES:
        op.drop_column(table, "traceparent")
