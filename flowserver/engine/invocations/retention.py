"""Deletes asynchronous invocations some days after their end, in small transactions.

One invocation may hold more than a megabyte, so the bytes of one transaction have a limit as well.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from sqlalchemy import Connection

from flowserver.base.clock import DAY_MS
from flowserver.engine.background_loop import PeriodicLoop
from flowserver.engine.context import EngineContext
from flowserver.engine.deletion_pace import ROW_BYTES, DeletionPace
from flowserver.store.invocations.retention import delete_ended_invocations

ROUND_SECONDS = 60.0


class InvocationRetention(PeriodicLoop):
    """The deletions of one node; several nodes may delete at once."""

    name = "the retention of invocations"
    interval_seconds = ROUND_SECONDS

    def __init__(self, context: EngineContext, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        super().__init__(sleep)
        self._pace = DeletionPace(context.committer, self._sleep)
        self._watch = context.clock_watch
        self._days = context.limits.invocation_days

    async def run_once(self) -> int:
        """Delete all invocations that have been kept for long enough; returns how many."""
        now = self._watch.deletion_now()
        if now is None:
            return 0
        before, count = now - self._days * DAY_MS, 0
        while deleted := await self._pace.change(self._deletion(before)):
            count += deleted
        return count

    def _deletion(self, before_ms: int) -> Callable[[Connection], int]:
        rows = self._pace.rows
        return partial(delete_ended_invocations, before_ms=before_ms, limit=rows, bytes_max=rows * ROW_BYTES)
