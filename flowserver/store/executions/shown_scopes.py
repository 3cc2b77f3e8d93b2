"""The scopes of one execution for `currentSteps`: live ones, or those that it keeps after its end.

They are read without their documents.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, select

from flowserver.machine.state import Scope, WaitKind
from flowserver.store.schema.tables import kept_scopes, scopes
from flowserver.store.sql.prepared import fetch_rows
from flowserver.store.sql.unreadable import checks_of, damage_in


def read_live(connection: Connection, execution_id: str) -> list[Scope]:
    """The scopes of a running execution, at most `live_scopes_max`; damaged ones are left out."""
    rows = fetch_rows(connection, _LIVE, {"b_id": execution_id})
    return [_live_scope(row) for row in rows if damage_in(row, _LIVE_CHECKS) is None and row.wait in _KINDS]


def read_kept(connection: Connection, execution_id: str) -> list[Scope]:
    """The scopes that an ended execution keeps for a redrive; damaged ones are left out."""
    rows = fetch_rows(connection, _KEPT, {"b_id": execution_id})
    return [_kept_scope(row) for row in rows if damage_in(row, _KEPT_CHECKS) is None]


_KINDS = frozenset(map(str, WaitKind))
_PLACE = (
    "scope_id",
    "parent_id",
    "list_id",
    "item",
    "step_index",
    "entered_event_id",
    "attempt",
    "option",
    "child_wait",
)


def _columns(table: Any, names: Sequence[str]) -> list[Any]:
    return [table.c[name] for name in names]


_LIVE_COLUMNS = _columns(scopes, (*_PLACE, "last_event_id", "wait", "wait_id", "wake_at"))
_KEPT_COLUMNS = _columns(kept_scopes, (*_PLACE, "has_failed"))
_LIVE = select(*_LIVE_COLUMNS).where(scopes.c.execution_id == bindparam("b_id")).order_by(scopes.c.scope_id)
_KEPT = select(*_KEPT_COLUMNS).where(kept_scopes.c.execution_id == bindparam("b_id")).order_by(kept_scopes.c.scope_id)
_LIVE_CHECKS = checks_of(_LIVE_COLUMNS)
_KEPT_CHECKS = checks_of(_KEPT_COLUMNS)


def _live_scope(row: Any) -> Scope:
    scope = _scope(row)
    scope.last_event_id, scope.wait, scope.wake_at = row.last_event_id, WaitKind(row.wait), row.wake_at
    scope.wait_id = row.wait_id
    return scope


def _kept_scope(row: Any) -> Scope:
    scope = _scope(row)
    scope.has_failed = bool(row.has_failed)
    return scope


def _scope(row: Any) -> Scope:
    return Scope(
        scope_id=row.scope_id,
        parent_id=row.parent_id,
        list_id=row.list_id,
        item=row.item,
        last_event_id=row.entered_event_id,
        step_index=row.step_index,
        entered_event_id=row.entered_event_id,
        attempt=row.attempt,
        option=row.option,
        child_wait=row.child_wait,
    )
