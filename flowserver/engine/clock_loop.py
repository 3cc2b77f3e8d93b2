"""Looks at the clock, so that the log soon says that it was set, and computes schedules anew after that."""

import asyncio
from collections.abc import Awaitable, Callable

from flowserver.engine.background_loop import PeriodicLoop
from flowserver.engine.context import EngineContext

ROUND_SECONDS = 2.0


class ClockLoop(PeriodicLoop):
    """The looks of one node at its own clock."""

    name = "looking at the clock"
    interval_seconds = ROUND_SECONDS

    def __init__(
        self,
        context: EngineContext,
        on_set: Callable[[], Awaitable[int]],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`on_set` is called at the start, and when the clock was set; it returns how many schedules it changed."""
        super().__init__(sleep)
        self._watch = context.clock_watch
        self._on_set = on_set
        self._steps = -1

    async def run_once(self) -> int:
        """Look; returns how many schedules were computed anew."""
        self._watch.look()
        steps = self._watch.steps
        if steps == self._steps:
            return 0
        count = await self._on_set()
        self._steps = steps
        return count
