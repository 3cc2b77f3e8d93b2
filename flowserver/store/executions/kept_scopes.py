"""What an execution that has ended without success keeps for a redrive: its scopes, and what its joins had gathered.

The rows are copied by the database, and the last turn's changes are written over the copy; so a stop still reads no
document. They are bounded as the scopes were, by `execution_data_bytes_max` and `live_scopes_max`, and are deleted with
the execution's history. A redrive moves them back.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, bindparam, case, delete, insert, select

from flowserver.base.json_values import dump_json, text_bytes
from flowserver.machine.kept_scopes import Kept
from flowserver.machine.state import Execution, Scope, WaitKind
from flowserver.store.executions.loading import stored_document
from flowserver.store.executions.stored_execution import StoredExecution
from flowserver.store.schema.tables import (
    execution_documents,
    executions,
    finished_items,
    kept_items,
    kept_scopes,
    scopes,
)
from flowserver.store.sql.list_parameter import among, texts
from flowserver.store.sql.prepared import fetch_rows, write_later
from flowserver.store.sql.unreadable import checks_of, damage_in


@dataclass(slots=True)
class KeptChanges:
    """How the rows to keep differ from the stored ones, over all turns of a batch."""

    touched: set[int] = field(default_factory=set)
    removed: set[int] = field(default_factory=set)
    joined: set[int] = field(default_factory=set)
    finished: dict[int, list[int]] = field(default_factory=dict)

    def add(self, kept: Kept) -> None:
        """Take in the turn that ended the execution."""
        self.removed = (self.removed | kept.removed) - kept.touched
        self.touched = (self.touched | kept.touched) - self.removed
        self.joined |= kept.joined
        for scope_id in kept.joined:
            self.finished.pop(scope_id, None)
        for scope_id, items in kept.finished.items():
            self.finished.setdefault(scope_id, []).extend(items)


def keep_scopes(connection: Connection, ended: Sequence[tuple[StoredExecution, KeptChanges]]) -> None:
    """Keep the scopes of executions that have ended in this transaction, before their rows are deleted."""
    if not ended:
        return
    ids = [stored.execution.execution_id for stored, _ in ended if stored.version > 0]
    if ids:
        connection.execute(_COPY_SCOPES, {"ids": texts(connection, ids)})
        connection.execute(_COPY_ITEMS, {"ids": texts(connection, ids)})
    write_later(connection, _DELETE_SCOPE, list(_outdated(ended)))
    write_later(connection, _DELETE_ITEMS, list(_joined(ended)))
    write_later(connection, _INSERT_SCOPE, list(_changed(ended)))
    write_later(connection, _INSERT_ITEM, list(_finished(ended)))


def _outdated(ended: Sequence[tuple[StoredExecution, KeptChanges]]) -> Iterator[dict[str, Any]]:
    for stored, changes in ended:
        if stored.version > 0:
            for scope_id in sorted(changes.removed | changes.touched):
                yield {"b_id": stored.execution.execution_id, "b_scope": scope_id}


def _joined(ended: Sequence[tuple[StoredExecution, KeptChanges]]) -> Iterator[dict[str, Any]]:
    for stored, changes in ended:
        if stored.version > 0:
            for scope_id in sorted(changes.joined):
                yield {"b_id": stored.execution.execution_id, "b_scope": scope_id}


def _changed(ended: Sequence[tuple[StoredExecution, KeptChanges]]) -> Iterator[dict[str, Any]]:
    for stored, changes in ended:
        kept = stored.execution.kept
        for scope_id in sorted(changes.touched & kept.keys()):
            yield kept_row(stored.execution, kept[scope_id])


def _finished(ended: Sequence[tuple[StoredExecution, KeptChanges]]) -> Iterator[dict[str, Any]]:
    for stored, changes in ended:
        for scope_id, items in changes.finished.items():
            kept = stored.execution.kept.get(scope_id)
            key = {"execution_id": stored.execution.execution_id, "scope_id": scope_id}
            if kept is not None:
                yield from ({**key, "item": item, "local": dump_json(kept.finished[item].local)} for item in items)


def kept_row(execution: Execution, scope: Scope) -> dict[str, Any]:
    """The row of a scope that is kept."""
    return {
        "execution_id": execution.execution_id,
        "scope_id": scope.scope_id,
        "parent_id": scope.parent_id,
        "list_id": scope.list_id,
        "item": scope.item,
        "step_index": scope.step_index,
        "entered_event_id": scope.entered_event_id,
        "attempt": scope.attempt,
        "option": scope.option,
        "next_item": scope.next_item,
        "open_items": scope.open_items,
        "local": dump_json(scope.local),
        "step_input": None if scope.step_input is None else dump_json(scope.step_input),
        "child_wait": scope.child_wait,
        "has_failed": int(scope.has_failed or scope.wait is WaitKind.REDRIVE),
    }


def load_kept(connection: Connection, stored: StoredExecution) -> str | None:
    """Add its kept scopes to an ended execution. Returns what is wrong if a row cannot be read."""
    execution = stored.execution
    for row in fetch_rows(connection, _LOAD_SCOPES, {"b_id": execution.execution_id}):
        damage = damage_in(row, _SCOPE_CHECKS)
        try:
            if damage is None:
                execution.scopes[row.scope_id] = kept_scope(row)
        except ValueError as error:
            damage = str(error)
        if damage is not None:
            execution.scopes.clear()
            return f"its kept scope {row.scope_id} cannot be read: {damage}"
    stored.joining = {each.scope_id for each in execution.scopes.values() if each.next_item > each.open_items}
    return None


def kept_scope(row: Any) -> Scope:
    """The scope that a row keeps; raises ValueError.

    Between two steps the counters are those of a join that was made before.
    """
    is_in_step = row.step_input is not None
    return Scope(
        scope_id=row.scope_id,
        parent_id=row.parent_id,
        list_id=row.list_id,
        item=row.item,
        last_event_id=row.entered_event_id,
        local=stored_document(row.local),
        step_index=row.step_index,
        step_input=stored_document(row.step_input) if is_in_step else None,
        entered_event_id=row.entered_event_id,
        attempt=row.attempt,
        option=row.option,
        next_item=row.next_item if is_in_step else 0,
        open_items=row.open_items if is_in_step else 0,
        document_bytes=text_bytes(row.local) + (text_bytes(row.step_input) if is_in_step else 0),
        child_wait=row.child_wait,
        has_failed=bool(row.has_failed),
    )


def take_kept(connection: Connection, execution_id: str) -> None:
    """The execution runs again: move back what its joins had gathered. Its scopes are in memory, to be saved."""
    given = {"ids": texts(connection, [execution_id])}
    connection.execute(_RESTORE_ITEMS, given)
    for table in (kept_items, kept_scopes):
        connection.execute(delete(table).where(table.c.execution_id == execution_id))


def redriven_columns(stored: StoredExecution) -> dict[str, Any]:
    """What a redrive changes of a header, besides what turns change."""
    execution = stored.execution
    return {
        "definition_id": stored.definition_id,
        "deadline_at": execution.deadline_at,
        "redrive_count": execution.redrive_count,
        "redriven_at": execution.redriven_at,
        "parked_error": None,
        "flow_version": stored.flow_version,
        "flow_alias": stored.flow_alias,
        "waiting_steps": execution.waiting_steps,
    }


def version_of(connection: Connection, execution_id: str) -> tuple[int | None, str | None]:
    """The published version that the execution ran, and the alias that named it."""
    query = select(executions.c.flow_version, executions.c.flow_alias).where(executions.c.execution_id == execution_id)
    version, alias = connection.execute(query).one()
    return version, alias


def redrive_token_of(connection: Connection, execution_id: str) -> str | None:
    """The client token of the execution's last redrive, if it had one."""
    query = select(execution_documents.c.redrive_token).where(execution_documents.c.execution_id == execution_id)
    token: str | None = connection.execute(query).scalar_one_or_none()
    return token


