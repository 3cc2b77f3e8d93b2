"""parked invocations: the error for which the server parked an asynchronous invocation"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0014"
down_revision: str | None = "0013"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("invocations", sa.Column("parked_error", sa.Text(), nullable=True))


def downgrade() -> None:
    """Parked invocations continue."""
    op.execute("UPDATE invocations SET node_id = '' WHERE node_id = '-'")
    op.drop_column("invocations", "parked_error")
