"""Measures the space without requests, too, so that the log soon says when new work is refused, and when no more."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from flowserver.engine.background_loop import PeriodicLoop
from flowserver.engine.context import EngineContext
from flowserver.store.integrity.file_space import used_bytes

ROUND_SECONDS = 5.0


class DiskWatch(PeriodicLoop):
    """The measurements of one node."""

    name = "measuring the disk"
    interval_seconds = ROUND_SECONDS

    def __init__(self, context: EngineContext, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        super().__init__(sleep)
        self._disk = context.disk
        self._database = context.database

    async def run_once(self) -> int:
        """Measure the disk, and the data if it has a bound; returns 0."""
        self._disk.free_bytes()
        if self._disk.data_bytes_max:
            self._disk.note_data(await self._aside(partial(self._database.run_read, used_bytes)))
        return 0
