"""Goes on with asynchronous invocations when the pause before their next attempt is over.

One that pauses is in nobody's hands. Any node may take it then; who has heard of it is there at once, the others look
now and then.
"""

import asyncio
import logging
from collections.abc import Callable

from sqlalchemy import Connection

from flowserver.base.clock import Clock
from flowserver.engine.background import BackgroundLoop
from flowserver.engine.cluster.lease import Lease
from flowserver.engine.commit.committer import Committer
from flowserver.engine.commit.reader import Reader
from flowserver.store.invocations.leases import HeldInvocation, next_pause_end, take_over_due

log = logging.getLogger(__name__)

TAKEN_AT_ONCE = 200
LOOK_AGAIN_SECONDS = 5.0
"""Longest sleep: a safety net for what another node has left behind and for clocks that are stepped."""


class Pauses(BackgroundLoop):
    """A loop over the ends of pauses; `take_over` is given those that are over."""

    name = "taking up invocations that paused"

    def __init__(
        self,
        reader: Reader,
        committer: Committer,
        clock: Clock,
        lease: Lease,
        take_over: Callable[[list[HeldInvocation]], None],
    ) -> None:
        self._reader = reader
        self._committer = committer
        self._clock = clock
        self._lease = lease
        self._take_over = take_over
        self._wake = asyncio.Event()
        self._next_end: int | None = None

    def notice(self, instant_ms: int) -> None:
        """A pause is over at that instant."""
        if self._next_end is None or instant_ms < self._next_end:
            self._next_end = instant_ms
            self._wake.set()

    async def _iterate(self) -> None:
        self._wake.clear()
        self._next_end = None
        first = await self._reader.ask(next_pause_end)
        if first is not None and first <= self._clock.now_ms():
            taken = await self._committer.write(self._take)
            self._take_over(taken)
            if taken:
                return  # there may be more
        elif first is not None:
            self.notice(first)
        await self._sleep()

    def _take(self, connection: Connection) -> list[HeldInvocation]:
        if self._lease.is_leaving:
            return []
        return take_over_due(connection, self._lease.node_id, self._clock.now_ms(), TAKEN_AT_ONCE)

    async def _sleep(self) -> None:
        seconds = LOOK_AGAIN_SECONDS
        if self._next_end is not None:
            seconds = min(seconds, max(self._next_end - self._clock.now_ms(), 0) / 1000)
        self._wake.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            pass
