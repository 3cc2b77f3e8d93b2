"""Loads executions: headers and all scopes, in two statements per batch."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Boolean, Connection, bindparam, literal_column, select

from flowserver.base.json_values import InvalidJson, JsonObject, json_bytes, load_stored_json, text_bytes
from flowserver.machine.events import cut
from flowserver.machine.state import Execution, Finished, Scope, Status, WaitKind
from flowserver.store.executions.history import find_parts
from flowserver.store.executions.stored_execution import SavedScope, StoredExecution
from flowserver.store.schema.tables import TASK, execution_documents, executions, finished_items, kept_items, scopes
from flowserver.store.sql.list_parameter import among, texts
from flowserver.store.sql.prepared import fetch_all, fetch_rows
from flowserver.store.sql.unreadable import checks_of, damage_in, is_text


def load_executions(
    connection: Connection, execution_ids: Iterable[str], *, headers_only: bool = False
) -> tuple[dict[str, StoredExecution], dict[str, str]]:
    """The executions with all their scopes, locked until the transaction ends; unknown ids are left out.

    Finished branches and iterations are not loaded; `load_finished` loads them when a turn needs them.

    The second result says what is wrong with each damaged execution, so that one does not stop the others. Its header
    is loaded without scopes, which is enough to end it. With `headers_only` no scope is queried: a database that
    cannot read one row fails the whole statement.
    """
    found, broken = load_headers(connection, execution_ids, bare=headers_only)
    if not headers_only:
        load_scopes(connection, list(found.values()), broken)
    return found, broken


def load_headers(
    connection: Connection, execution_ids: Iterable[str], *, bare: bool = False
) -> tuple[dict[str, StoredExecution], dict[str, str]]:
    """Like `load_executions` without scopes; if `bare`, also without the input."""
    found: dict[str, StoredExecution] = {}
    broken: dict[str, str] = {}
    asked = sorted(filter(is_text, set(execution_ids)))
    if asked:
        ids = {"ids": texts(connection, asked)}
        _load_headers(fetch_rows(connection, _LOAD_BARE_HEADERS if bare else _LOAD_HEADERS, ids), found, broken)
        for stored in found.values():
            stored.is_bare = bare
    return found, broken


def read_header(connection: Connection, execution_id: str) -> StoredExecution | None:
    """The execution without its scopes, and without a lock."""
    found: dict[str, StoredExecution] = {}
    broken: dict[str, str] = {}
    _load_headers(fetch_rows(connection, _READ_HEADER, {"b_id": execution_id}), found, broken)
    stored = found.get(execution_id)
    if stored is not None:
        stored.unreadable = broken.get(execution_id)
    return stored


def load_scopes(connection: Connection, batch: Sequence[StoredExecution], broken: dict[str, str]) -> None:
    """Add all scopes to the executions, except to those in `broken`; damaged ones are added to `broken`.

    Finished branches and iterations are not loaded; `load_finished` loads them when a turn needs them.
    """
    found = {stored.execution.execution_id: stored for stored in batch}
    if not found:
        return
    for stored in batch:
        stored.joining = set()
    for row in fetch_rows(connection, _LOAD_SCOPES, {"ids": texts(connection, list(found))}):
        _load_scope(row, found[row.execution_id], broken)
    for execution_id in broken.keys() & found.keys():
        found[execution_id].execution.scopes.clear()
        found[execution_id].joining = None
    for stored in batch:
        _note_parts(connection, stored)


def load_calls(connection: Connection, batch: Sequence[StoredExecution]) -> None:
    """Add the scopes that wait for a call to executions that are about to end, so that the calls can be dropped.

    Documents are not read.
    """
    found = {stored.execution.execution_id: stored for stored in batch}
    if not found:
        return
    for row in fetch_rows(connection, _LOAD_CALLS, {"ids": texts(connection, list(found))}):
        if isinstance(row.scope_id, int) and isinstance(row.wait_id, int):  # others are damaged
            scope = Scope(row.scope_id, None, 0, 0, 0, wait=WaitKind.TASK, wait_id=row.wait_id)
            found[row.execution_id].execution.scopes[row.scope_id] = scope


def _note_parts(connection: Connection, stored: StoredExecution) -> None:
    """Remember the large inputs of a foreach: its history holds them already, so iterations do not store them again."""
    execution = stored.execution
    for scope in execution.scopes.values():
        if scope.wait is WaitKind.JOIN and scope.next_item > 0:
            _, large = cut({"input": scope.step_input})
            if large:
                stored_as = find_parts(connection, execution.execution_id, scope.started_event_id, "input")
                for part in large:
                    if part.name in stored_as:
                        stored.parts.note(part.value, stored_as[part.name], json_bytes(part.value))


def load_finished(
    connection: Connection, stored: StoredExecution, scope_ids: Iterable[int], *, are_kept: bool = False
) -> None:
    """Load all finished branches and iterations of these scopes, live or kept. Raises ValueError if one is damaged."""
    execution, query = stored.execution, _LOAD_KEPT if are_kept else _LOAD_FINISHED
    for scope_id in scope_ids:
        finished = execution.scopes[scope_id].finished
        for row in fetch_rows(connection, query, {"b_id": execution.execution_id, "b_scope": scope_id}):
            damage = damage_in(row, _FINISHED_CHECKS)
            try:
                if damage is None and row.item not in finished:
                    finished[row.item] = Finished(stored_document(row.local), text_bytes(row.local))
            except InvalidJson as error:
                damage = str(error)
            if damage is not None:
                raise ValueError(f"finished item {row.item} of scope {scope_id} cannot be read: {damage}")
        if not execution.scopes[scope_id].has_all_finished:
            raise ValueError(f"finished items of scope {scope_id} are missing")


def _load_headers(rows: Iterable[Any], found: dict[str, StoredExecution], broken: dict[str, str]) -> None:
    for row in rows:
        execution_input: JsonObject = {}
        try:
            execution_input = _input(row.input)
        except (ValueError, TypeError) as error:
            broken[row.execution_id] = f"the stored input cannot be read: {error}"
        damage = damage_in(row[: len(_HEADER_CHECKS)], _HEADER_CHECKS)
        if damage is None and stored_status(row.status) is None:
            damage = f"its status is {row.status!r}"
        if damage is not None:
            broken[row.execution_id] = f"the stored header cannot be read: {damage}"
        found[row.execution_id] = _stored_execution(row, execution_input)


def _load_scope(row: Any, stored: StoredExecution, broken: dict[str, str]) -> None:
    damage = damage_in(row, _SCOPE_CHECKS)
    if damage is None:
        try:
            scope = _scope(row)
        except (ValueError, TypeError, AttributeError) as error:
            damage = str(error)
        else:
            stored.execution.scopes[row.scope_id] = scope
            saved = SavedScope(scope.wait, scope.wake_at, row.node_id, scope.local, scope.step_input)
            stored.note_saved(row.scope_id, saved)
            if stored.joining is not None and scope.wait is WaitKind.JOIN and scope.next_item > scope.open_items:
                stored.joining.add(scope.scope_id)
    if damage is not None:
        broken[row.execution_id] = f"scope {row.scope_id} cannot be read: {damage}"


class CallingScope(NamedTuple):
    """A scope that waits for the call of its step, and the execution that it belongs to."""

    flow_name: str
    execution_name: str
    definition_id: str
    scope: Scope


def find_calling_scope(
    connection: Connection, node_id: str, execution_id: str, scope_id: int, wait_id: int
) -> CallingScope | None:
    """The scope that waits for this attempt's call, if the call is leased to the node.

    Raises ValueError if the row is damaged.
    """
    given = {"b_id": execution_id, "b_scope": scope_id, "b_wait": wait_id, "b_node": node_id}
    if not (rows := fetch_rows(connection, _FIND_CALLING_SCOPE, given)):
        return None
    row = rows[0]
    columns = len(_SCOPE_CHECKS)
    damage = damage_in(row[:columns], _SCOPE_CHECKS)
    if damage is not None:
        raise ValueError(f"scope {scope_id}: {damage}")
    return CallingScope(row.flow_name, row.name, row.definition_id, _scope(row))


def lock_versions(connection: Connection, execution_ids: Iterable[str]) -> dict[str, int]:
    """Lock the headers until the transaction ends and return their versions. Every caller locks in this order."""
    ids = sorted(filter(is_text, set(execution_ids)))
    return dict(fetch_all(connection, _LOCK_VERSIONS, {"ids": texts(connection, ids)}))


_NOT_LOADED = ("flow_version", "flow_alias", "parent_id", "parent_wait", "depth")
_HEADER = [column for column in executions.c if not isinstance(column.type, Boolean) and column.name not in _NOT_LOADED]
"""Without booleans, which SQLite does not have."""

_LOCK_VERSIONS = (
    select(executions.c.execution_id, executions.c.version)
    .where(among(executions.c.execution_id, bindparam("ids")))
    .order_by(executions.c.execution_id)
    .with_for_update()
)
_LOAD_HEADERS = (
    select(*_HEADER, execution_documents.c.input)
    .join(execution_documents, execution_documents.c.execution_id == executions.c.execution_id, isouter=True)
    .where(among(executions.c.execution_id, bindparam("ids")))
    .order_by(executions.c.execution_id)
    .with_for_update(of=executions)
)
_READ_HEADER = (
    select(*_HEADER, execution_documents.c.input)
    .join(execution_documents, execution_documents.c.execution_id == executions.c.execution_id, isouter=True)
    .where(executions.c.execution_id == bindparam("b_id"))
)
_LOAD_BARE_HEADERS = (
    select(*_HEADER, literal_column("''").label("input"))
    .where(among(executions.c.execution_id, bindparam("ids")))
    .with_for_update(of=executions)
)
_LOAD_SCOPES = (
    select(scopes)
    .where(among(scopes.c.execution_id, bindparam("ids")))
    .order_by(scopes.c.execution_id, scopes.c.scope_id)
)
_LOAD_CALLS = (
    select(scopes.c.execution_id, scopes.c.scope_id, scopes.c.wait_id)
    .where(among(scopes.c.execution_id, bindparam("ids")), TASK)
    .order_by(scopes.c.execution_id, scopes.c.scope_id)
)
_FIND_CALLING_SCOPE = (
    select(scopes, executions.c.flow_name, executions.c.name, executions.c.definition_id)
    .join(executions, executions.c.execution_id == scopes.c.execution_id)
    .where(scopes.c.execution_id == bindparam("b_id"), scopes.c.scope_id == bindparam("b_scope"), TASK)
    .where(scopes.c.wait_id == bindparam("b_wait"), scopes.c.node_id == bindparam("b_node"))
)
_LOAD_FINISHED = select(finished_items.c.item, finished_items.c.local).where(
    finished_items.c.execution_id == bindparam("b_id"), finished_items.c.scope_id == bindparam("b_scope")
)
_LOAD_KEPT = select(kept_items.c.item, kept_items.c.local).where(
    kept_items.c.execution_id == bindparam("b_id"), kept_items.c.scope_id == bindparam("b_scope")
)
_FINISHED_CHECKS = checks_of((finished_items.c.item, finished_items.c.local))
_HEADER_CHECKS = checks_of(_HEADER)
_SCOPE_CHECKS = checks_of(scopes.c)


def stored_status(text: object) -> Status | None:
    """The status with that name; None if the name is not a status."""
    try:
        return Status(text)  # type: ignore[arg-type] # a damaged row may hold anything
    except ValueError:
        return None


def likely_status(text: object, stopped_at: object) -> Status:
    """The status with that name. If it is damaged: RUNNING without an instant of the end, else FAILED."""
    return stored_status(text) or (Status.RUNNING if stopped_at is None else Status.FAILED)


def _stored_execution(row: Any, execution_input: JsonObject) -> StoredExecution:
    execution = Execution(
        execution_id=row.execution_id,
        flow_name=row.flow_name,
        name=row.name,
        input=execution_input,
        started_at=row.started_at,
        deadline_at=row.deadline_at,
        callback_token=row.callback_token,
        status=likely_status(row.status, row.stopped_at),
        next_event_id=row.next_event_id,
        next_scope_id=row.next_scope_id,
        next_wait_id=row.next_wait_id,
        stopped_at=row.stopped_at,
        document_bytes=row.document_bytes,
        redrive_count=row.redrive_count,
        redriven_at=row.redriven_at,
        waiting_steps=row.waiting_steps,
    )
    return StoredExecution(
        execution, row.flow_id, row.definition_id, row.version, row.input, row.parked_error, joining=None
    )


def _scope(row: Any) -> Scope:
    return Scope(
        scope_id=row.scope_id,
        parent_id=row.parent_id,
        list_id=row.list_id,
        item=row.item,
        last_event_id=row.last_event_id,
        local=stored_document(row.local),
        step_index=row.step_index,
        step_input=None if row.step_input is None else stored_document(row.step_input),
        entered_event_id=row.entered_event_id,
        wait=WaitKind(row.wait),
        wait_id=row.wait_id,
        wake_at=row.wake_at,
        attempt=row.attempt,
        retries={int(number): used for number, used in load_stored_json(row.retries).items()},
        option=row.option,
        next_item=row.next_item,
        open_items=row.open_items,
        child_wait=row.child_wait,
        document_bytes=text_bytes(row.local) + (0 if row.step_input is None else text_bytes(row.step_input)),
    )


def _input(text: str | None) -> JsonObject:
    if text is None:
        raise InvalidJson("its row is missing")
    if not isinstance(text, str):
        raise InvalidJson("it is not text")
    return stored_document(text) if text else {}


def stored_document(text: str) -> JsonObject:
    """The JSON object that a column holds; raises ValueError."""
    value = load_stored_json(text)
    if not isinstance(value, dict):
        raise InvalidJson("not a JSON object")
    return value
