"""In a running execution that is not parked, each live scope has exactly one stored reason to wake up.

A scope that waits for a redrive has the execution's deadline.

The view `violations` lists each scope or execution that violates this, so it should always be empty. The view is the
complete statement, so it also contains rules that CHECK constraints enforce. An overdue timer and a call leased to a
dead node violate nothing: both are stored reasons, and recovery handles them.

The SQL is the same on SQLite and PostgreSQL. It reads the scopes of running executions five times (once with an
aggregate), their finished items three times, and their headers four times, by partial indexes; it never reads ended
executions or histories. That takes about a second for 100,000 live scopes, so the hot path never reads the view.

A migration that rebuilds a table of the view must drop the view first and create it again.
"""

from dataclasses import dataclass
from enum import StrEnum, auto
from typing import Final

from sqlalchemy import Connection, Integer, MetaData, Text, column, event, table

from flowserver.store.schema.all_tables import metadata


class Repair(StrEnum):
    """What `flowserver doctor --repair` does about a violation."""

    PARK = auto()
    """Park the execution with an error that says why; an operator restarts or stops it."""
    DELETE = auto()
    """Delete the rows of scopes and finished items, which belong to no running execution."""
    CLEAR_CALLBACK = auto()
    """Drop the callback, which has no receiver."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: its name in the view, what a violation means, and how it is repaired.

    `from_sql`: FROM and WHERE that rules share. `violation_sql`: this rule's own condition, true for a violation.
    `of_scope`: the rule is about a scope `s`, otherwise about an execution `e`.
    """

    name: str
    meaning: str
    detail_sql: str
    from_sql: str
    violation_sql: str
    of_scope: bool = True
    repair: Repair = Repair.PARK

    @property
    def select(self) -> str:
        """The violations as rows of the view."""
        row = "s.execution_id, s.scope_id" if self.of_scope else "e.execution_id, CAST(NULL AS INTEGER)"
        return f"SELECT {row}, '{self.name}',\n  {self.detail_sql}\n{self.from_sql}{self.violation_sql}"


_RUNS = "\nWHERE e.status = 'Running' AND e.parked_error IS NULL"
_EXECUTIONS = "FROM executions e" + _RUNS
_SCOPES = "FROM executions e JOIN scopes s ON s.execution_id = e.execution_id" + _RUNS

