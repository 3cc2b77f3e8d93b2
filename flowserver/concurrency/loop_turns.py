"""Turns on the event loop: of what gives way there, one goes on in each round of the loop.

A task that only lets others run (`asyncio.sleep(0)`) is back in the next round. So are a hundred such tasks, and
then each round lasts as long as a hundred pieces of their work: everything else on the loop waits for that.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from weakref import WeakKeyDictionary

Turn = Callable[[], object]


class LoopTurns:
    """First come, first served. Each event loop has turns of its own."""

    def __init__(self, pause_seconds: Callable[[], float]) -> None:
        """`pause_seconds` is asked before each turn; 0 for none."""
        self._pause_seconds = pause_seconds
        self._waiting: WeakKeyDictionary[asyncio.AbstractEventLoop, deque[Turn]] = WeakKeyDictionary()

    def call(self, turn: Turn) -> None:
        """Have it called in a later round of the present loop."""
        loop = asyncio.get_running_loop()
        waiting = self._waiting.setdefault(loop, deque())
        waiting.append(turn)
        if len(waiting) == 1:
            self._plan(loop, waiting)

    async def take(self) -> None:
        """Wait for the turn of the present task."""
        come = asyncio.Event()
        self.call(come.set)
        await come.wait()

    def _plan(self, loop: asyncio.AbstractEventLoop, waiting: deque[Turn]) -> None:
        pause_seconds = self._pause_seconds()
        if pause_seconds:
            loop.call_later(pause_seconds, self._give, loop, waiting)
        else:
            loop.call_soon(self._give, loop, waiting)

    def _give(self, loop: asyncio.AbstractEventLoop, waiting: deque[Turn]) -> None:
        turn = waiting.popleft()
        if waiting:
            self._plan(loop, waiting)
        turn()
