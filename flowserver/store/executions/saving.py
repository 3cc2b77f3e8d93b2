"""Saves what turns changed: a few set-based statements per batch, fenced by version.

Only changes are written. For a scope these are its counters and, if they differ, its reason to wake up and its
documents; nearly all indexed columns of a header are written only at the end. So a foreach of ten thousand items
writes its collection once.

One large value often occurs in many events. The machine uses the same object each time, so `history_parts` stores the
value once and the rows of events refer to it.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, delete, false, insert, literal_column, update
from sqlalchemy.dialects import postgresql, sqlite

from flowserver.base.derived_ids import child_execution_id
from flowserver.base.json_values import dump_json
from flowserver.machine.commands import Command, InvokeTask, StopInvocation, StopSubFlow
from flowserver.machine.events import Event
from flowserver.machine.state import Execution, Scope, WaitKind
from flowserver.machine.turn import Turn
from flowserver.store.executions.history import save_events
from flowserver.store.executions.kept_scopes import KeptChanges, keep_scopes
from flowserver.store.executions.loading import lock_versions
from flowserver.store.executions.saving_headers import VersionConflict, save_headers
from flowserver.store.executions.stored_execution import SavedScope, StoredExecution
from flowserver.store.executions.sub_flows import mark_ownerless, mark_ownerless_of
from flowserver.store.invocations.stop_marks import mark_unwanted, mark_unwanted_of
from flowserver.store.schema.tables import NOT_ENDED, executions, finished_items, scopes
from flowserver.store.sql.prepared import execute_many, write_later
from flowserver.store.sql.unreadable import storable


class TakenUp(NamedTuple):
    """Who gets the end of an execution from now on: a step of its parent that continues it."""

    callback_token: str
    parent_wait: int


@dataclass(slots=True)
class Changes:
    """Everything that the turns of one batch changed in one execution."""

    stored: StoredExecution
    events: list[Event] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    touched: set[int] = field(default_factory=set)
    removed: set[int] = field(default_factory=set)
    joined: set[int] = field(default_factory=set)
    finished: dict[int, list[int]] = field(default_factory=dict)
    kept: KeptChanges | None = None
    """What the execution keeps for a redrive, if it has ended without success."""
    is_redriven: bool = False
    has_begun_again: bool = False
    """Whether that redrive found it ended."""
    taken_up: TakenUp | None = None
    begins_to_wait: bool = False
    """Whether its error and failed step are to be saved although it runs: a step waits for a redrive."""
    unwanted: list[str] = field(default_factory=list)
    """Keys of the asynchronous invocations that must be stopped; set when the changes are saved."""
    ownerless: list[str] = field(default_factory=list)
    """Ids of the sub-flows that must be stopped; set when the changes are saved."""
    is_new: bool = field(init=False)
    """Whether the execution has no row yet."""

    def __post_init__(self) -> None:
        self.is_new = self.stored.version == 0

    @property
    def is_saved(self) -> bool:
        """Whether there is anything to save."""
        return bool(self.events or self.touched or self.removed or self.taken_up)

    @property
    def is_only_taken_up(self) -> bool:
        """Whether nothing has changed but who gets the execution's end, which it may have had before."""
        return self.taken_up is not None and not self.events

    def add(self, *turns: Turn) -> None:
        """Add turns. A call that an earlier turn ordered and a later one settled is removed."""
        for turn in turns:
            self._add(turn)

    def _add(self, turn: Turn) -> None:
        if turn.kept is not None:
            before = KeptChanges(set(self.touched), set(self.removed), set(self.joined), dict(self.finished))
            before.add(turn.kept)
            self.kept = before
        self.begins_to_wait |= turn.begins_to_wait
        self.events += turn.events
        self.commands = [each for each in (*self.commands, *turn.commands) if self._is_needed(each)]
        self.removed |= turn.removed
        self.touched = (self.touched | turn.touched) - self.removed
        for scope_id in turn.joined:
            self.finished.pop(scope_id, None)
        self.joined |= turn.joined
        for scope_id, items in turn.finished.items():
            self.finished.setdefault(scope_id, []).extend(items)

    def _is_needed(self, command: Command) -> bool:
        """Whether the command is still needed: a call is needed while its attempt waits for it."""
        if not isinstance(command, InvokeTask):
            return True
        scope = self.stored.execution.scopes.get(command.scope_id)
        return scope is not None and scope.wait is WaitKind.TASK and scope.wait_id == command.wait_id


