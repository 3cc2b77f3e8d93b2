"""One simulated server process: its state in memory between commits, and what follows a commit.

Its decisions are made by the engine's own code: batches, the committer, what recovery and timers look for and send,
starts of sub-flows. The work of the engine's event loop is done here step by step, so errors in that loop show only in
the tests with real servers. A crash loses all that is in memory.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, assert_never, cast

from msgspec.structs import replace

from flowserver.base.clock_watch import ClockWatch
from flowserver.base.json_values import load_json_object
from flowserver.base.task_tokens import TaskTokens
from flowserver.engine.cluster.lease import Lease
from flowserver.engine.commit.batch import Batch, BatchResult
from flowserver.engine.commit.batch_context import BatchContext
from flowserver.engine.commit.batch_items import Envelope, Item, Write
from flowserver.engine.commit.committer import Committer
from flowserver.engine.context import EngineContext
from flowserver.engine.executions.dispatcher import Dispatcher
from flowserver.engine.executions.recovery import TaskRecovery, result_of, stop_of_ownerless
from flowserver.engine.executions.timers import StepTimers
from flowserver.engine.recovery import LostCalls
from flowserver.engine.schedules.loop import ScheduleLoop, request_of
from flowserver.language.graph import Flow
from flowserver.machine.commands import (
    Caller,
    CancelInvocation,
    InvokeTask,
    ReportCallback,
    StopInvocation,
    StopSubFlow,
)
from flowserver.machine.messages import Continue, Result, Start, TaskReported
from flowserver.store.access_keys import delete_expired_nonces
from flowserver.store.definition_cache import DefinitionCache
from flowserver.store.executions.due import ScopeRef, TaskKey
from flowserver.store.executions.new_executions import NewExecution
from flowserver.store.executions.saving import Changes, clear_callbacks
from flowserver.store.executions.saving_headers import VersionConflict
from flowserver.store.executions.stored_execution import StoredExecution
from flowserver.store.schedules.due_schedules import save_current_turns
from tests.simulation.case import TOKEN_CHARACTERS
from tests.simulation.leases import ClusterView
from tests.simulation.shared_database import SharedDatabase
from tests.support.clock import ManualClock

Early = tuple[dict[str, StoredExecution], dict[str, str]]
"""The executions that a batch loaded before the other node committed."""


@dataclass(slots=True, eq=False)
class InboxItem:
    """A message waiting in a node's inbox: an item, or a call whose item `open` makes when the batch takes it.

    `open` returns None if the function does not answer. `then` is called with the answer, which may be an exception.
    `lost` is called if the node crashes before the batch.
    """

    item: Item | None
    open: Callable[[], Item | None] | None = None
    then: Callable[[Any], None] | None = None
    lost: Callable[[], None] | None = None
    call: TaskKey | None = None
    order: object = None
    """Identifies the order that this call belongs to."""
    is_harmless: bool = False
    """It must change nothing."""

    @property
    def execution_ids(self) -> set[str]:
        """The executions that the item concerns."""
        ids = {self.call[0]} if self.call is not None else set()
        if isinstance(self.item, Envelope):
            ids |= {self.item.execution_id, self.item.settles or self.item.execution_id}
        return ids


class Tokens(TaskTokens):
    """The server's tokens, padded to one length."""

    def make(self, execution_id: str, scope_id: int, entered_event_id: int, wait_id: int | None) -> str:
        return super().make(execution_id, scope_id, entered_event_id, wait_id).ljust(TOKEN_CHARACTERS, "=")


class SharedDefinitions(DefinitionCache):
    """A node's own cache over compiled flows that all nodes share, because compiling is slow. The texts are read."""

    def __init__(self, compiled: dict[str, Flow]) -> None:
        super().__init__()
        self._compiled = compiled

    def _compile(self, connection: Any, definition_id: str) -> Flow:
        if definition_id not in self._compiled:
            self._compiled[definition_id] = super()._compile(connection, definition_id)
        return self._compiled[definition_id]


class EarlyBatch(Batch):
    """A batch whose executions were loaded before the other node committed."""

    early: Early

    def _load(self, execution_ids: list[str], redriven: Collection[str]) -> None:
        self._context.cache.take(self._connection, execution_ids)
        self._stored, _ = self.early


