"""Deletes messages of queues that nobody has received in their time. They are not seen in any case; this frees space.

A loop of small changes through the committer. Nodes leave to each other what one is just deleting.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from flowserver.engine.background_loop import PeriodicLoop
from flowserver.engine.context import EngineContext
from flowserver.store.queues.messages import any_expired, delete_expired

log = logging.getLogger(__name__)

ROUND_SECONDS = 30.0
DELETED_AT_ONCE = 300
"""Messages in one change: what everybody else's commits wait for."""


class Expiry(PeriodicLoop):
    """One node's part in it. `sleep` waits for so many seconds."""

    name = "deleting expired messages"
    interval_seconds = ROUND_SECONDS

    def __init__(self, context: EngineContext, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        super().__init__(sleep)
        self._committer = context.committer
        self._reader = context.reader
        self._clock = context.clock

    async def run_once(self) -> int:
        """Delete all that have expired by now; returns how many this node has deleted."""
        now = self._clock.now_ms()
        count = 0
        # A look first: on PostgreSQL even a transaction that finds nothing to delete waits for the disk.
        while await self._reader.ask(lambda connection: any_expired(connection, now)):
            gone = await self._committer.write(lambda connection: delete_expired(connection, now, DELETED_AT_ONCE))
            count += gone
            if gone < DELETED_AT_ONCE:
                break
        return count
