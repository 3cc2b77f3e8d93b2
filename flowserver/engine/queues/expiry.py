"""Deletes expired messages of queues. Receives skip them anyway; deleting them only frees space.

A loop of small transactions through the committer. A node skips messages that another node is deleting.
"""

import asyncio
from collections.abc import Awaitable, Callable

from flowserver.engine.background_loop import PeriodicLoop
from flowserver.engine.context import EngineContext
from flowserver.store.queues.messages import any_expired, delete_expired

ROUND_SECONDS = 30.0
DELETED_AT_ONCE = 300
"""Messages in one transaction, which other commits wait for."""


class MessageExpiry(PeriodicLoop):
    """The deletions of one node."""

    name = "deleting expired messages"
    interval_seconds = ROUND_SECONDS

    def __init__(self, context: EngineContext, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        super().__init__(sleep)
        self._committer = context.committer
        self._reader = context.reader
        self._watch = context.clock_watch

    async def run_once(self) -> int:
        """Delete the messages that have expired by now; returns how many this node deleted."""
        now = self._watch.deletion_now()
        if now is None:
            return 0
        count = 0
        # Read first: on PostgreSQL even a transaction that finds nothing to delete waits for the disk.
        while await self._reader.ask(lambda connection: any_expired(connection, now)):
            gone = await self._committer.write(lambda connection: delete_expired(connection, now, DELETED_AT_ONCE))
            count += gone
            if gone < DELETED_AT_ONCE:
                break
        return count