def save_changes(connection: Connection, batch: Sequence[Changes], node_id: str) -> None:
    """Write what the turns changed. The calls that they order are leased to `node_id` in the same rows.

    Raises VersionConflict if another node has changed any of the executions, on PostgreSQL as late as with the COMMIT;
    the caller must roll back.
    """
    _save_headers(connection, batch)
    keep_scopes(connection, [(each.stored, each.kept) for each in batch if each.kept and not each.stored.is_bare])
    _save_scopes(connection, batch, node_id)
    _save_finished(connection, batch)
    save_events(
        connection,
        ((changes.stored.execution.execution_id, changes.events, changes.stored.parts) for changes in batch),
    )
    _mark_unwanted(connection, batch)


def _save_headers(connection: Connection, batch: Sequence[Changes]) -> None:
    new = [changes.stored for changes in batch if changes.stored.version == 0]
    old = [changes.stored for changes in batch if changes.stored.version > 0 and not changes.is_redriven]
    redriven = [changes.stored for changes in batch if changes.is_redriven]
    results = [
        each.stored.execution
        for each in batch
        if each.is_redriven
        or each.begins_to_wait
        or (not each.is_new and not each.stored.execution.is_running and not each.is_only_taken_up)
    ]
    save_headers(connection, new, old, redriven, results)
    takers = [(each.stored.execution.execution_id, each.taken_up) for each in batch if each.taken_up is not None]
    write_later(connection, _TAKE_UP, [{"b_id": each, **taker._asdict()} for each, taker in takers])


_TAKE_UP = update(executions).where(executions.c.execution_id == bindparam("b_id")).values(stop_due=false())


def _save_scopes(connection: Connection, batch: Sequence[Changes], node_id: str) -> None:
    ended = [changes.stored.execution.execution_id for changes in batch if not changes.stored.execution.is_running]
    write_later(connection, _DELETE_SCOPES, [{"b_id": execution_id} for execution_id in ended])
    gone = [
        {"b_id": changes.stored.execution.execution_id, "b_scope": scope_id}
        for changes in batch
        if changes.stored.execution.is_running
        for scope_id in sorted(changes.removed)
    ]
    write_later(connection, _DELETE_SCOPE, gone)
    rows: dict[ScopeChange, list[dict[str, Any]]] = defaultdict(list)
    for changes in batch:
        for scope_id in changes.removed:
            changes.stored.note_removed(scope_id)
        for scope_id in changes.touched:
            change, row = _scope_change(changes.stored, scope_id, node_id)
            rows[change].append(row)
    write_later(connection, _upsert_scope(connection.dialect.name), rows.pop(NEW, []))
    for change, changed in rows.items():
        write_later(connection, _UPDATE_SCOPE[change], changed, unless_all_change=VersionConflict)


def _save_finished(connection: Connection, batch: Sequence[Changes]) -> None:
    """Insert the finished items of branches and iterations; delete those that joins have consumed."""
    over: list[dict[str, Any]] = []
    taken: list[dict[str, Any]] = []
    left: list[dict[str, Any]] = []
    for changes in batch:
        stored = changes.stored
        key = {"b_id": stored.execution.execution_id}
        if not stored.execution.is_running:
            if stored.joining is None or stored.joining:
                over.append(key)
            continue
        assert stored.joining is not None, "an execution without its scopes can only end"
        taken.extend({**key, "b_scope": scope_id} for scope_id in changes.joined & stored.joining)
        stored.joining -= changes.joined
        stored.joining |= changes.finished.keys()
        left.extend(_finished_rows(stored.execution, changes.finished))
    write_later(connection, _DELETE_ALL_FINISHED, over)
    write_later(connection, _DELETE_FINISHED, taken)
    write_later(connection, _INSERT_FINISHED, left)


def _finished_rows(execution: Execution, finished: dict[int, list[int]]) -> Iterator[dict[str, Any]]:
    for scope_id, items in finished.items():
        key = {"execution_id": execution.execution_id, "scope_id": scope_id}
        kept = execution.scopes[scope_id].finished
        yield from ({**key, "item": item, "local": dump_json(kept[item].local)} for item in items)


