"""kept_scopes and kept_items: what executions that ended without success keep for a redrive; and who was redriven"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0018"
down_revision: str | None = "0017"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("executions", sa.Column("redrive_count", sa.Integer(), nullable=False, server_default=sa.text("0")))
    op.add_column("executions", sa.Column("redriven_at", sa.BigInteger()))
    op.add_column("execution_documents", sa.Column("redrive_token", sa.Text()))
    op.create_table(
        "kept_scopes",
        sa.Column("execution_id", sa.Text(), nullable=False),
        sa.Column("scope_id", sa.Integer(), nullable=False),
        sa.Column("parent_id", sa.Integer()),
        sa.Column("list_id", sa.Integer(), nullable=False),
        sa.Column("item", sa.Integer(), nullable=False),
        sa.Column("step_index", sa.Integer(), nullable=False),
        sa.Column("entered_event_id", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("option", sa.Integer()),
        sa.Column("next_item", sa.Integer(), nullable=False),
        sa.Column("open_items", sa.Integer(), nullable=False),
        sa.Column("local", sa.Text(), nullable=False),
        sa.Column("step_input", sa.Text()),
        sa.Column("has_failed", sa.Integer(), nullable=False, server_default=sa.text("0")),
        sa.PrimaryKeyConstraint("execution_id", "scope_id", name="pk_kept_scopes"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "kept_items",
        sa.Column("execution_id", sa.Text(), nullable=False),
        sa.Column("scope_id", sa.Integer(), nullable=False),
        sa.Column("item", sa.Integer(), nullable=False),
        sa.Column("local", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("execution_id", "scope_id", "item", name="pk_kept_items"),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    op.drop_table("kept_items")
    op.drop_table("kept_scopes")
    op.drop_column("execution_documents", "redrive_token")
    op.drop_column("executions", "redriven_at")
    op.drop_column("executions", "redrive_count")
