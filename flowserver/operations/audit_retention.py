"""Deletes old records of the audit, in small transactions."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from flowserver.base.clock import DAY_MS
from flowserver.engine.background_loop import PeriodicLoop
from flowserver.engine.context import EngineContext
from flowserver.engine.deletion_pace import DeletionPace
from flowserver.store.audit import delete_records, first_kept, instant_of

log = logging.getLogger(__name__)

ROUND_SECONDS: Final = 600.0


class AuditRetention(PeriodicLoop):
    """The deletions of one node; several nodes may delete at once."""

    name = "the retention of the audit"
    interval_seconds = ROUND_SECONDS

    def __init__(
        self, context: EngineContext, days: int, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        super().__init__(sleep)
        self._database = context.database
        self._pace = DeletionPace(context.committer, self._sleep)
        self._watch = context.clock_watch
        self._days = days
        self._kept_max = context.limits.audit_records_max

    async def run_once(self) -> int:
        """Delete records older than `days`, and the oldest ones beyond `audit_records_max`; returns how many."""
        now = self._watch.deletion_now()
        if now is None:
            return 0
        old_ms = now - self._days * DAY_MS
        find = partial(first_kept, from_ms=old_ms, kept_max=self._kept_max)
        before = await self._aside(partial(self._database.run_read, find))
        count = 0
        while deleted := await self._pace.change(partial(delete_records, before=before, at_once=self._pace.rows)):
            count += deleted
        if count and instant_of(before) > max(0, old_ms):
            log.warning("deleted records of the audit younger than %d days: there were too many", self._days)
        return count
