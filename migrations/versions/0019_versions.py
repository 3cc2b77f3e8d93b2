"""versions and aliases: published definitions of flows, and names that route starts to them"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = "0019"
down_revision: str | None = "0018"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

RUNNING_VERSIONS = sa.text("flow_version IS NOT NULL AND status = 'Running'")


def upgrade() -> None:
    op.create_table(
        "flow_versions",
        sa.Column("flow_id", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("definition_id", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("flow_id", "version", name="pk_flow_versions"),
        sqlite_with_rowid=False,
    )
    name = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
    op.create_table(
        "flow_aliases",
        sa.Column("flow_id", sa.Text(), nullable=False),
        sa.Column("name", name, nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("other_version", sa.Integer(), nullable=True),
        sa.Column("other_weight", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("modified_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "other_weight BETWEEN 0 AND 100 AND (other_version IS NOT NULL OR other_weight = 0)",
            name="other_weight",
        ),
        sa.PrimaryKeyConstraint("flow_id", "name", name="pk_flow_aliases"),
        sqlite_with_rowid=False,
    )
    op.add_column("flows", sa.Column("last_version", sa.Integer(), nullable=False, server_default=sa.text("0")))
    op.add_column("executions", sa.Column("flow_version", sa.Integer(), nullable=True))
    op.add_column("executions", sa.Column("flow_alias", sa.Text(), nullable=True))
    op.create_index(
        "ix_executions_flow_version",
        "executions",
        ["flow_id", "flow_version"],
        sqlite_where=RUNNING_VERSIONS,
        postgresql_where=RUNNING_VERSIONS,
    )


def downgrade() -> None:
    """Executions keep the definitions that they were started with."""
    op.drop_index("ix_executions_flow_version", table_name="executions")
    op.drop_column("executions", "flow_alias")
    op.drop_column("executions", "flow_version")
    op.drop_column("flows", "last_version")
    op.drop_table("flow_aliases")
    op.drop_table("flow_versions")
