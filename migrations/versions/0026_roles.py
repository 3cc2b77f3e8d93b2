"""Roles of access keys, the flows that they are for, when they expire, and when they were last used"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0026"
down_revision: str | None = "0025"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("access_keys", sa.Column("role", sa.Text(), nullable=False, server_default=sa.text("'admin'")))
    op.add_column("access_keys", sa.Column("flows", sa.Text(), nullable=False, server_default=sa.text("''")))
    op.add_column("access_keys", sa.Column("expires_at", sa.BigInteger()))
    op.add_column("access_keys", sa.Column("last_used_at", sa.BigInteger()))


def downgrade() -> None:
    for name in ("last_used_at", "expires_at", "flows", "role"):
        op.drop_column("access_keys", name)
