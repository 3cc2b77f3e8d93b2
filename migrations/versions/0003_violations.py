"""violations: the view of the invariant; the child execution that a scope waits for; an index of parked executions"""

from collections.abc import Sequence
from uuid import NAMESPACE_OID, uuid5

import sqlalchemy as sa
from alembic import op

revision: str = "0003"
down_revision: str | None = "0002"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

VIEW = """
CREATE VIEW violations (execution_id, scope_id, rule, detail) AS
SELECT e.execution_id, CAST(NULL AS INTEGER), 'no-live-scope',
  'it has no live scope'
FROM executions e
WHERE e.status = 'Running' AND e.parked_error IS NULL AND NOT EXISTS (
  SELECT 1 FROM scopes s WHERE s.execution_id = e.execution_id AND s.wait <> 'done')
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
  AND (s.wait IN ('ready', 'done') OR (s.step_input IS NOT NULL AND s.wait_id > 0))
  AND (s.wait <> 'ready' OR s.step_input IS NULL)
  AND s.wait IN ('ready', 'timer', 'task', 'token', 'child', 'join', 'done'))
UNION ALL
SELECT s.execution_id, s.scope_id, 'counters',
  'it uses a scope, wait or event number that is still to be given out'
FROM executions e JOIN scopes s ON s.execution_id = e.execution_id
WHERE e.status = 'Running' AND e.parked_error IS NULL AND (
  s.scope_id >= e.next_scope_id OR s.wait_id >= e.next_wait_id
  OR s.last_event_id >= e.next_event_id OR s.entered_event_id >= e.next_event_id)
UNION ALL
SELECT s.execution_id, s.scope_id, 'parent',
  CASE WHEN s.parent_id IS NULL THEN 'it is not the only outermost scope, or is done'
  ELSE 'its parent ' || CAST(s.parent_id AS TEXT) || ' is missing or waits for no scopes' END
FROM executions e JOIN scopes s ON s.execution_id = e.execution_id
WHERE e.status = 'Running' AND e.parked_error IS NULL AND (
  (s.parent_id IS NULL AND (s.wait = 'done' OR EXISTS (
    SELECT 1 FROM scopes o WHERE o.execution_id = s.execution_id AND o.scope_id < s.scope_id)))
  OR (s.parent_id IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM scopes p
    WHERE p.execution_id = s.execution_id AND p.scope_id = s.parent_id
    AND p.scope_id < s.scope_id AND p.wait = 'join')))
UNION ALL
SELECT s.execution_id, s.scope_id, 'join',
  CAST(COALESCE(c.live, 0) AS TEXT) || ' scopes run of ' || CAST(COALESCE(c.opened, 0) AS TEXT)
  || ' opened; it counts ' || CAST(s.open_items AS TEXT) || ' of ' || CAST(s.next_item AS TEXT)
FROM executions e JOIN scopes s ON s.execution_id = e.execution_id LEFT JOIN (
  SELECT execution_id, parent_id, COUNT(*) AS opened, SUM(CASE WHEN wait = 'done' THEN 0 ELSE 1 END) AS live
  FROM scopes WHERE parent_id IS NOT NULL GROUP BY execution_id, parent_id
) c ON c.execution_id = s.execution_id AND c.parent_id = s.scope_id
WHERE e.status = 'Running' AND e.parked_error IS NULL AND s.wait = 'join' AND (
  COALESCE(c.live, 0) = 0
  OR (s.option IS NULL AND (c.live <> s.open_items OR c.opened <> s.next_item))
  OR (s.option IS NOT NULL AND (c.opened <> 1 OR s.open_items <> 0 OR s.next_item <> 0)))
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
FROM scopes s LEFT JOIN executions e ON e.execution_id = s.execution_id
WHERE e.execution_id IS NULL OR e.status <> 'Running'
UNION ALL
SELECT e.execution_id, CAST(NULL AS INTEGER), 'callback',
  CASE WHEN e.status = 'Running' THEN 'it still runs' ELSE 'it has no callback token' END
FROM executions e
WHERE e.callback_due AND (e.status = 'Running' OR e.callback_token IS NULL)
"""


def upgrade() -> None:
    op.add_column("scopes", sa.Column("child_execution_id", sa.Text(), nullable=True))
    _name_children()
    parked = sa.text("parked_error IS NOT NULL")
    op.create_index("ix_executions_parked", "executions", ["flow_id"], sqlite_where=parked, postgresql_where=parked)
    op.execute(VIEW.strip())


def _name_children() -> None:
    """Fill in the child's id, which follows from the attempt, for scopes that wait."""
    scopes = sa.table("scopes", *(sa.column(name) for name in ("execution_id", "scope_id", "wait_id", "wait")))
    scopes.append_column(sa.column("child_execution_id", sa.Text()))
    connection = op.get_bind()
    for row in connection.execute(sa.select(scopes).where(scopes.c.wait == "child")).all():
        child = uuid5(NAMESPACE_OID, f"{row.execution_id}#{row.scope_id}#{row.wait_id}")
        same = (scopes.c.execution_id == row.execution_id) & (scopes.c.scope_id == row.scope_id)
        connection.execute(sa.update(scopes).where(same).values(child_execution_id=str(child)))


def downgrade() -> None:
    op.execute("DROP VIEW violations")
    op.drop_index("ix_executions_parked")
    op.drop_column("scopes", "child_execution_id")
