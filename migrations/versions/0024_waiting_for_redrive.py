"""waiting_steps: by a setting of their flow, executions wait for a redrive instead of failing; the view knows them"""

from collections.abc import Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import sqlalchemy as sa
from alembic import op

revision: str = "0024"
down_revision: str | None = "0023"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

WAITING = sa.text("waiting_steps > 0 AND stopped_at IS NULL")
INDEXES = (
    ("ix_scopes_wake_at", ["wake_at"], "wake_at IS NOT NULL"),
    ("ix_scopes_node_id", ["node_id", "execution_id", "scope_id"], "wait = 'task'"),
    ("ix_scopes_ready", ["execution_id"], "wait = 'ready'"),
)
OLD_WAITS = "wait IN ('ready', 'timer', 'task', 'token', 'child', 'join', 'done')"
NEW_WAITS = "wait IN ('ready', 'timer', 'task', 'token', 'child', 'join', 'redrive', 'done')"
CHANGED = (
    (
        "(s.wait = 'ready' OR (s.step_input IS NOT NULL AND s.wait_id > 0))",
        "(s.wait IN ('ready', 'redrive') OR (s.step_input IS NOT NULL AND s.wait_id > 0))",
    ),
    (
        "  AND (s.wait <> 'ready' OR s.step_input IS NULL)\n",
        "  AND (s.wait <> 'ready' OR s.step_input IS NULL)\n"
        "  AND (s.wait <> 'redrive' OR (s.wait_id > 0 AND COALESCE(e.waiting_steps, 0) > 0))\n",
    ),
    ("'child', 'join'))\n", "'child', 'join', 'redrive'))\n"),
)
RULE = """
UNION ALL
SELECT e.execution_id, CAST(NULL AS INTEGER), 'redrive',
  'it counts ' || CAST(e.waiting_steps AS TEXT) || ' steps that wait for a redrive'
FROM executions e
WHERE e.status = 'Running' AND e.parked_error IS NULL AND e.waiting_steps > 0 AND e.waiting_steps <> (
  SELECT COUNT(*) FROM scopes s WHERE s.execution_id = e.execution_id AND s.wait = 'redrive')"""


def upgrade() -> None:
    op.execute("DROP VIEW violations")
    op.add_column(
        "flows", sa.Column("on_retries_exhausted", sa.Text(), nullable=False, server_default=sa.text("'fail'"))
    )
    op.add_column("executions", sa.Column("waiting_steps", sa.Integer()))
    for name, first in (
        ("ix_executions_waiting", ["flow_id", sa.text("started_at DESC"), "name"]),
        ("ix_executions_all_waiting", [sa.text("started_at DESC"), "execution_id"]),
    ):
        op.create_index(name, "executions", first, sqlite_where=WAITING, postgresql_where=WAITING)
    _allow(NEW_WAITS)
    op.execute(_view())


def downgrade() -> None:
    """Steps that wait for a redrive go on with the next turn."""
    op.execute("DROP VIEW violations")
    op.execute("UPDATE scopes SET wait = 'ready', step_input = NULL WHERE wait = 'redrive'")
    _allow(OLD_WAITS)
    op.drop_index("ix_executions_all_waiting", "executions")
    op.drop_index("ix_executions_waiting", "executions")
    op.drop_column("executions", "waiting_steps")
    op.drop_column("flows", "on_retries_exhausted")
    op.execute(_old_view())


def _allow(waits: str) -> None:
    """Replace the check of the kinds of wait; SQLite can only make the table anew."""
    if op.get_bind().dialect.name == "postgresql":
        op.drop_constraint(op.f("ck_scopes_wait"), "scopes")
        op.create_check_constraint(op.f("ck_scopes_wait"), "scopes", waits)
        return
    op.create_table(
        "new_scopes",
        sa.Column("execution_id", sa.Text(), nullable=False),
        sa.Column("scope_id", sa.Integer(), nullable=False),
        sa.Column("parent_id", sa.Integer()),
        sa.Column("list_id", sa.Integer(), nullable=False),
        sa.Column("item", sa.Integer(), nullable=False),
        sa.Column("last_event_id", sa.Integer(), nullable=False),
        sa.Column("step_index", sa.Integer(), nullable=False),
        sa.Column("entered_event_id", sa.Integer(), nullable=False),
        sa.Column("wait", sa.Text(), nullable=False),
        sa.Column("wait_id", sa.Integer(), nullable=False),
        sa.Column("wake_at", sa.BigInteger()),
        sa.Column("node_id", sa.Text()),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("retries", sa.Text(), nullable=False),
        sa.Column("option", sa.Integer()),
        sa.Column("next_item", sa.Integer(), nullable=False),
        sa.Column("open_items", sa.Integer(), nullable=False),
        sa.Column("local", sa.Text(), nullable=False),
        sa.Column("step_input", sa.Text()),
        sa.Column("child_execution_id", sa.Text()),
        sa.CheckConstraint(waits, name=op.f("ck_scopes_wait")),
        sa.CheckConstraint("wait <> 'timer' OR wake_at IS NOT NULL", name=op.f("ck_scopes_timer_wakes")),
        sa.CheckConstraint("(wait = 'task') = (node_id IS NOT NULL)", name=op.f("ck_scopes_task_is_leased")),
        sa.PrimaryKeyConstraint("execution_id", "scope_id", name=op.f("pk_scopes")),
        sqlite_with_rowid=False,
    )
    names = (
        "execution_id, scope_id, parent_id, list_id, item, last_event_id, step_index, entered_event_id, wait, wait_id, "
        "wake_at, node_id, attempt, retries, option, next_item, open_items, local, step_input, child_execution_id"
    )
    op.execute(f"INSERT INTO new_scopes ({names}) SELECT {names} FROM scopes")  # noqa: S608 - names of columns
    op.drop_table("scopes")
    op.rename_table("new_scopes", "scopes")
    for name, columns, where in INDEXES:
        op.create_index(name, "scopes", columns, sqlite_where=sa.text(where))


def _view() -> str:
    view = _old_view()
    for old, new in CHANGED:
        assert view.count(old) == 1
        view = view.replace(old, new)
    return view + RULE


def _old_view() -> str:
    """The view of the migration that created it last."""
    spec = spec_from_file_location("finished_items", Path(__file__).with_name("0016_finished_items.py"))
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    view: str = module.VIEW
    return view.strip()
