"""Recovery of executions: their calls, ready scopes, callbacks that were not delivered, executions of deleted flows,
sub-flows without an owner."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import partial

from sqlalchemy import Connection

from flowserver.base.json_values import InvalidJson, load_json_object
from flowserver.engine.commit.batch_items import Envelope, ReceiptKind
from flowserver.engine.commit.committer import all_of
from flowserver.engine.context import EngineContext
from flowserver.engine.executions.dispatcher import Dispatcher
from flowserver.engine.recovery import HELD_PER_SWEEP, Found, Resumed, SweepScope
from flowserver.engine.reports_to_waiting_tasks import Callbacks
from flowserver.machine.messages import NOT_AWAITED, Continue, Failure, Result, RetryLostCall, Stop
from flowserver.machine.result_of_ended_execution import result_of_end
from flowserver.store.executions.due import (
    FIRST_TASK,
    DueCallback,
    ScopeRef,
    TaskKey,
    TaskPlace,
    due_callbacks,
    leased_among,
    orphaned_tasks,
    ready_executions,
    running_of_deleted_flows,
    tasks_of_node,
)
from flowserver.store.executions.saving import release_tasks
from flowserver.store.executions.sub_flows import ownerless_sub_flows

FOUND_PER_SWEEP = 1_000
RELEASED_AT_ONCE = 1_000

FoundTasks = Found[ScopeRef, TaskKey, DueCallback]


class TaskRecovery:
    """Recovers the calls of steps, and the other work that executions wait for. A `Recoverable`."""

    def __init__(self, context: EngineContext, dispatcher: Dispatcher, callbacks: Callbacks) -> None:
        self._database = context.database
        self._committer = context.committer
        self._lease = context.lease
        self._membership = context.membership
        self._dispatcher = dispatcher
        self._callbacks = callbacks
        self._page: TaskPlace = FIRST_TASK
        self._callbacks_to_skip = 0
        self._dropped_before: frozenset[TaskKey] = frozenset()

    @property
    def under_way(self) -> list[TaskKey]:
        """Calls that the dispatcher makes, or holds as they were ordered."""
        return self._dispatcher.held

    def find(self, under_way: Collection[TaskKey]) -> FoundTasks:
        """Read a page of this node's calls, and what else is due, in one transaction."""
        node_id = self._lease.node_id
        with self._database.read() as connection:
            held, following = tasks_of_node(connection, node_id, HELD_PER_SWEEP, self._page)
            unseen = set(under_way).difference(map(_key, held))
            found = FoundTasks(
                held=held,
                is_last_page=following is None,
                orphans=orphaned_tasks(connection, FOUND_PER_SWEEP),
                dropped=unseen - leased_among(connection, node_id, unseen),
                unwanted=running_of_deleted_flows(connection, FOUND_PER_SWEEP),
                ownerless=ownerless_sub_flows(connection, FOUND_PER_SWEEP),
                untold=due_callbacks(connection, FOUND_PER_SWEEP, skip=self._callbacks_to_skip),
                ready=ready_executions(connection, FOUND_PER_SWEEP),
            )
        self._page = following or FIRST_TASK
        # Callbacks that a parked execution cannot take stay due, and must not hide those that come after them.
        is_full = len(found.untold) == FOUND_PER_SWEEP
        self._callbacks_to_skip = self._callbacks_to_skip + FOUND_PER_SWEEP if is_full else 0
        return found

    def is_local(self, call: ScopeRef) -> bool:
        """Whether the dispatcher has the call, or leaves it to other nodes."""
        return self._dispatcher.needs_no_dispatch(_key(call))

    async def resume(self, found: FoundTasks, lost: list[ScopeRef], scope: SweepScope) -> Resumed:
        """Drop calls that no step waits for, then send messages for the rest."""
        self._drop(found.dropped)
        own = found if scope == "all" else self.own_share(found)
        applied = await self._submit(list(self.messages(own, lost)))
        await all_of(self._callbacks.deliver(due.execution_id, due.token, result_of(due)) for due in own.untold)
        sizes = len(found.orphans), len(found.unwanted), len(found.untold), len(found.ready), len(found.ownerless)
        return Resumed(
            calls=applied[RetryLostCall],
            executions=applied[Continue],
            callbacks=len(own.untold),
            had_orphans=bool(own.orphans),
            left_orphans=scope == "own share" and len(own.orphans) < len(found.orphans),
            is_full=bool(applied) and max(sizes) == FOUND_PER_SWEEP,
        )

    def _drop(self, unneeded: Collection[TaskKey]) -> None:
        """Drop calls that no step waits for: those under way only if the sweep before found them, too.

        A report to another node may have ended the wait, whose notice is on its way: then the call may go on. If that
        notice is lost, the call is dropped all the same.
        """
        for key in unneeded:
            if key in self._dropped_before or not self._dispatcher.has_begun(key):
                self._dispatcher.cancel(key)
        self._dropped_before = frozenset(unneeded)

    def own_share(self, found: FoundTasks) -> FoundTasks:
        """This node's share of it: nodes that sweep at the same time divide the work."""
        owns = self._membership.share.owns
        return replace(
            found,
            orphans=[ref for ref in found.orphans if owns(ref.execution_id)],
            unwanted=list(filter(owns, found.unwanted)),
            ownerless=list(filter(owns, found.ownerless)),
            untold=[due for due in found.untold if owns(due.execution_id)],
            ready=list(filter(owns, found.ready)),
        )

    def messages(self, found: FoundTasks, lost: list[ScopeRef]) -> Iterator[Envelope]:
        """The messages for executions, except callbacks."""
        for ref in (*found.orphans, *lost):
            yield Envelope(ref.execution_id, RetryLostCall(ref.scope_id, ref.wait_id, ref.attempt))
        for execution_id in found.ready:
            yield Envelope(execution_id, Continue())
        for execution_id in found.unwanted:
            yield Envelope(execution_id, Stop("FnF.FlowDeleted", "the flow was deleted"))
        yield from map(stop_of_ownerless, found.ownerless)

    async def _submit(self, envelopes: list[Envelope]) -> Counter[type]:
        """Submit all; returns how many had an effect, by type of message."""
        receipts = await all_of(self._committer.submit(envelope) for envelope in envelopes)
        return Counter(
            type(envelope.message)
            for envelope, receipt in zip(envelopes, receipts, strict=True)
            if receipt is not None and receipt.kind is ReceiptKind.APPLIED
        )

    async def release(self, keeps: Callable[[str], bool], limit: int) -> int:
        """Release calls that wait here and fall to other nodes."""
        calls = self._dispatcher.release_waiting(keeps, limit)
        if calls:
            await self._committer.write(lambda connection: release_tasks(connection, calls, self._lease.node_id))
        return len(calls)

    async def release_all(self) -> None:
        """Release the calls that have not begun, some in each commit: this node leaves, so no more are leased to it."""
        after: TaskPlace | None = FIRST_TASK
        while after is not None:
            after = await self._committer.write(partial(self._release_page, after=after))
            self._membership.announce().sweep = True

    def _release_page(self, connection: Connection, after: TaskPlace) -> TaskPlace | None:
        node_id = self._lease.node_id
        held, following = tasks_of_node(connection, node_id, RELEASED_AT_ONCE, after)
        keys = [key for key in map(_key, held) if not self._dispatcher.has_begun(key)]
        release_tasks(connection, keys, node_id)
        return following


def stop_of_ownerless(execution_id: str) -> Envelope:
    """The message that stops a sub-flow for which no step waits."""
    return Envelope(execution_id, NOT_AWAITED, if_ownerless=True)


def _key(ref: ScopeRef) -> TaskKey:
    return ref.execution_id, ref.scope_id, ref.wait_id


def result_of(due: DueCallback) -> Result:
    """The message to the waiting task about the end of its sub-flow."""
    try:
        output = None if due.output is None else load_json_object(due.output)
    except InvalidJson as error:  # a damaged row must not keep the waiting task from ending
        return Failure("FnF.RuntimeError", f"the output of execution {due.execution_id} cannot be read: {error}")
    return result_of_end(due.status, output, due.error, due.cause)