class Writer(Committer):
    """The committer, run step by step."""

    early: Early | None = None
    conflicts = 0
    lost_leases = 0

    def _attempt(self, items: Sequence[Item], headers_only: bool, nonces_singly: bool) -> BatchResult:
        database = cast(SharedDatabase, self._database)
        self._tried = None
        with database.write() as connection:
            batch = Batch(connection, self._context, headers_only=headers_only, nonces_singly=nonces_singly)
            if self.early is not None:
                batch = EarlyBatch(connection, self._context, headers_only=headers_only)
                batch.early, self.early = self.early, None
            try:
                result = self._tried = batch.run(items)
            except VersionConflict:
                self.conflicts += 1
                raise
            database.wrote(items, result)
        batch.settle()
        return result

    def commit(self, items: Sequence[Item]) -> list[BatchResult]:
        """Commit the items together, or each alone, under a new lease if necessary; raises Crash."""
        results = self._commit(items)
        if self._has_rejoined:
            self._has_rejoined = False
            self.lost_leases += 1
            self._listener.lease_lost()
        return results


class Surroundings(Protocol):
    """What a node needs of the world around it."""

    database: SharedDatabase
    clock: ManualClock
    compiled: dict[str, Flow]
    """By definition id."""

    def batch_context(self, lease: Lease, definitions: DefinitionCache) -> BatchContext:
        """The context of the node's batches."""

    def dispatcher(self, lease: Lease) -> Dispatcher:
        """Starts the node's sub-flows."""

    def call(self, node: "Node", caller: Caller, command: InvokeTask) -> InboxItem:
        """A task's call that is to be made."""

    def is_cancelled(self) -> bool:
        """Whether cancelling a call succeeds. Otherwise its reply still arrives."""


