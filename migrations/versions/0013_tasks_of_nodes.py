"""tasks of nodes: an index to read the calls leased to a node in pages"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0013"
down_revision: str | None = "0012"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

TASK = sa.text("wait = 'task'")


def upgrade() -> None:
    _replace(["node_id", "execution_id", "scope_id"])


def downgrade() -> None:
    _replace(["node_id"])


def _replace(columns: list[str]) -> None:
    op.drop_index("ix_scopes_node_id", "scopes")
    op.create_index("ix_scopes_node_id", "scopes", columns, sqlite_where=TASK, postgresql_where=TASK)
