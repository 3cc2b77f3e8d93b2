"""finished_items: results of branches and iterations for a join move from `scopes` to a table; the view includes it"""

from collections.abc import Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import sqlalchemy as sa
from alembic import op

revision: str = "0016"
down_revision: str | None = "0015"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

VIEW = """
CREATE VIEW violations (execution_id, scope_id, rule, detail) AS
SELECT e.execution_id, CAST(NULL AS INTEGER), 'no-live-scope',
  'it has no live scope'
FROM executions e
WHERE e.status = 'Running' AND e.parked_error IS NULL AND NOT EXISTS (
  SELECT 1 FROM scopes s WHERE s.execution_id = e.execution_id)
UNION ALL
SELECT e.execution_id, CAST(NULL AS INTEGER), 'documents-missing',
  'it has no row in execution_documents'
FROM executions e
WHERE e.status = 'Running' AND e.parked_error IS NULL AND NOT EXISTS (
  SELECT 1 FROM execution_documents d WHERE d.execution_id = e.execution_id)
UNION ALL
SELECT e.execution_id, CAST(NULL AS INTEGER), 'flow-missing',
  'flow ' || e.flow_id || ' or definition ' || e.definition_id || ' is gone'
FROM executions e
WHERE e.status = 'Running' AND e.parked_error IS NULL AND NOT (
  EXISTS (SELECT 1 FROM flows f WHERE f.flow_id = e.flow_id)
  AND EXISTS (SELECT 1 FROM definitions d WHERE d.definition_id = e.definition_id))
UNION ALL
SELECT s.execution_id, s.scope_id, 'wait',
  'it waits (' || s.wait || ') without what that needs, or with what it must not have'
FROM executions e JOIN scopes s ON s.execution_id = e.execution_id
WHERE e.status = 'Running' AND e.parked_error IS NULL AND NOT (
  (s.wait = 'task') = (s.node_id IS NOT NULL)
  AND (s.wait = 'child') = (s.child_execution_id IS NOT NULL)
  AND (s.wait <> 'timer' OR s.wake_at IS NOT NULL)
  AND (s.wake_at IS NULL OR s.wait IN ('timer', 'task', 'token', 'child'))
  AND (s.wait = 'ready' OR (s.step_input IS NOT NULL AND s.wait_id > 0))
  AND (s.wait <> 'ready' OR s.step_input IS NULL)
  AND s.wait IN ('ready', 'timer', 'task', 'token', 'child', 'join'))
UNION ALL
SELECT s.execution_id, s.scope_id, 'counters',
  'it uses a scope, wait or event number that is still to be given out'
FROM executions e JOIN scopes s ON s.execution_id = e.execution_id
WHERE e.status = 'Running' AND e.parked_error IS NULL AND (
  s.scope_id >= e.next_scope_id OR s.wait_id >= e.next_wait_id
  OR s.last_event_id >= e.next_event_id OR s.entered_event_id >= e.next_event_id)
UNION ALL
SELECT s.execution_id, s.scope_id, 'parent',
  CASE WHEN s.parent_id IS NULL THEN 'it is not the only outermost scope'
  ELSE 'its parent ' || CAST(s.parent_id AS TEXT) || ' is missing or waits for no scopes' END
FROM executions e JOIN scopes s ON s.execution_id = e.execution_id
WHERE e.status = 'Running' AND e.parked_error IS NULL AND (
  (s.parent_id IS NULL AND EXISTS (
    SELECT 1 FROM scopes o WHERE o.execution_id = s.execution_id AND o.scope_id < s.scope_id))
  OR (s.parent_id IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM scopes p
    WHERE p.execution_id = s.execution_id AND p.scope_id = s.parent_id
    AND p.scope_id < s.scope_id AND p.wait = 'join')))
UNION ALL
SELECT s.execution_id, s.scope_id, 'join',
  CAST(COALESCE(c.live, 0) AS TEXT) || ' scopes run, ' || CAST(COALESCE(f.items, 0) AS TEXT)
  || ' are finished; it counts ' || CAST(s.open_items AS TEXT) || ' of ' || CAST(s.next_item AS TEXT)
FROM executions e JOIN scopes s ON s.execution_id = e.execution_id LEFT JOIN (
  SELECT execution_id, parent_id, COUNT(*) AS live
  FROM scopes WHERE parent_id IS NOT NULL GROUP BY execution_id, parent_id
) c ON c.execution_id = s.execution_id AND c.parent_id = s.scope_id LEFT JOIN (
  SELECT execution_id, scope_id, COUNT(*) AS items, MAX(item) AS last_item
  FROM finished_items GROUP BY execution_id, scope_id
) f ON f.execution_id = s.execution_id AND f.scope_id = s.scope_id
WHERE e.status = 'Running' AND e.parked_error IS NULL AND s.wait = 'join' AND (
  COALESCE(c.live, 0) = 0
  OR (s.option IS NULL AND (
    c.live <> s.open_items OR c.live + COALESCE(f.items, 0) <> s.next_item OR f.last_item >= s.next_item))
  OR (s.option IS NOT NULL AND (c.live <> 1 OR f.items > 0 OR s.open_items <> 0 OR s.next_item <> 0)))
UNION ALL
SELECT s.execution_id, s.scope_id, 'finished',
  'nothing waits for its finished items'
FROM executions e JOIN (
  SELECT DISTINCT execution_id, scope_id FROM finished_items
) s ON s.execution_id = e.execution_id
WHERE e.status = 'Running' AND e.parked_error IS NULL AND NOT EXISTS (
  SELECT 1 FROM scopes p
  WHERE p.execution_id = s.execution_id AND p.scope_id = s.scope_id AND p.wait = 'join')
UNION ALL
SELECT s.execution_id, s.scope_id, 'child',
  'execution ' || s.child_execution_id || ' owes it no callback'
FROM executions e JOIN scopes s ON s.execution_id = e.execution_id
WHERE e.status = 'Running' AND e.parked_error IS NULL AND s.wait = 'child' AND s.child_execution_id IS NOT NULL
AND NOT EXISTS (
  SELECT 1 FROM executions c WHERE c.execution_id = s.child_execution_id
  AND c.callback_token IS NOT NULL AND (c.status = 'Running' OR c.callback_due))
UNION ALL
SELECT s.execution_id, s.scope_id, 'orphan',
  'execution ' || COALESCE('has ended: ' || e.status, 'does not exist')
FROM (
  SELECT execution_id, scope_id FROM scopes
  UNION ALL SELECT DISTINCT execution_id, scope_id FROM finished_items
) s LEFT JOIN executions e ON e.execution_id = s.execution_id
WHERE e.execution_id IS NULL OR e.status <> 'Running'
UNION ALL
SELECT e.execution_id, CAST(NULL AS INTEGER), 'callback',
  CASE WHEN e.status = 'Running' THEN 'it still runs' ELSE 'it has no callback token' END
FROM executions e
WHERE e.callback_due AND (e.status = 'Running' OR e.callback_token IS NULL)
"""

