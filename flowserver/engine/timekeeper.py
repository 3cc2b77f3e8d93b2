"""Fires what is due: waits of scopes, deadlines of executions. Sleeps until the next one or an earlier is noticed."""

import asyncio
import logging

from sqlalchemy import Connection

from flowserver.base.clock import Clock
from flowserver.engine.batches import Envelope, ReceiptKind
from flowserver.engine.committer import Committer
from flowserver.machine.messages import DeadlineReached, TimerFired
from flowserver.store.database import Database
from flowserver.store.wakeups import due_deadlines, due_timers, next_due

log = logging.getLogger(__name__)

DUE_PER_ROUND = 500

CANNOT_FIRE = (ReceiptKind.PARKED, ReceiptKind.UNKNOWN)
"""What is due for such an execution is left until the next look, or the loop would never rest."""

LOOK_AGAIN_SECONDS = 5.0
"""Longest sleep: a safety net for timers that another node set and for clocks that are stepped."""


class Timekeeper:
    """A loop over the partial indexes of due times."""

    def __init__(self, database: Database, committer: Committer, clock: Clock) -> None:
        self._database = database
        self._committer = committer
        self._clock = clock
        self._wake = asyncio.Event()
        self._next_due: int | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to fire."""
        self._task = asyncio.create_task(self._run(), name="timekeeper")

    async def stop(self) -> None:
        """Stop firing; what is due stays due."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def notice(self, wake_at: int) -> None:
        """Something is due at that instant (ms)."""
        if self._next_due is None or wake_at < self._next_due:
            self._next_due = wake_at
            self._wake.set()

    async def _run(self) -> None:
        while True:
            try:
                await self._round()
            except asyncio.CancelledError:
                raise
            except Exception:
                log.exception("the timekeeper failed and goes on")
                await asyncio.sleep(1)

    async def _round(self) -> None:
        self._wake.clear()
        self._next_due = None
        envelopes, due_at = await asyncio.to_thread(self._look)
        receipts = await asyncio.gather(*(self._committer.submit(envelope) for envelope in envelopes))
        if any(receipt.kind not in CANNOT_FIRE for receipt in receipts):
            return  # there may be more that is due
        if due_at is not None:
            self.notice(due_at)
        await self._sleep()

    def _look(self) -> tuple[list[Envelope], int | None]:
        with self._database.read() as connection:
            envelopes = self._due(connection)
            return envelopes, next_due(connection, self._clock.now_ms())

    def _due(self, connection: Connection) -> list[Envelope]:
        now = self._clock.now_ms()
        timers = [
            Envelope(ref.execution_id, TimerFired(ref.scope_id, ref.wait_id))
            for ref in due_timers(connection, now, DUE_PER_ROUND)
        ]
        deadlines = due_deadlines(connection, now, DUE_PER_ROUND)
        return timers + [Envelope(execution_id, DeadlineReached()) for execution_id in deadlines]

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
