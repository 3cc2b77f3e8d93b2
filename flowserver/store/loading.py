"""Executions out of the database: a header and all scopes, in two statements per batch."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Row, bindparam, select

from flowserver.base.json_values import InvalidJson, JsonObject, load_stored_json
from flowserver.machine.state import Execution, Scope, Status, WaitKind
from flowserver.store.tables import execution_documents, executions, scopes

IDS_PER_STATEMENT = 500
"""Ids in one IN list; bounds the statement text on both databases."""


@dataclass(slots=True)
class StoredExecution:
    """An execution as loaded or about to be inserted, with what the machine does not need to know."""

    execution: Execution
    flow_id: str
    definition_id: str
    version: int
    """The version in the database; 0 means that there is no row yet."""
    input_text: str
    parked_error: str | None = None
    leases: dict[int, str] = field(default_factory=dict, compare=False)
    """Which node makes the call of a scope, by scope id; as loaded."""


def load_executions(
    connection: Connection, execution_ids: Iterable[str]
) -> tuple[dict[str, StoredExecution], dict[str, str]]:
    """The executions with all their scopes, locked until the transaction ends; unknown ids are left out.

    Second, those whose rows make no sense, with what is wrong: they must not keep the others from going on. Their
    header is loaded without scopes, which is enough to end them.
    """
    found: dict[str, StoredExecution] = {}
    broken: dict[str, str] = {}
    for chunk in chunks(sorted(set(execution_ids))):
        for row in connection.execute(_LOAD_HEADERS, {"ids": chunk}).all():
            try:
                execution_input = _input(row.input)
            except (ValueError, TypeError) as error:
                execution_input = {}
                broken[row.execution_id] = f"the stored input cannot be read: {error}"
            found[row.execution_id] = _stored_execution(row, execution_input)
        for row in connection.execute(_LOAD_SCOPES, {"ids": chunk}).all():
            if row.execution_id not in found:
                continue  # rows of an execution that does not exist are for the doctor
            if row.node_id is not None:
                found[row.execution_id].leases[row.scope_id] = row.node_id
            try:
                found[row.execution_id].execution.scopes[row.scope_id] = _scope(row)
            except (ValueError, TypeError, AttributeError) as error:
                broken[row.execution_id] = f"scope {row.scope_id} cannot be read: {error}"
    for execution_id in broken:
        found[execution_id].execution.scopes.clear()
    return found, broken


_LOAD_HEADERS = (
    select(executions, execution_documents.c.input)
    .join(execution_documents, execution_documents.c.execution_id == executions.c.execution_id, isouter=True)
    .where(executions.c.execution_id.in_(bindparam("ids", expanding=True)))
    .order_by(executions.c.execution_id)
    .with_for_update(of=executions)
)
_LOAD_SCOPES = (
    select(scopes)
    .where(scopes.c.execution_id.in_(bindparam("ids", expanding=True)))
    .order_by(scopes.c.execution_id, scopes.c.scope_id)
)


def _stored_execution(row: Row[Any], execution_input: JsonObject) -> StoredExecution:
    execution = Execution(
        execution_id=row.execution_id,
        flow_name=row.flow_name,
        name=row.name,
        input=execution_input,
        started_at=row.started_at,
        deadline_at=row.deadline_at,
        callback_token=row.callback_token,
        status=Status(row.status),
        next_event_id=row.next_event_id,
        next_scope_id=row.next_scope_id,
        next_wait_id=row.next_wait_id,
        stopped_at=row.stopped_at,
    )
    return StoredExecution(execution, row.flow_id, row.definition_id, row.version, row.input, row.parked_error)


def _scope(row: Row[Any]) -> Scope:
    return Scope(
        scope_id=row.scope_id,
        parent_id=row.parent_id,
        list_id=row.list_id,
        item=row.item,
        last_event_id=row.last_event_id,
        local=_document(row.local),
        step_index=row.step_index,
        step_input=None if row.step_input is None else _document(row.step_input),
        entered_event_id=row.entered_event_id,
        wait=WaitKind(row.wait),
        wait_id=row.wait_id,
        wake_at=row.wake_at,
        attempt=row.attempt,
        retries={int(number): used for number, used in load_stored_json(row.retries).items()},
        option=row.option,
        next_item=row.next_item,
        open_items=row.open_items,
    )


def _input(text: str | None) -> JsonObject:
    if text is None:
        raise InvalidJson("its row is missing")
    return _document(text) if text else {}


def _document(text: str) -> JsonObject:
    value = load_stored_json(text)
    if not isinstance(value, dict):
        raise InvalidJson("not a JSON object")
    return value


def chunks(items: Sequence[Any]) -> Iterable[Sequence[Any]]:
    """The items in slices that fit one statement."""
    for start in range(0, len(items), IDS_PER_STATEMENT):
        yield items[start : start + IDS_PER_STATEMENT]