FROM_SCOPES = """
INSERT INTO finished_items (execution_id, scope_id, item, local)
SELECT execution_id, parent_id, item, local FROM scopes WHERE wait = 'done' AND parent_id IS NOT NULL
"""
INTO_SCOPES = """
INSERT INTO scopes (
  execution_id, scope_id, parent_id, list_id, item, last_event_id, step_index, entered_event_id, wait, wait_id,
  attempt, retries, next_item, open_items, local)
SELECT f.execution_id,
  e.next_scope_id - 1 + ROW_NUMBER() OVER (PARTITION BY f.execution_id ORDER BY f.scope_id, f.item),
  f.scope_id, 0, f.item, s.last_event_id, 0, s.entered_event_id, 'done', 0, 0, '{}', 0, 0, f.local
FROM finished_items f JOIN executions e ON e.execution_id = f.execution_id
JOIN scopes s ON s.execution_id = f.execution_id AND s.scope_id = f.scope_id
"""
COUNT_SCOPES = """
UPDATE executions SET next_scope_id = (
  SELECT MAX(s.scope_id) + 1 FROM scopes s WHERE s.execution_id = executions.execution_id)
WHERE execution_id IN (SELECT execution_id FROM finished_items)
AND EXISTS (SELECT 1 FROM scopes s WHERE s.execution_id = executions.execution_id)
"""


def upgrade() -> None:
    op.execute("DROP VIEW violations")
    op.create_table(
        "finished_items",
        sa.Column("execution_id", sa.Text(), nullable=False),
        sa.Column("scope_id", sa.Integer(), nullable=False),
        sa.Column("item", sa.Integer(), nullable=False),
        sa.Column("local", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("execution_id", "scope_id", "item", name="pk_finished_items"),
        sqlite_with_rowid=False,
    )
    op.execute(FROM_SCOPES.strip())
    op.execute("DELETE FROM scopes WHERE wait = 'done'")
    op.execute(VIEW.strip())


def downgrade() -> None:
    op.execute("DROP VIEW violations")
    op.execute(INTO_SCOPES.strip())
    op.execute(COUNT_SCOPES.strip())
    op.drop_table("finished_items")
    op.execute(_old_view().strip())


def _old_view() -> str:
    """The view of the migration that created it."""
    spec = spec_from_file_location("violations", Path(__file__).with_name("0003_violations.py"))
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    view: str = module.VIEW
    return view
