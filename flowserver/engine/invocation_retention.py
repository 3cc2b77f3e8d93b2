"""Deletes asynchronous invocations some days after their end, a few at a time and beside all other work."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial

from sqlalchemy.exc import SQLAlchemyError

from flowserver.base.clock import Clock
from flowserver.engine.committer import Committer
from flowserver.store.errors import reason_of
from flowserver.store.invocation_leases import delete_ended_invocations

log = logging.getLogger(__name__)

ROUND_SECONDS = 60.0
DAY_MS = 86_400_000
DELETED_AT_ONCE = 200


class InvocationRetention:
    """One node's part in that; several may do it at once."""

    def __init__(
        self, committer: Committer, clock: Clock, days: int, rest: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        """Ended invocations are kept for so many days; `rest` waits for so many seconds."""
        self._committer = committer
        self._clock = clock
        self._days = days
        self._rest = rest
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin; the first round is after a while."""
        self._task = asyncio.create_task(self._run(), name="retention of invocations")

    async def stop(self) -> None:
        """Stop, between two deletions or after one that is on its way."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        while True:
            await self._rest(ROUND_SECONDS)
            try:
                await self.round()
            except SQLAlchemyError as error:
                log.warning("old invocations are deleted later: %s", reason_of(error))
            except Exception:
                log.exception("the retention of invocations failed and goes on")

    async def round(self) -> int:
        """Delete all that have been kept for long enough; returns how many."""
        before = self._clock.now_ms() - self._days * DAY_MS
        deletion = partial(delete_ended_invocations, before_ms=before, limit=DELETED_AT_ONCE)
        count = 0
        while deleted := await self._committer.write(deletion):
            count += deleted
        return count
