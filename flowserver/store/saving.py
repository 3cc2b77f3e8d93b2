"""What turns changed, into the database: a few set-based statements per batch, fenced by version."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from sqlalchemy import Connection, bindparam, delete, false, insert, literal_column, select, tuple_, update
from sqlalchemy.dialects import postgresql, sqlite

from flowserver.base.json_values import dump_json
from flowserver.base.names import child_execution_id
from flowserver.machine.commands import Command, InvokeTask, SubmitInvocation
from flowserver.machine.events import Event
from flowserver.machine.state import Execution, Scope, WaitKind
from flowserver.machine.turn import Turn
from flowserver.store.bulk import execute_many
from flowserver.store.functions import InvocationRow
from flowserver.store.loading import StoredExecution, chunks
from flowserver.store.tables import NOT_ENDED, events, execution_documents, executions, invocations, scopes


class VersionConflict(Exception):
    """Somebody else committed a turn of this execution since it was loaded; reload and try again."""


@dataclass(slots=True)
class Changes:
    """All that the turns of one batch changed of one execution."""

    stored: StoredExecution
    events: list[Event] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    touched: set[int] = field(default_factory=set)
    removed: set[int] = field(default_factory=set)

    def add(self, turn: Turn) -> None:
        """Take in another turn; calls drop out that an earlier turn ordered and this one settled."""
        self.events += turn.events
        self.commands = [each for each in (*self.commands, *turn.commands) if self._stands(each)]
        self.removed |= turn.removed
        self.touched = (self.touched | turn.touched) - self.removed

    def _stands(self, command: Command) -> bool:
        """Whether the command is still wanted; a call is, as long as its attempt waits for it."""
        if not isinstance(command, InvokeTask):
            return True
        scope = self.stored.execution.scopes.get(command.scope_id)
        return scope is not None and scope.wait is WaitKind.TASK and scope.wait_id == command.wait_id


def save_changes(connection: Connection, batch: Sequence[Changes], node_id: str) -> None:
    """Write what the turns changed; calls they order are leased to `node_id` from birth.

    Raises VersionConflict, having the caller roll back, if any execution was changed by somebody else.
    """
    _save_headers(connection, batch)
    _save_scopes(connection, batch, node_id)
    execute_many(
        connection, _INSERT_EVENT, [_event_row(changes, event) for changes in batch for event in changes.events]
    )
    ordered = [row for changes in batch for row in invocation_rows(changes, node_id)]
    execute_many(connection, _INSERT_INVOCATION, [asdict(row) for row in ordered])


def _save_headers(connection: Connection, batch: Sequence[Changes]) -> None:
    new = [changes.stored for changes in batch if changes.stored.version == 0]
    old = [changes.stored for changes in batch if changes.stored.version > 0]
    execute_many(connection, _INSERT_HEADER, [_new_header(stored) for stored in new])
    execute_many(connection, _INSERT_DOCUMENTS, [_new_documents(stored) for stored in new])
    if execute_many(connection, _UPDATE_HEADER, [_changed_header(stored) for stored in old]) != len(old):
        raise VersionConflict
    ended = [stored.execution for stored in old if not stored.execution.is_running]
    execute_many(connection, _UPDATE_DOCUMENTS, [{"b_id": each.execution_id, **_results(each)} for each in ended])


_INSERT_HEADER = insert(executions)
_INSERT_DOCUMENTS = insert(execution_documents)
_INSERT_EVENT = insert(events)
_INSERT_INVOCATION = insert(invocations)
_UPDATE_HEADER = (
    update(executions)
    .where(executions.c.execution_id == bindparam("b_id"), executions.c.version == bindparam("b_version"))
    .values({executions.c.version: literal_column("version + 1")})
)
_UPDATE_DOCUMENTS = update(execution_documents).where(execution_documents.c.execution_id == bindparam("b_id"))


def _progress(execution: Execution) -> dict[str, Any]:
    return {
        "status": str(execution.status),
        "next_event_id": execution.next_event_id,
        "next_scope_id": execution.next_scope_id,
        "next_wait_id": execution.next_wait_id,
        "stopped_at": execution.stopped_at,
        "callback_due": execution.callback_token is not None and not execution.is_running,
    }


def _changed_header(stored: StoredExecution) -> dict[str, Any]:
    key = {"b_id": stored.execution.execution_id, "b_version": stored.version}
    return key | _progress(stored.execution)


def _new_header(stored: StoredExecution) -> dict[str, Any]:
    execution = stored.execution
    return _progress(execution) | {
        "execution_id": execution.execution_id,
        "flow_id": stored.flow_id,
        "flow_name": execution.flow_name,
        "name": execution.name,
        "definition_id": stored.definition_id,
        "version": 1,
        "started_at": execution.started_at,
        "deadline_at": execution.deadline_at,
        "callback_token": execution.callback_token,
    }


def _new_documents(stored: StoredExecution) -> dict[str, Any]:
    key = {"execution_id": stored.execution.execution_id, "input": stored.input_text}
    return key | _results(stored.execution)


def _results(execution: Execution) -> dict[str, Any]:
    output = None if execution.output is None else dump_json(execution.output)
    return {"output": output, "error": _storable(execution.error), "cause": _storable(execution.cause)}


def _storable(text: str | None) -> str | None:
    """PostgreSQL's texts hold no NUL and none hold half a character; a function may name its error as it likes."""
    return None if text is None else text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _save_scopes(connection: Connection, batch: Sequence[Changes], node_id: str) -> None:
    ended = [changes.stored.execution.execution_id for changes in batch if not changes.stored.execution.is_running]
    for chunk in chunks(ended):
        connection.execute(delete(scopes).where(scopes.c.execution_id.in_(chunk)))
    gone = [
        (changes.stored.execution.execution_id, scope_id)
        for changes in batch
        if changes.stored.execution.is_running
        for scope_id in sorted(changes.removed)
    ]
    for chunk in chunks(gone):
        connection.execute(delete(scopes).where(tuple_(scopes.c.execution_id, scopes.c.scope_id).in_(chunk)))
    rows = [
        _scope_row(changes.stored.execution, scope_id, node_id) for changes in batch for scope_id in changes.touched
    ]
    execute_many(connection, _upsert_scope(connection.dialect.name), rows)


