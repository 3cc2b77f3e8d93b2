"""The safety net: finds, by the rows alone, work that should continue and does not, and starts it.

After a crash it resumes everything. Later it finds nothing, unless a node died, a call was lost, a callback was not
delivered, a scope stayed ready, or a flow was deleted.

Several nodes may find the same loss. A report of a lost call therefore names the attempt that was lost, and only the
first report has an effect. A call may be between its commit and its dispatch: it is lost only if the next sweep misses
it too.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from sqlalchemy import Connection

from flowserver.base.clock import Clock
from flowserver.base.json_values import InvalidJson, load_json_object
from flowserver.engine.background import BackgroundLoop
from flowserver.engine.callbacks import Callbacks
from flowserver.engine.cluster.lease import Lease
from flowserver.engine.cluster.membership import Membership
from flowserver.engine.commit.batch import Envelope, ReceiptKind
from flowserver.engine.commit.committer import Committer, all_of
from flowserver.engine.executions.dispatcher import Dispatcher
from flowserver.engine.executions.rebalancing import SHARED_PER_ROUND, Backlog
from flowserver.engine.invocations.recovery import InvocationSweep
from flowserver.machine.messages import Continue, Failure, Result, RetryLostCall, Stop
from flowserver.machine.results import result_of_end
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
from flowserver.store.keys import forget_nonces
from flowserver.store.sql.database import Database

log = logging.getLogger(__name__)

SWEEP_SECONDS = 5.0
LEFT_SECONDS = 0.6
"""When to look after calls of the dead that fall to another node: it may have died as well, and nobody knows yet."""

FOUND_PER_SWEEP = 1_000
LOOKED_AT_ONCE = 5_000
"""Of the calls leased to this node; which ones goes round."""


@dataclass(frozen=True, slots=True)
class Found:
    """What one look at the database found."""

    orphans: list[ScopeRef]
    """Calls leased to nobody that is there."""
    own: list[ScopeRef]
    """Calls leased to this node, under way or lost."""
    dropped: set[TaskKey]
    """Calls held here that no step waits for: another node has ended their wait, and its notice was lost."""
    ready: list[str]
    callbacks: list[DueCallback]
    of_deleted_flows: list[str]

    @property
    def is_full(self) -> bool:
        """Whether there may be more than was looked for."""
        sizes = (len(self.orphans), len(self.ready), len(self.callbacks), len(self.of_deleted_flows))
        return max(sizes) == FOUND_PER_SWEEP

    def only(self, membership: Membership) -> "Found":
        """What of it falls to this node, so that several that sweep at once divide the work."""
        owns = membership.share.owns
        return Found(
            orphans=[ref for ref in self.orphans if owns(ref.execution_id)],
            own=self.own,
            dropped=self.dropped,
            ready=[execution_id for execution_id in self.ready if owns(execution_id)],
            callbacks=[due for due in self.callbacks if owns(due.execution_id)],
            of_deleted_flows=[execution_id for execution_id in self.of_deleted_flows if owns(execution_id)],
        )


class Sweeper(BackgroundLoop):
    """Sweeps at start, every few seconds, and as soon as there is a reason to."""

    name = "the sweeper"

    def __init__(
        self,
        database: Database,
        committer: Committer,
        dispatcher: Dispatcher,
        callbacks: Callbacks,
        clock: Clock,
        lease: Lease,
        membership: Membership,
        backlog: Backlog,
        invocations: InvocationSweep,
    ) -> None:
        self._database = database
        self._committer = committer
        self._dispatcher = dispatcher
        self._callbacks = callbacks
        self._clock = clock
        self._lease = lease
        self._membership = membership
        self._backlog = backlog
        self._invocations = invocations
        self._suspects: set[ScopeRef] = set()
        """Missed when all were looked at last."""
        self._missed: set[ScopeRef] = set()
        """The like, this time."""
        self._looked_to: TaskPlace | None = None
        """Where the next look at this node's calls begins; None where all have been looked at."""
        self._callbacks_to_skip = 0
        self._has_swept = False
        self._has_left_some = False
        self._sweep_now = asyncio.Event()

    def start(self) -> None:
        """Begin to sweep, at once."""
        self._sweep_now.set()
        super().start()

    def close(self) -> None:
        """End the thread of its part that looks after invocations; no sweep may follow."""
        self._invocations.close()

    def sweep_soon(self) -> None:
        """Something was left to the sweeper: do not wait for the next round."""
        self._sweep_now.set()

    async def _iterate(self) -> None:
        """Called for, all nodes sweep at once and each takes its share; now and then, one that is left takes all."""
        called = True
        try:
            async with asyncio.timeout(LEFT_SECONDS if self._has_left_some else SWEEP_SECONDS):
                await self._sweep_now.wait()
        except TimeoutError:
            called = False
        self._sweep_now.clear()
        await self.sweep(only_own_share=called)

    async def sweep(self, *, only_own_share: bool = False) -> None:
        """Look once and set going whatever was found; first let go what others are to do."""
        released = await self._backlog.share_out()
        found = await self._aside(partial(self._look, self._dispatcher.held))
        for key in found.dropped:
            self._dispatcher.cancel(key)
        is_full, orphans = found.is_full, len(found.orphans)
        if only_own_share or released:  # what was just released has no node yet, and is meant for another
            found = found.only(self._membership)
        self._has_left_some = len(found.orphans) < orphans and not released
        applied = await self._tell(list(self._envelopes(found)))
        await all_of(self._callbacks.deliver(due.execution_id, due.token, _result(due)) for due in found.callbacks)
        await self._committer.write(self._tidy)
        invocations, again = await self._invocations.sweep()
        if not self._has_swept or found.orphans or invocations:  # at start, and when another node is gone
            _log_resumed(applied[RetryLostCall] + invocations, applied[Continue], len(found.callbacks))
        self._has_swept = True
        if (is_full and applied) or again or released == SHARED_PER_ROUND:
            self._sweep_now.set()  # there may be more

    async def _tell(self, envelopes: list[Envelope]) -> Counter[type]:
        """Submit them all; returns by type of message how many had an effect."""
        receipts = await all_of(self._committer.submit(envelope) for envelope in envelopes)
        return Counter(
            type(envelope.message)
            for envelope, receipt in zip(envelopes, receipts, strict=True)
            if receipt is not None and receipt.kind is ReceiptKind.APPLIED
        )

    def _envelopes(self, found: Found) -> Iterator[Envelope]:
        lost = {ref for ref in found.own if not self._dispatcher.is_calling(_key(ref))}
        for ref in [*found.orphans, *(lost & self._suspects)]:
            yield Envelope(ref.execution_id, RetryLostCall(ref.scope_id, ref.wait_id, ref.attempt))
        # A call may be between its commit and its dispatch: it is lost only if the next look at it misses it too.
        self._missed |= lost
        if self._looked_to is None:
            self._suspects, self._missed = self._missed, set()
        for execution_id in found.ready:
            yield Envelope(execution_id, Continue())
        for execution_id in found.of_deleted_flows:
            yield Envelope(execution_id, Stop("FnF.FlowDeleted", "the flow was deleted"))

    def _look(self, held: list[TaskKey]) -> Found:
        """What the rows say. Calls are `held` after their commit, so no step waits for one without a row."""
        node_id = self._lease.node_id
        with self._database.read() as connection:
            own, following = tasks_of_node(connection, node_id, LOOKED_AT_ONCE, self._looked_to or FIRST_TASK)
            unseen = set(held).difference(map(_key, own))
            found = Found(
                orphans=orphaned_tasks(connection, FOUND_PER_SWEEP),
                own=own,
                dropped=unseen - leased_among(connection, node_id, unseen),
                ready=ready_executions(connection, FOUND_PER_SWEEP),
                callbacks=due_callbacks(connection, FOUND_PER_SWEEP, skip=self._callbacks_to_skip),
                of_deleted_flows=running_of_deleted_flows(connection, FOUND_PER_SWEEP),
            )
        self._looked_to = following
        # Callbacks that a parked execution cannot take stay due, and must not hide those that come after them.
        is_full = len(found.callbacks) == FOUND_PER_SWEEP
        self._callbacks_to_skip = self._callbacks_to_skip + FOUND_PER_SWEEP if is_full else 0
        return found

    def _tidy(self, connection: Connection) -> None:
        """Housekeeping."""
        forget_nonces(connection, self._clock.now_ms())


def _log_resumed(calls: int, continued: int, callbacks: int) -> None:
    if calls or continued or callbacks:
        log.info("taken up: calls %d, executions %d, callbacks of sub-flows %d", calls, continued, callbacks)


def _key(ref: ScopeRef) -> tuple[str, int, int]:
    return ref.execution_id, ref.scope_id, ref.wait_id


def _result(due: DueCallback) -> Result:
    try:
        output = None if due.output is None else load_json_object(due.output)
    except InvalidJson as error:  # a damaged row; the task that waits for it must end all the same
        return Failure("FnF.RuntimeError", f"the output of execution {due.execution_id} cannot be read: {error}")
    return result_of_end(due.status, output, due.error, due.cause)
