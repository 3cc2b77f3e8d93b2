"""The loop for rows that are due at an instant: timers of steps, retries of invocations, deliveries, and schedules.

The row is its own reason to wake up: it holds the instant, and an index finds the first one. A loop remembers only the
earliest instant it was given, to sleep no longer than that. It reads the rows again after `LOOK_AGAIN_SECONDS` at the
latest, so a notice that was lost, a crash or a stepped clock delays a row and loses none. Two rules keep it in time:

- Notice an instant after the commit of its row. The loop forgets the instant before it reads; it would read too early.
- An instant noticed during an iteration counts for the next one, because this one may have read before that commit.

Every node sees all rows, so a source claims a row before it works on it, in one of two ways. A long call takes the
node's lease and keeps it as long as the node lives. Short work moves the row's instant on in a commit: the row is due
again if the node dies. Step timers need no claim: their message names the wait that it ends, and has no effect twice.
So a source has one method and not a read and a claim: how it finds rows, and which of them are this node's, differs.

To add a source, write a subclass, name it under `due` in `engine/parts.py`, and call `note_due` after each commit that
sets an instant.
"""

import asyncio
from abc import abstractmethod
from typing import Final

from flowserver.base.clock import Clock
from flowserver.concurrency.waiting import Signal
from flowserver.engine.background_loop import BackgroundLoop
from flowserver.engine.cluster.membership import Membership

AT_ONCE: Final = 0
"""An instant that has passed."""

LOOK_AGAIN_SECONDS = 5.0
"""Longest sleep."""

LEFT_MS = 1_000
"""When to look again at rows that are due and were not handled: another node works on them, or they are damaged."""


class DueLoop(BackgroundLoop):
    """Runs one source of due rows: a subclass with a `name`, which notices to other nodes carry, and `handle_due`."""

    def __init__(self, clock: Clock, membership: Membership) -> None:
        self._clock = clock
        self._membership = membership
        self._wake = Signal()
        self._next_at: int | None = None

    @abstractmethod
    async def handle_due(self) -> int | None:
        """Handle rows that are due now. Returns the instant (ms) to look again at, None if no row is due later.

        That is AT_ONCE if rows were handled, for there may be more, and `left_at` if rows are due that were not.
        """

    def note_due(self, instant_ms: int = AT_ONCE) -> None:
        """This node has committed a row that is due at that instant (ms): look then, and have the other nodes look."""
        self.notice(instant_ms)
        if not self._membership.is_alone:
            self._membership.announce().note_due(self.name, instant_ms)

    def notice(self, instant_ms: int = AT_ONCE) -> None:
        """Look at that instant (ms) at the latest."""
        if self._next_at is None or instant_ms < self._next_at:
            self._next_at = instant_ms
            self._wake.set()

    @property
    def left_at(self) -> int:
        """When to look again at rows that are due and were not handled."""
        return self._clock.now_ms() + LEFT_MS

    async def _iterate(self) -> None:
        self._next_at = None
        next_at = await self.handle_due()
        if next_at is not None:
            self.notice(next_at)
        await self._sleep()

    async def _sleep(self) -> None:
        """Return at the noticed instant; an earlier instant noticed meanwhile shortens the sleep."""
        until = asyncio.get_running_loop().time() + LOOK_AGAIN_SECONDS
        while True:
            seconds = until - asyncio.get_running_loop().time()
            if self._next_at is not None:
                seconds = min(seconds, (self._next_at - self._clock.now_ms()) / 1000)
            if seconds <= 0:
                return
            self._wake.clear()
            if not await self._wake.is_set_within(seconds):
                return