_COPIED = [column.name for column in kept_scopes.c if column.name != "has_failed"]
_ITEM = [column.name for column in kept_items.c]
_COPY_SCOPES = insert(kept_scopes).from_select(
    [*_COPIED, "has_failed"],
    select(*(scopes.c[name] for name in _COPIED), case((scopes.c.wait == WaitKind.REDRIVE, 1), else_=0)).where(
        among(scopes.c.execution_id, bindparam("ids"))
    ),
)
_COPY_ITEMS = insert(kept_items).from_select(
    _ITEM,
    select(*(finished_items.c[name] for name in _ITEM)).where(among(finished_items.c.execution_id, bindparam("ids"))),
)
_RESTORE_ITEMS = insert(finished_items).from_select(
    _ITEM, select(*(kept_items.c[name] for name in _ITEM)).where(among(kept_items.c.execution_id, bindparam("ids")))
)
_INSERT_SCOPE = insert(kept_scopes)
_INSERT_ITEM = insert(kept_items)
_DELETE_SCOPE = delete(kept_scopes).where(
    kept_scopes.c.execution_id == bindparam("b_id"), kept_scopes.c.scope_id == bindparam("b_scope")
)
_DELETE_ITEMS = delete(kept_items).where(
    kept_items.c.execution_id == bindparam("b_id"), kept_items.c.scope_id == bindparam("b_scope")
)
_LOAD_SCOPES = (
    select(kept_scopes).where(kept_scopes.c.execution_id == bindparam("b_id")).order_by(kept_scopes.c.scope_id)
)
_SCOPE_CHECKS = checks_of(kept_scopes.c)