_INSERT_FINISHED = insert(finished_items)
_DELETE_ALL_FINISHED = delete(finished_items).where(finished_items.c.execution_id == bindparam("b_id"))
_DELETE_FINISHED = _DELETE_ALL_FINISHED.where(finished_items.c.scope_id == bindparam("b_scope"))


class ScopeChange(NamedTuple):
    """Which columns of a scope are written besides its counters; unchanged indexes and long texts are not touched."""

    reason: bool
    """Why it waits: `wait`, `wake_at` and the node that makes its call."""
    documents: bool
    """`local` and `step_input`."""
    is_new: bool = False


NEW = ScopeChange(reason=True, documents=True, is_new=True)


def _scope_change(stored: StoredExecution, scope_id: int, node_id: str) -> tuple[ScopeChange, dict[str, Any]]:
    """How a touched scope is written, and its row, which is recorded as saved."""
    scope, before = stored.execution.scopes[scope_id], stored.saved.get(scope_id)
    node = node_id if scope.wait is WaitKind.TASK else None
    if before is None:
        change, row = NEW, _scope_row(stored.execution, scope, node)
    else:
        change = _change_of(scope, node, before)
        row = {"b_id": stored.execution.execution_id, "b_scope": scope_id, **_counters(stored.execution, scope)}
        if change.reason:
            row |= _reason(scope, node)
        if change.documents:
            row |= _documents(scope)
    stored.note_saved(scope_id, SavedScope(scope.wait, scope.wake_at, node, scope.local, scope.step_input))
    return change, row


def _change_of(scope: Scope, node: str | None, before: SavedScope) -> ScopeChange:
    reason = (scope.wait, scope.wake_at, node) != (before.wait, before.wake_at, before.node_id)
    return ScopeChange(reason, scope.local is not before.local or scope.step_input is not before.step_input)


def _scope_row(execution: Execution, scope: Scope, node: str | None) -> dict[str, Any]:
    key = {"execution_id": execution.execution_id, "scope_id": scope.scope_id, "parent_id": scope.parent_id}
    place = {"list_id": scope.list_id, "item": scope.item}
    return {**key, **place, **_counters(execution, scope), **_reason(scope, node), **_documents(scope)}


def _reason(scope: Scope, node: str | None) -> dict[str, Any]:
    return {"wait": str(scope.wait), "wake_at": scope.wake_at, "node_id": node}


def _documents(scope: Scope) -> dict[str, Any]:
    step_input = None if scope.step_input is None else dump_json(scope.step_input)
    return {"local": dump_json(scope.local), "step_input": step_input}


def _counters(execution: Execution, scope: Scope) -> dict[str, Any]:
    return {
        "last_event_id": scope.last_event_id,
        "step_index": scope.step_index,
        "entered_event_id": scope.entered_event_id,
        "wait_id": scope.wait_id,
        "attempt": scope.attempt,
        "retries": dump_json(scope.retries) if scope.retries else "{}",
        "option": scope.option,
        "next_item": scope.next_item,
        "open_items": scope.open_items,
        "child_execution_id": _child_of(execution, scope),
        "child_wait": scope.child_wait,
    }


def _upsert_scope(dialect_name: str) -> Any:
    return _UPSERT_SCOPE_SQLITE if dialect_name == "sqlite" else _UPSERT_SCOPE_POSTGRES


def _make_upsert(dialect: Any) -> Any:
    statement = dialect.insert(scopes)
    keys = [scopes.c.execution_id, scopes.c.scope_id]
    fixed = {"execution_id", "scope_id", "parent_id", "item"}
    changing = {column.name: statement.excluded[column.name] for column in scopes.c if column.name not in fixed}
    return statement.on_conflict_do_update(index_elements=keys, set_=changing)


_UPSERT_SCOPE_SQLITE = _make_upsert(sqlite)
_UPSERT_SCOPE_POSTGRES = _make_upsert(postgresql)
_DELETE_SCOPES = delete(scopes).where(scopes.c.execution_id == bindparam("b_id"))
_DELETE_SCOPE = _DELETE_SCOPES.where(scopes.c.scope_id == bindparam("b_scope"))
_UPDATE_SCOPE = {
    # One statement per kind of change: compiled statements are cached by statement and keys.
    ScopeChange(reason, documents): update(scopes).where(
        scopes.c.execution_id == bindparam("b_id"), scopes.c.scope_id == bindparam("b_scope")
    )
    for reason in (False, True)
    for documents in (False, True)
}


