"""Fires what is due: waits of scopes, deadlines of executions. Sleeps until the next one or an earlier is noticed.

Every node sees everything that is due. Each fires its own share at once, and what others have left when it has none.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator

from sqlalchemy import Connection

from flowserver.base.clock import Clock
from flowserver.engine.background import BackgroundLoop
from flowserver.engine.cluster.membership import Membership
from flowserver.engine.commit.batch import Envelope, Receipt, ReceiptKind
from flowserver.engine.commit.committer import Committer, all_of
from flowserver.machine.messages import DeadlineReached, TimerFired
from flowserver.store.executions.due import due_deadlines, due_timers, next_due
from flowserver.store.sql.database import Database

log = logging.getLogger(__name__)

DUE_PER_ROUND = 500

LEFT_AFTER_MS = 1_000
"""By then the node whose share it is should have fired it."""

LOOK_AGAIN_SECONDS = 5.0
"""Longest sleep: a safety net for timers that another node set and for clocks that are stepped."""


class Timekeeper(BackgroundLoop):
    """A loop over the partial indexes of due times."""

    name = "the timekeeper"

    def __init__(
        self,
        database: Database,
        committer: Committer,
        clock: Clock,
        membership: Membership,
        woke: Callable[[float], None],
    ) -> None:
        """`woke` is told how late (seconds) each wait was over."""
        self._database = database
        self._committer = committer
        self._clock = clock
        self._membership = membership
        self._woke = woke
        self._wake = asyncio.Event()
        self._next_due: int | None = None

    def notice(self, wake_at: int) -> None:
        """Something is due at that instant (ms)."""
        if self._next_due is None or wake_at < self._next_due:
            self._next_due = wake_at
            self._wake.set()

    async def _iterate(self) -> None:
        self._wake.clear()
        self._next_due = None
        due, due_at = await self._aside(self._look)
        receipts = await all_of(self._committer.submit(envelope) for envelope, _ in due)
        fired = [at for (_, at), receipt in zip(due, receipts, strict=True) if _has_fired(receipt)]
        for at in fired:
            self._woke(max(self._clock.now_ms() - at, 0) / 1000)
        if fired:
            return  # there may be more that is due
        if due:  # another node was faster, or the database is away
            self.notice(self._clock.now_ms() + LEFT_AFTER_MS)
        if due_at is not None:
            self.notice(due_at)
        await self._sleep()

    def _look(self) -> tuple[list[tuple[Envelope, int]], int | None]:
        """What to fire now with its instant, and when to look again at the latest."""
        now = self._clock.now_ms()
        with self._database.read() as connection:
            due = list(self._due(connection, now))
            due_at = next_due(connection, now)
        owns = self._membership.share.owns
        mine = [(envelope, at) for envelope, at in due if owns(envelope.execution_id)]
        if len(mine) < len(due):
            due_at = now + LEFT_AFTER_MS if due_at is None else min(due_at, now + LEFT_AFTER_MS)
        return mine or [(envelope, at) for envelope, at in due if at <= now - LEFT_AFTER_MS], due_at

    def _due(self, connection: Connection, now: int) -> Iterator[tuple[Envelope, int]]:
        """What is due with its instant, whosever it is; as much as leaves a full round of our own."""
        limit = DUE_PER_ROUND * self._membership.share.nodes
        for timer in due_timers(connection, now, limit):
            yield Envelope(timer.execution_id, TimerFired(timer.scope_id, timer.wait_id)), timer.wake_at
        for deadline in due_deadlines(connection, now, limit):
            yield Envelope(deadline.execution_id, DeadlineReached()), deadline.deadline_at

    async def _sleep(self) -> None:
        seconds = LOOK_AGAIN_SECONDS
        if self._next_due is not None:
            seconds = min(seconds, max(self._next_due - self._clock.now_ms(), 0) / 1000)
        self._wake.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            pass


def _has_fired(receipt: Receipt | None) -> bool:
    """Only then it is worth looking again at once: what cannot be fired would be found again and again."""
    return receipt is not None and receipt.kind is ReceiptKind.APPLIED