RULES: Final = (
    Rule(
        "no-live-scope",
        "The execution runs, but no step list of it is left that could go on.",
        "'it has no live scope'",
        _EXECUTIONS,
        """ AND NOT EXISTS (
  SELECT 1 FROM scopes s WHERE s.execution_id = e.execution_id)""",
        of_scope=False,
    ),
    Rule(
        "documents-missing",
        "The execution has lost the row that holds its input.",
        "'it has no row in execution_documents'",
        _EXECUTIONS,
        """ AND NOT EXISTS (
  SELECT 1 FROM execution_documents d WHERE d.execution_id = e.execution_id)""",
        of_scope=False,
    ),
    Rule(
        "flow-missing",
        "The flow of the execution, or the definition that it follows, is gone.",
        "'flow ' || e.flow_id || ' or definition ' || e.definition_id || ' is gone'",
        _EXECUTIONS,
        """ AND NOT (
  EXISTS (SELECT 1 FROM flows f WHERE f.flow_id = e.flow_id)
  AND EXISTS (SELECT 1 FROM definitions d WHERE d.definition_id = e.definition_id))""",
        of_scope=False,
    ),
    Rule(
        "wait",
        "The step list lacks what its kind of wait needs, or has what wakes another kind.",
        "'it waits (' || s.wait || ') without what that needs, or with what it must not have'",
        _SCOPES,
        """ AND NOT (
  (s.wait = 'task') = (s.node_id IS NOT NULL)
  AND (s.wait = 'child') = (s.child_execution_id IS NOT NULL)
  AND (s.wait <> 'timer' OR s.wake_at IS NOT NULL)
  AND (s.wake_at IS NULL OR s.wait IN ('timer', 'task', 'token', 'child'))
  AND (s.wait IN ('ready', 'redrive') OR (s.step_input IS NOT NULL AND s.wait_id > 0))
  AND (s.wait <> 'ready' OR s.step_input IS NULL)
  AND (s.wait <> 'redrive' OR (s.wait_id > 0 AND COALESCE(e.waiting_steps, 0) > 0))
  AND s.wait IN ('ready', 'timer', 'task', 'token', 'child', 'join', 'redrive'))""",
    ),
    Rule(
        "counters",
        "The step list uses a number that the execution has not given out, and may give to another.",
        "'it uses a scope, wait or event number that is still to be given out'",
        _SCOPES,
        """ AND (
  s.scope_id >= e.next_scope_id OR s.wait_id >= e.next_wait_id
  OR s.last_event_id >= e.next_event_id OR s.entered_event_id >= e.next_event_id)""",
    ),
    Rule(
        "parent",
        "No step list waits for the end of this one, or there are two outermost ones.",
        "CASE WHEN s.parent_id IS NULL THEN 'it is not the only outermost scope'\n"
        "  ELSE 'its parent ' || CAST(s.parent_id AS TEXT) || ' is missing or waits for no scopes' END",
        _SCOPES,
        """ AND (
  (s.parent_id IS NULL AND EXISTS (
    SELECT 1 FROM scopes o WHERE o.execution_id = s.execution_id AND o.scope_id < s.scope_id))
  OR (s.parent_id IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM scopes p
    WHERE p.execution_id = s.execution_id AND p.scope_id = s.parent_id
    AND p.scope_id < s.scope_id AND p.wait = 'join')))""",
    ),
    Rule(
        "join",
        "The step list waits for lists that it opened, but none runs, or their number differs from the stored one.",
        "CAST(COALESCE(c.live, 0) AS TEXT) || ' scopes run, ' || CAST(COALESCE(f.items, 0) AS TEXT)\n"
        "  || ' are finished; it counts ' || CAST(s.open_items AS TEXT) || ' of ' || CAST(s.next_item AS TEXT)",
        # A choice opens one scope and counts none; branches and iterations are counted, and kept until the join.
        """FROM executions e JOIN scopes s ON s.execution_id = e.execution_id LEFT JOIN (
  SELECT execution_id, parent_id, COUNT(*) AS live
  FROM scopes WHERE parent_id IS NOT NULL GROUP BY execution_id, parent_id
) c ON c.execution_id = s.execution_id AND c.parent_id = s.scope_id LEFT JOIN (
  SELECT execution_id, scope_id, COUNT(*) AS items, MAX(item) AS last_item
  FROM finished_items GROUP BY execution_id, scope_id
) f ON f.execution_id = s.execution_id AND f.scope_id = s.scope_id
WHERE e.status = 'Running' AND e.parked_error IS NULL""",
        """ AND s.wait = 'join' AND (
  COALESCE(c.live, 0) = 0
  OR (s.option IS NULL AND (
    c.live <> s.open_items OR c.live + COALESCE(f.items, 0) <> s.next_item OR f.last_item >= s.next_item))
  OR (s.option IS NOT NULL AND (c.live <> 1 OR f.items > 0 OR s.open_items <> 0 OR s.next_item <> 0)))""",
    ),
    Rule(
        "finished",
        "The result of a finished branch or iteration is stored, but no step list waits for it.",
        "'nothing waits for its finished items'",
        """FROM executions e JOIN (
  SELECT DISTINCT execution_id, scope_id FROM finished_items
) s ON s.execution_id = e.execution_id
WHERE e.status = 'Running' AND e.parked_error IS NULL""",
        """ AND NOT EXISTS (
  SELECT 1 FROM scopes p
  WHERE p.execution_id = s.execution_id AND p.scope_id = s.scope_id AND p.wait = 'join')""",
    ),
    Rule(
        "child",
        "The step waits for a sub-flow's execution that has ended and will not report it.",
        "'execution ' || s.child_execution_id || ' owes it no callback'",
        _SCOPES,
        """ AND s.wait = 'child' AND s.child_execution_id IS NOT NULL
AND NOT EXISTS (
  SELECT 1 FROM executions c WHERE c.execution_id = s.child_execution_id
  AND c.callback_token IS NOT NULL AND (c.status = 'Running' OR c.callback_due))""",
    ),
    Rule(
        "orphan",
        "The step list belongs to an execution that has ended or does not exist.",
        "'execution ' || COALESCE('has ended: ' || e.status, 'does not exist')",
        """FROM (
  SELECT execution_id, scope_id FROM scopes
  UNION ALL SELECT DISTINCT execution_id, scope_id FROM finished_items
) s LEFT JOIN executions e ON e.execution_id = s.execution_id
""",
        "WHERE e.execution_id IS NULL OR e.status <> 'Running'",
        repair=Repair.DELETE,
    ),
    Rule(
        "callback",
        "The execution is marked to report its end to a waiting task, but has not ended, or no task waits.",
        "CASE WHEN e.status = 'Running' THEN 'it still runs' ELSE 'it has no callback token' END",
        "FROM executions e\n",
        "WHERE e.callback_due AND (e.status = 'Running' OR e.callback_token IS NULL)",
        of_scope=False,
        repair=Repair.CLEAR_CALLBACK,
    ),
    Rule(
        "redrive",
        "The number of steps that wait for a redrive differs from the stored one.",
        "'it counts ' || CAST(e.waiting_steps AS TEXT) || ' steps that wait for a redrive'",
        _EXECUTIONS,
        """ AND e.waiting_steps > 0 AND e.waiting_steps <> (
  SELECT COUNT(*) FROM scopes s WHERE s.execution_id = e.execution_id AND s.wait = 'redrive')""",
        of_scope=False,
    ),
)

violations = table(
    "violations",
    column("execution_id", Text),
    column("scope_id", Integer),
    column("rule", Text),
    column("detail", Text),
)
"""The view: `scope_id` is null where the whole execution is meant; `rule` is the name of one of RULES."""

CREATE_VIEW: Final = (
    f"CREATE VIEW violations ({', '.join(each.name for each in violations.c)}) AS\n"
    + "\nUNION ALL\n".join(rule.select for rule in RULES)
)
DROP_VIEW: Final = "DROP VIEW IF EXISTS violations"


@event.listens_for(metadata, "after_create")
def _create_view(_metadata: MetaData, connection: Connection, **_: object) -> None:
    connection.exec_driver_sql(CREATE_VIEW)


@event.listens_for(metadata, "before_drop")
def _drop_view(_metadata: MetaData, connection: Connection, **_: object) -> None:
    connection.exec_driver_sql(DROP_VIEW)
