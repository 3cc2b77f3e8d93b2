"""Fires the waits of scopes and the deadlines of executions when they are due.

Every node reads all rows that are due. It fires its own share at once, and the rows that other nodes have left if
nothing of its share is due. Two nodes may fire the same wait: the second message finds the wait over and has no effect.
"""

from collections.abc import Callable, Iterator

from sqlalchemy import Connection

from flowserver.engine.commit.batch_items import Envelope, Receipt, ReceiptKind
from flowserver.engine.commit.committer import all_of
from flowserver.engine.context import EngineContext
from flowserver.engine.due_loop import AT_ONCE, LEFT_MS, DueLoop
from flowserver.machine.messages import DeadlineReached, TimerFired
from flowserver.store.executions.due import due_deadlines, due_timers, next_due

FIRED_AT_ONCE = 500
"""Waits, and deadlines, in one iteration."""


class StepTimers(DueLoop):
    """The source of due waits and deadlines, found by the partial indexes of their instants."""

    name = "timers"

    def __init__(self, context: EngineContext, on_fired: Callable[[float], None]) -> None:
        """`on_fired` is called for each wait or deadline that fired, with its lateness in seconds."""
        super().__init__(context.clock, context.membership)
        self._database = context.database
        self._committer = context.committer
        self._on_fired = on_fired

    async def handle_due(self) -> int | None:
        """Submit a message for each due row. Look again at once only if a message had an effect."""
        due, next_at = await self._aside(self._look)
        receipts = await all_of(self._committer.submit(envelope) for envelope, _ in due)
        fired = [at for (_, at), receipt in zip(due, receipts, strict=True) if _has_fired(receipt)]
        for at in fired:
            self._on_fired(max(self._clock.now_ms() - at, 0) / 1000)
        if fired:
            return AT_ONCE
        if due:
            self.notice(self.left_at)
        return next_at

    def _look(self) -> tuple[list[tuple[Envelope, int]], int | None]:
        """The messages to submit now, with their instants, and when to look again."""
        now = self._clock.now_ms()
        with self._database.read() as connection:
            due = list(self._due(connection, now))
            next_at = next_due(connection, now)
        owns = self._membership.share.owns
        mine = [(envelope, at) for envelope, at in due if owns(envelope.execution_id)]
        if len(mine) < len(due):
            next_at = min(now + LEFT_MS, next_at or now + LEFT_MS)
        return mine or [(envelope, at) for envelope, at in due if at <= now - LEFT_MS], next_at

    def _due(self, connection: Connection, now: int) -> Iterator[tuple[Envelope, int]]:
        """The due rows of all nodes, with their instants: enough that this node's share fills an iteration."""
        limit = FIRED_AT_ONCE * self._membership.share.nodes
        for timer in due_timers(connection, now, limit):
            yield Envelope(timer.execution_id, TimerFired(timer.scope_id, timer.wait_id)), timer.wake_at
        for deadline in due_deadlines(connection, now, limit):
            yield Envelope(deadline.execution_id, DeadlineReached()), deadline.deadline_at


def _has_fired(receipt: Receipt | None) -> bool:
    return receipt is not None and receipt.kind is ReceiptKind.APPLIED
