"""The audit: who did what, and what was refused"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = "0027"
down_revision: str | None = "0026"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

NAME = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
TEXTS = ("key_id", "label", "api", "remote", "request_id", "operation", "object", "result")


def upgrade() -> None:
    op.create_table(
        "audit_records",
        sa.Column("record_id", NAME, primary_key=True),
        sa.Column("at", sa.BigInteger(), nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in TEXTS),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("until", sa.BigInteger()),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    op.drop_table("audit_records")