def _child_of(execution: Execution, scope: Scope) -> str | None:
    if scope.wait is not WaitKind.CHILD:
        return None
    return child_execution_id(execution.execution_id, scope.scope_id, scope.child_wait or scope.wait_id)


def _mark_unwanted(connection: Connection, batch: Sequence[Changes]) -> None:
    """Mark invocations and sub-flows that the turns want stopped, after the new executions and the scopes are saved.

    Submitting an invocation locks its scope's row, so it has either committed already or will find the scope changed.
    The start of a sub-flow that a step owns does the same.
    """
    stops = (StopInvocation, StopSubFlow)
    wishes = [(changes, each) for changes in batch for each in changes.commands if isinstance(each, stops)]
    if not wishes:
        return
    by_id = {changes.stored.execution.execution_id: changes for changes, _ in wishes}
    ids = [(changes.stored.execution.execution_id, wish) for changes, wish in wishes]
    keys = [wish.submission_key for _, wish in ids if isinstance(wish, StopInvocation) and wish.submission_key]
    whole = [execution_id for execution_id, wish in ids if wish == StopInvocation()]
    waits = [(execution_id, wish.wait_id) for execution_id, wish in ids if isinstance(wish, StopSubFlow)]
    for execution_id, key in [*mark_unwanted(connection, keys), *mark_unwanted_of(connection, whole)]:
        by_id[execution_id].unwanted.append(key)
    for parent_id, execution_id in [*mark_ownerless(connection, waits), *mark_ownerless_of(connection, whole)]:
        by_id[parent_id].ownerless.append(execution_id)


def release_tasks(connection: Connection, tasks: list[tuple[str, int, int]], node_id: str) -> None:
    """Release calls that `node_id` has not started, by (execution_id, scope_id, wait_id): any node may make them.

    The executions' versions rise, so that copies in the memory of other nodes are known to be stale.
    """
    ids = sorted({execution_id for execution_id, _, _ in tasks})
    lock_versions(connection, ids)
    execute_many(connection, _RAISE_VERSION, [{"b_id": each} for each in ids])
    rows = [{"b_id": each[0], "b_scope": each[1], "b_wait": each[2], "b_node": node_id} for each in tasks]
    execute_many(connection, _RELEASE_TASK, rows)


_RAISE_VERSION = (
    update(executions)
    .where(executions.c.execution_id == bindparam("b_id"))
    .values({executions.c.version: literal_column("version + 1")})
)
_RELEASE_TASK = (
    update(scopes)
    .where(scopes.c.execution_id == bindparam("b_id"), scopes.c.scope_id == bindparam("b_scope"))
    .where(scopes.c.wait_id == bindparam("b_wait"), scopes.c.node_id == bindparam("b_node"))
    .values({scopes.c.node_id: literal_column("''")})
)


def park_execution(connection: Connection, execution_id: str, error: str) -> None:
    """Park an execution that the server could not run: it keeps its state, and readers see the error.

    An ended execution is not changed. One with a damaged status is parked too, so that it is not tried again.
    """
    parked = update(executions).where(executions.c.execution_id == execution_id, NOT_ENDED)
    connection.execute(parked.values(parked_error=storable(error), version=executions.c.version + 1))


def clear_callbacks(connection: Connection, delivered: Sequence[tuple[str, str | None]]) -> None:
    """The results of these ended executions have reached the waiting tasks, each by a token, None for any.

    An execution that was taken up since has another token, and may have ended once more.
    """
    write_later(connection, _CLEAR_ANY, [{"b_id": each} for each, token in delivered if token is None])
    by_token = [{"b_id": each, "b_token": token} for each, token in delivered if token is not None]
    write_later(connection, _CLEAR_CALLBACK, by_token)


_CLEAR_ANY = update(executions).where(executions.c.execution_id == bindparam("b_id")).values(callback_due=false())
_CLEAR_CALLBACK = _CLEAR_ANY.where(executions.c.callback_token == bindparam("b_token"))
