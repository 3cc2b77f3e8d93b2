"""document_bytes: the size of the scopes' documents of an execution, known without reading them"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0011"
down_revision: str | None = "0010"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


SIZE_OF = {"postgresql": "octet_length({})", "sqlite": "length(CAST({} AS BLOB))"}


def upgrade() -> None:
    column = sa.Column("document_bytes", sa.BigInteger(), nullable=False, server_default=sa.text("0"))
    op.add_column("executions", column)
    size = SIZE_OF[op.get_bind().dialect.name]
    scope = f"{size.format('s.local')} + COALESCE({size.format('s.step_input')}, 0)"
    together = f"(SELECT SUM({scope}) FROM scopes s WHERE s.execution_id = executions.execution_id)"  # noqa: S608
    op.execute(f"UPDATE executions SET document_bytes = COALESCE({together}, 0) WHERE status = 'Running'")  # noqa: S608


def downgrade() -> None:
    op.drop_column("executions", "document_bytes")
