"""first tables"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = "0001"
down_revision: str | None = None
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

Name = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "access_keys",
        sa.Column("access_key_id", sa.Text(), nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("token_digest", sa.Text(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("disabled_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("access_key_id", name=op.f("pk_access_keys")),
        sa.UniqueConstraint("token_digest", name=op.f("uq_access_keys_token_digest")),
    )
    op.create_table(
        "definitions",
        sa.Column("definition_id", sa.Text(), nullable=False),
        sa.Column("flow_id", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("definition_id", name=op.f("pk_definitions")),
    )
    with op.batch_alter_table("definitions", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_definitions_flow_id"), ["flow_id"], unique=False)

    op.create_table(
        "events",
        sa.Column("execution_id", sa.Text(), nullable=False),
        sa.Column("event_id", sa.Integer(), nullable=False),
        sa.Column("schedule_event_id", sa.Integer(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("step_name", sa.Text(), nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("execution_id", "event_id", name=op.f("pk_events")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "execution_documents",
        sa.Column("execution_id", sa.Text(), nullable=False),
        sa.Column("input", sa.Text(), nullable=False),
        sa.Column("output", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("cause", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("execution_id", name=op.f("pk_execution_documents")),
    )
    op.create_table(
        "executions",
        sa.Column("execution_id", sa.Text(), nullable=False),
        sa.Column("flow_id", sa.Text(), nullable=False),
        sa.Column("flow_name", sa.Text(), nullable=False),
        sa.Column("name", Name, nullable=False),
        sa.Column("definition_id", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("next_event_id", sa.Integer(), nullable=False),
        sa.Column("next_scope_id", sa.Integer(), nullable=False),
        sa.Column("next_wait_id", sa.Integer(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("stopped_at", sa.BigInteger(), nullable=True),
        sa.Column("deadline_at", sa.BigInteger(), nullable=False),
        sa.Column("callback_token", sa.Text(), nullable=True),
        sa.Column("callback_due", sa.Boolean(), nullable=False),
        sa.Column("parked_error", sa.Text(), nullable=True),
        sa.CheckConstraint("(status = 'Running') = (stopped_at IS NULL)", name=op.f("ck_executions_stopped_at")),
        sa.CheckConstraint(
            "status IN ('Running', 'Succeeded', 'Failed', 'Stopped', 'TimedOut')", name=op.f("ck_executions_status")
        ),
        sa.PrimaryKeyConstraint("execution_id", name=op.f("pk_executions")),
    )
    with op.batch_alter_table("executions", schema=None) as batch_op:
        batch_op.create_index(
            "ix_executions_callback_due",
            ["callback_due"],
            unique=False,
            sqlite_where=sa.text("callback_due"),
            postgresql_where=sa.text("callback_due"),
        )
        batch_op.create_index(
            "ix_executions_deadline_at",
            ["deadline_at"],
            unique=False,
            sqlite_where=sa.text("status = 'Running'"),
            postgresql_where=sa.text("status = 'Running'"),
        )
        batch_op.create_index("ix_executions_flow_id_started_at", ["flow_id", "started_at", "name"], unique=False)
        batch_op.create_index(
            "ix_executions_running_flow_id",
            ["flow_id"],
            unique=False,
            sqlite_where=sa.text("status = 'Running'"),
            postgresql_where=sa.text("status = 'Running'"),
        )
        batch_op.create_index("uq_executions_flow_id_name", ["flow_id", "name"], unique=True)

    op.create_table(
        "flows",
        sa.Column("flow_id", sa.Text(), nullable=False),
        sa.Column("name", Name, nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("role_arn", sa.Text(), nullable=False),
        sa.Column("execution_mode", sa.Text(), nullable=False),
        sa.Column("external_storage_location", sa.Text(), nullable=False),
        sa.Column("environment", sa.Text(), nullable=False),
        sa.Column("definition_id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("modified_at", sa.BigInteger(), nullable=False),
        sa.Column("deleted_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("flow_id", name=op.f("pk_flows")),
    )
    with op.batch_alter_table("flows", schema=None) as batch_op:
        batch_op.create_index(
            "ix_flows_deleted",
            ["flow_id"],
            unique=False,
            sqlite_where=sa.text("deleted_at IS NOT NULL"),
            postgresql_where=sa.text("deleted_at IS NOT NULL"),
        )
        batch_op.create_index(
            "uq_flows_live_name",
            ["name"],
            unique=True,
            sqlite_where=sa.text("deleted_at IS NULL"),
            postgresql_where=sa.text("deleted_at IS NULL"),
        )

    op.create_table(
        "functions",
        sa.Column("service", Name, nullable=False),
        sa.Column("function", Name, nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("headers", sa.Text(), nullable=False),
        sa.Column("timeout_seconds", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("modified_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("service", "function", name=op.f("pk_functions")),
    )
    op.create_table(
        "invocations",
        sa.Column("idempotency_key", sa.Text(), nullable=False),
        sa.Column("node_id", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("service", sa.Text(), nullable=False),
        sa.Column("qualifier", sa.Text(), nullable=False),
        sa.Column("function", sa.Text(), nullable=False),
        sa.Column("invocation_id", sa.Text(), nullable=True),
        sa.Column("flow_name", sa.Text(), nullable=False),
        sa.Column("execution_name", sa.Text(), nullable=False),
        sa.Column("step_name", sa.Text(), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("idempotency_key", name=op.f("pk_invocations")),
    )
    with op.batch_alter_table("invocations", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_invocations_node_id"), ["node_id"], unique=False)

    op.create_table(
        "nodes",
        sa.Column("node_id", sa.Text(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("heartbeat_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("node_id", name=op.f("pk_nodes")),
    )
    op.create_table(
        "nonces",
        sa.Column("access_key_id", sa.Text(), nullable=False),
        sa.Column("nonce", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("access_key_id", "nonce", name=op.f("pk_nonces")),
        sqlite_with_rowid=False,
    )
    with op.batch_alter_table("nonces", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_nonces_expires_at"), ["expires_at"], unique=False)

    op.create_table(
        "scopes",
        sa.Column("execution_id", sa.Text(), nullable=False),
        sa.Column("scope_id", sa.Integer(), nullable=False),
        sa.Column("parent_id", sa.Integer(), nullable=True),
        sa.Column("list_id", sa.Integer(), nullable=False),
        sa.Column("item", sa.Integer(), nullable=False),
        sa.Column("last_event_id", sa.Integer(), nullable=False),
        sa.Column("step_index", sa.Integer(), nullable=False),
        sa.Column("entered_event_id", sa.Integer(), nullable=False),
        sa.Column("wait", sa.Text(), nullable=False),
        sa.Column("wait_id", sa.Integer(), nullable=False),
        sa.Column("wake_at", sa.BigInteger(), nullable=True),
        sa.Column("node_id", sa.Text(), nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("retries", sa.Text(), nullable=False),
        sa.Column("option", sa.Integer(), nullable=True),
        sa.Column("next_item", sa.Integer(), nullable=False),
        sa.Column("open_items", sa.Integer(), nullable=False),
        sa.Column("local", sa.Text(), nullable=False),
        sa.Column("step_input", sa.Text(), nullable=True),
        sa.CheckConstraint("(wait = 'task') = (node_id IS NOT NULL)", name=op.f("ck_scopes_task_is_leased")),
        sa.CheckConstraint("wait <> 'timer' OR wake_at IS NOT NULL", name=op.f("ck_scopes_timer_wakes")),
        sa.CheckConstraint(
            "wait IN ('ready', 'timer', 'task', 'token', 'child', 'join', 'done')", name=op.f("ck_scopes_wait")
        ),
        sa.PrimaryKeyConstraint("execution_id", "scope_id", name=op.f("pk_scopes")),
        sqlite_with_rowid=False,
    )
    with op.batch_alter_table("scopes", schema=None) as batch_op:
        batch_op.create_index(
            "ix_scopes_node_id",
            ["node_id"],
            unique=False,
            sqlite_where=sa.text("wait = 'task'"),
            postgresql_where=sa.text("wait = 'task'"),
        )
        batch_op.create_index(
            "ix_scopes_ready",
            ["execution_id"],
            unique=False,
            sqlite_where=sa.text("wait = 'ready'"),
            postgresql_where=sa.text("wait = 'ready'"),
        )
        batch_op.create_index(
            "ix_scopes_wake_at",
            ["wake_at"],
            unique=False,
            sqlite_where=sa.text("wake_at IS NOT NULL"),
            postgresql_where=sa.text("wake_at IS NOT NULL"),
        )

    op.create_table(
        "secrets",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_secrets")),
    )


def downgrade() -> None:
    op.drop_table("secrets")
    with op.batch_alter_table("scopes", schema=None) as batch_op:
        batch_op.drop_index(
            "ix_scopes_wake_at",
            sqlite_where=sa.text("wake_at IS NOT NULL"),
            postgresql_where=sa.text("wake_at IS NOT NULL"),
        )
        batch_op.drop_index(
            "ix_scopes_ready", sqlite_where=sa.text("wait = 'ready'"), postgresql_where=sa.text("wait = 'ready'")
        )
        batch_op.drop_index(
            "ix_scopes_node_id", sqlite_where=sa.text("wait = 'task'"), postgresql_where=sa.text("wait = 'task'")
        )

    op.drop_table("scopes")
    with op.batch_alter_table("nonces", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_nonces_expires_at"))

    op.drop_table("nonces")
    op.drop_table("nodes")
    with op.batch_alter_table("invocations", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_invocations_node_id"))

    op.drop_table("invocations")
    op.drop_table("functions")
    with op.batch_alter_table("flows", schema=None) as batch_op:
        batch_op.drop_index(
            "ix_flows_deleted",
            sqlite_where=sa.text("deleted_at IS NOT NULL"),
            postgresql_where=sa.text("deleted_at IS NOT NULL"),
        )
        batch_op.drop_index(
            "uq_flows_live_name",
            sqlite_where=sa.text("deleted_at IS NULL"),
            postgresql_where=sa.text("deleted_at IS NULL"),
        )

    op.drop_table("flows")
    with op.batch_alter_table("executions", schema=None) as batch_op:
        batch_op.drop_index("uq_executions_flow_id_name")
        batch_op.drop_index(
            "ix_executions_running_flow_id",
            sqlite_where=sa.text("status = 'Running'"),
            postgresql_where=sa.text("status = 'Running'"),
        )
        batch_op.drop_index("ix_executions_flow_id_started_at")
        batch_op.drop_index(
            "ix_executions_deadline_at",
            sqlite_where=sa.text("status = 'Running'"),
            postgresql_where=sa.text("status = 'Running'"),
        )
        batch_op.drop_index(
            "ix_executions_callback_due", sqlite_where=sa.text("callback_due"), postgresql_where=sa.text("callback_due")
        )

    op.drop_table("executions")
    op.drop_table("execution_documents")
    op.drop_table("events")
    with op.batch_alter_table("definitions", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_definitions_flow_id"))

    op.drop_table("definitions")
    op.drop_table("access_keys")
