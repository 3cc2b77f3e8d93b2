"""Secrets that users have named"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = "0028"
down_revision: str | None = "0027"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    name = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
    op.create_table(
        "named_secrets",
        sa.Column("name", name, nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("modified_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_named_secrets")),
    )


def downgrade() -> None:
    op.drop_table("named_secrets")
