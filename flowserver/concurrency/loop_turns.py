"""Turns on the event loop: of the tasks that give way, one continues in each round of the loop.

A task that only lets others run (`asyncio.sleep(0)`) is back in the next round. So are a hundred such tasks, and
then each round lasts as long as a hundred pieces of their work: everything else on the loop waits for that.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from weakref import WeakKeyDictionary


class LoopTurns:
    """First come, first served. Each event loop has turns of its own."""

    def __init__(self, pause_seconds: Callable[[], float]) -> None:
        """`pause_seconds` is asked before each turn; 0 for none."""
        self._pause_seconds = pause_seconds
        self._waiting: WeakKeyDictionary[asyncio.AbstractEventLoop, deque[asyncio.Future[None]]] = WeakKeyDictionary()

    async def take(self) -> None:
        """Wait for the turn of the present task, which is in a later round of the loop."""
        loop = asyncio.get_running_loop()
        waiting = self._waiting.setdefault(loop, deque())
        turn = loop.create_future()
        waiting.append(turn)
        if len(waiting) == 1:
            self._plan(loop, waiting)
        await turn

    def _plan(self, loop: asyncio.AbstractEventLoop, waiting: deque[asyncio.Future[None]]) -> None:
        pause_seconds = self._pause_seconds()
        if pause_seconds:
            loop.call_later(pause_seconds, self._give, loop, waiting)
        else:
            loop.call_soon(self._give, loop, waiting)

    def _give(self, loop: asyncio.AbstractEventLoop, waiting: deque[asyncio.Future[None]]) -> None:
        turn = waiting.popleft()
        while turn.done() and waiting:  # its task was cancelled
            turn = waiting.popleft()
        if not turn.done():
            turn.set_result(None)
        if waiting:
            self._plan(loop, waiting)