class Node:
    """A process with one node id."""

    def __init__(self, world: Surroundings, lease: Lease) -> None:
        self._world = world
        self.lease = lease
        self.batch_context = world.batch_context(lease, SharedDefinitions(world.compiled))
        self.dispatcher = world.dispatcher(lease)
        database, me, unused = cast(Any, world.database), cast(Any, self), cast(Any, None)
        self.writer = Writer(database, self.batch_context, me)
        self._cluster = ClusterView(world.database, lease)
        limits = self.batch_context.limits
        differ, settle = limits.clock_differ_seconds, limits.clock_settle_seconds
        self._watch = ClockWatch(world.clock, differ_seconds=differ, settle_seconds=settle)
        context = EngineContext(
            database,
            self.writer,
            unused,
            lease,
            cast(Any, self._cluster),
            self.batch_context.tokens,
            world.clock,
            self._watch,
            self.batch_context.limits,
            unused,
        )
        self._recovery = TaskRecovery(context, me, me)
        self._lost: LostCalls[ScopeRef] = LostCalls()
        self._schedules = ScheduleLoop(context, unused, unused)
        self._timers = StepTimers(context, lambda _: None)
        self.inbox: list[InboxItem] = []
        self.calls: dict[TaskKey, object] = {}
        """Calls under way, each with its order."""

    # What recovery asks of a dispatcher

    def needs_no_dispatch(self, key: TaskKey) -> bool:
        """Whether the attempt's call is under way here."""
        return key in self.calls

    def ended(self, parcel: InboxItem) -> None:
        """Remove a call that has ended, unless the same attempt has been ordered again meanwhile."""
        if parcel.call is not None and self.calls.get(parcel.call) is parcel.order:
            del self.calls[parcel.call]

    def lease_lost(self) -> None:
        """Drop all calls. Messages that are already in the inbox may stay there, and must turn out stale."""
        self.calls.clear()
        self.inbox = [parcel for parcel in self.inbox if parcel.call is None or not self._world.is_cancelled()]

    # After a commit, as in Engine.committed

    def committed(self, result: BatchResult) -> None:
        """Act on a durable batch."""
        for changes in result.changes:
            self._act(changes)
        for execution_id in result.continuing:
            self.send(Envelope(execution_id, Continue()))

    def _act(self, changes: Changes) -> None:
        execution = changes.stored.execution
        caller = Caller(execution.execution_id, execution.flow_name, execution.name)
        cancelled: set[TaskKey] = set()
        for command in changes.commands:
            match command:
                case InvokeTask():
                    self._dispatch(caller, command)
                case CancelInvocation(scope_id, wait_id):
                    cancelled.add((execution.execution_id, scope_id, wait_id))
                case ReportCallback(token, result):
                    self.deliver(execution.execution_id, token, result)
                case StopInvocation() | StopSubFlow():
                    pass  # no asynchronous invocations run here; the sub-flows that were found are stopped below
                case _:
                    assert_never(command)
        for execution_id in changes.ownerless:
            self.send(stop_of_ownerless(execution_id))
        if cancelled:
            self._cancel(cancelled, {key[1:] for key in cancelled if _is_ordered(changes, key)})

    def _dispatch(self, caller: Caller, command: InvokeTask) -> None:
        key = (caller.execution_id, command.scope_id, command.wait_id)
        if key in self.calls:
            return
        self.calls[key] = object()
        self.inbox.append(self._world.call(self, caller, command))

    def _cancel(self, keys: set[TaskKey], unmade: set[tuple[int, int]]) -> None:
        """Drop calls. A call under way may still be answered; a call that this commit ordered is never made."""
        answered = {
            parcel.call
            for parcel in self.inbox
            if parcel.call in keys and parcel.call[1:] not in unmade and not self._world.is_cancelled()
        }
        self.inbox = [parcel for parcel in self.inbox if parcel.call not in keys or parcel.call in answered]
        for key in keys - answered:
            self.calls.pop(key, None)

    def deliver(self, ended_execution_id: str, token: str, result: Result) -> None:
        """Report an execution's end to the waiting task, as Callbacks.deliver does."""
        claim = self.batch_context.tokens.read(token)
        if claim is None:
            self.write(lambda connection: clear_callbacks(connection, [(ended_execution_id, token)]))
            return
        message = TaskReported(claim.scope_id, claim.entered_event_id, claim.wait_id, result)
        self.send(Envelope(claim.execution_id, message, settles=ended_execution_id, settles_token=token))

    # Messages

    def send(self, envelope: Envelope) -> None:
        """Put a message into the inbox."""
        self.inbox.append(InboxItem(envelope))

    def write(self, change: Callable[[Any], Any], then: Callable[[Any], None] | None = None) -> None:
        """Put a write into the inbox."""
        self.inbox.append(InboxItem(Write(change), then=then))

    def sweep(self, *, only_own_share: bool) -> list[str]:
        """Look once for lost work and resume it. Returns the executions concerned, for the world to judge."""
        found = self._recovery.find(list(self.calls))
        self._cancel(found.dropped, set())
        if only_own_share:
            self._cluster.look()
            found = self._recovery.own_share(found)
        lost = self._lost.among(found, self._recovery.is_local)
        envelopes = sorted(self._recovery.messages(found, lost), key=str)
        for envelope in envelopes:
            self.send(envelope)
        for due in found.untold:
            self.deliver(due.execution_id, due.token, result_of(due))
        if (now := self._watch.deletion_now()) is not None:
            self.write(partial(delete_expired_nonces, now_ms=now), lambda _: None)
        return [each.execution_id for each in (*envelopes, *found.untold)]

    def due(self) -> list[Envelope]:
        """The messages that are due by the rows and belong to this node's share."""
        self._cluster.look()
        return [envelope for envelope, _ in self._timers._look()[0]] + self._ticks()

    def _ticks(self) -> list[Envelope]:
        """The starts of schedules that are due, as in ScheduleLoop; turns without a start are written."""
        decided, _, _ = self._schedules._look(set())
        quiet = [each.turn.schedule for each in decided if each.turn.start is None]
        if quiet:
            self.write(lambda connection: save_current_turns(connection, quiet), lambda _: None)
        return [_start_of(request_of(each)) for each in decided if each.turn.start is not None]


def _start_of(new: NewExecution) -> Envelope:
    parsed = replace(new, input=load_json_object(new.input_text))
    return Envelope(new.execution_id, Start(), new=parsed)


def _is_ordered(changes: Changes, key: TaskKey) -> bool:
    return any(isinstance(each, InvokeTask) and (each.scope_id, each.wait_id) == key[1:] for each in changes.commands)