def _upsert_scope(dialect_name: str) -> Any:
    return _UPSERT_SCOPE_SQLITE if dialect_name == "sqlite" else _UPSERT_SCOPE_POSTGRES


def _make_upsert(dialect: Any) -> Any:
    statement = dialect.insert(scopes)
    keys = [scopes.c.execution_id, scopes.c.scope_id]
    fixed = {"execution_id", "scope_id", "parent_id", "list_id", "item"}
    changing = {column.name: statement.excluded[column.name] for column in scopes.c if column.name not in fixed}
    return statement.on_conflict_do_update(index_elements=keys, set_=changing)


_UPSERT_SCOPE_SQLITE = _make_upsert(sqlite)
_UPSERT_SCOPE_POSTGRES = _make_upsert(postgresql)


def _scope_row(execution: Execution, scope_id: int, node_id: str) -> dict[str, Any]:
    scope = execution.scopes[scope_id]
    return {
        "execution_id": execution.execution_id,
        "scope_id": scope.scope_id,
        "parent_id": scope.parent_id,
        "list_id": scope.list_id,
        "item": scope.item,
        "last_event_id": scope.last_event_id,
        "step_index": scope.step_index,
        "entered_event_id": scope.entered_event_id,
        "wait": str(scope.wait),
        "wait_id": scope.wait_id,
        "wake_at": scope.wake_at,
        "node_id": node_id if scope.wait is WaitKind.TASK else None,
        "attempt": scope.attempt,
        "retries": dump_json(scope.retries),
        "option": scope.option,
        "next_item": scope.next_item,
        "open_items": scope.open_items,
        "local": dump_json(scope.local),
        "step_input": None if scope.step_input is None else dump_json(scope.step_input),
        "child_execution_id": _child_of(execution, scope),
    }


def _child_of(execution: Execution, scope: Scope) -> str | None:
    if scope.wait is not WaitKind.CHILD:
        return None
    return child_execution_id(execution.execution_id, scope.scope_id, scope.wait_id)


def _event_row(changes: Changes, event: Event) -> dict[str, Any]:
    return {
        "execution_id": changes.stored.execution.execution_id,
        "event_id": event.event_id,
        "schedule_event_id": event.schedule_event_id,
        "type": str(event.type),
        "step_name": event.step_name,
        "time": event.time_ms,
        "detail": event.detail,
    }


def invocation_rows(changes: Changes, node_id: str) -> list[InvocationRow]:
    """The asynchronous calls that the changes order, leased to `node_id`."""
    execution = changes.stored.execution
    return [
        InvocationRow(
            idempotency_key=command.idempotency_key,
            node_id=node_id,
            attempt=1,
            service=command.target.service,
            qualifier=command.target.qualifier,
            function=command.target.function,
            invocation_id=command.invocation_id,
            flow_name=execution.flow_name,
            execution_name=execution.name,
            step_name=command.step_name,
            event=dump_json(command.event),
            created_at=changes.events[-1].time_ms,
        )
        for command in changes.commands
        if isinstance(command, SubmitInvocation)
    ]


def release_tasks(connection: Connection, tasks: list[tuple[str, int, int]], node_id: str) -> None:
    """Let calls go that `node_id` has not begun, by (execution_id, scope_id, wait_id): any node may make them."""
    for chunk in chunks(sorted({execution_id for execution_id, _, _ in tasks})):
        connection.execute(_LOCK_HEADERS, {"ids": chunk})  # in the order in which everybody locks them
    rows = [{"b_id": each[0], "b_scope": each[1], "b_wait": each[2], "b_node": node_id} for each in tasks]
    execute_many(connection, _RELEASE_TASK, rows)


_LOCK_HEADERS = (
    select(executions.c.execution_id)
    .where(executions.c.execution_id.in_(bindparam("ids", expanding=True)))
    .order_by(executions.c.execution_id)
    .with_for_update()
)
_RELEASE_TASK = (
    update(scopes)
    .where(scopes.c.execution_id == bindparam("b_id"), scopes.c.scope_id == bindparam("b_scope"))
    .where(scopes.c.wait_id == bindparam("b_wait"), scopes.c.node_id == bindparam("b_node"))
    .values({scopes.c.node_id: literal_column("''")})
)


def park_execution(connection: Connection, execution_id: str, error: str) -> None:
    """Set an execution aside that our own code could not run; it keeps its state and its error is visible.

    One that has ended is left as it is; one whose status makes no sense has not, so that nothing tries to run it again.
    """
    parked = update(executions).where(executions.c.execution_id == execution_id, NOT_ENDED)
    connection.execute(parked.values(parked_error=_storable(error)))


def clear_callback(connection: Connection, execution_ids: list[str]) -> None:
    """The waiting tasks of these ended executions have been told."""
    execute_many(connection, _CLEAR_CALLBACK, [{"b_id": each} for each in execution_ids])


_CLEAR_CALLBACK = update(executions).where(executions.c.execution_id == bindparam("b_id")).values(callback_due=false())
