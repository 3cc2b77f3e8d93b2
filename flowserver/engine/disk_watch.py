"""Measures the disk without requests, too, so that the log soon says when new work is refused, and when no more."""

import asyncio
from collections.abc import Awaitable, Callable

from flowserver.engine.background_loop import PeriodicLoop
from flowserver.engine.context import EngineContext

ROUND_SECONDS = 5.0


class DiskWatch(PeriodicLoop):
    """The measurements of one node."""

    name = "measuring the disk"
    interval_seconds = ROUND_SECONDS

    def __init__(self, context: EngineContext, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        super().__init__(sleep)
        self._disk = context.disk

    async def run_once(self) -> int:
        """Measure; returns 0."""
        self._disk.refusal()
        return 0
