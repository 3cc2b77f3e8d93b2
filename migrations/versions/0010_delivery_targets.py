"""delivery targets: an index that finds or skips all deliveries to one target"""

from collections.abc import Sequence
from hashlib import sha256

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = "0010"
down_revision: str | None = "0009"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

NAME = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column("deliveries", sa.Column("target_key", NAME, nullable=True))
    _fill()
    with op.batch_alter_table("deliveries") as deliveries:
        deliveries.alter_column("target_key", existing_type=NAME, nullable=False)
    op.create_index("ix_deliveries_target_key", "deliveries", ["target_key", "wake_at"])


def _fill() -> None:
    deliveries = sa.table("deliveries", sa.column("target", sa.Text()), sa.column("target_key", sa.Text()))
    connection = op.get_bind()
    of_target = sa.update(deliveries).where(deliveries.c.target == sa.bindparam("b_target"))
    for (target,) in connection.execute(sa.select(deliveries.c.target).distinct()).all():
        key = sha256(target.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        connection.execute(of_target.values(target_key=key), {"b_target": target})


def downgrade() -> None:
    op.drop_index("ix_deliveries_target_key", "deliveries")
    with op.batch_alter_table("deliveries") as deliveries:
        deliveries.drop_column("target_key")
