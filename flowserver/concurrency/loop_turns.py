"""Turns on the event loop: of what gives way there, one goes on in each round of the loop.

A task that only lets others run (`asyncio.sleep(0)`) is back in the next round. So are a hundred such tasks, and
then each round lasts as long as a hundred pieces of their work: everything else on the loop waits for that.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from weakref import WeakKeyDictionary

Turn = Callable[[], object]

Waiting = deque[Turn | asyncio.Future[None]]
"""The turns to come: what is called, or what a task waits for."""


class LoopTurns:
    """First come, first served. Each event loop has turns of its own."""

    def __init__(self, pause_seconds: Callable[[], float]) -> None:
        """`pause_seconds` is asked before each turn; 0 for none."""
        self._pause_seconds = pause_seconds
        self._waiting: WeakKeyDictionary[asyncio.AbstractEventLoop, Waiting] = WeakKeyDictionary()

    def call(self, turn: Turn) -> None:
        """Have it called in a later round of the present loop."""
        self._append(asyncio.get_running_loop(), turn)

    async def take(self) -> None:
        """Wait for the turn of the present task. A cancelled task takes none."""
        loop = asyncio.get_running_loop()
        come = loop.create_future()
        self._append(loop, come)
        await come

    def _append(self, loop: asyncio.AbstractEventLoop, turn: Turn | asyncio.Future[None]) -> None:
        waiting = self._waiting.setdefault(loop, deque())
        waiting.append(turn)
        if len(waiting) == 1:
            self._plan(loop, waiting)

    def _plan(self, loop: asyncio.AbstractEventLoop, waiting: Waiting) -> None:
        pause_seconds = self._pause_seconds()
        if pause_seconds:
            loop.call_later(pause_seconds, self._give, loop, waiting)
        else:
            loop.call_soon(self._give, loop, waiting)

    def _give(self, loop: asyncio.AbstractEventLoop, waiting: Waiting) -> None:
        turn = waiting.popleft()
        while waiting and _is_given_up(turn):
            turn = waiting.popleft()
        if waiting:
            self._plan(loop, waiting)
        if not isinstance(turn, asyncio.Future):
            turn()
        elif not turn.done():
            turn.set_result(None)


def _is_given_up(turn: Turn | asyncio.Future[None]) -> bool:
    """Whether the task that waited for it was cancelled."""
    return isinstance(turn, asyncio.Future) and turn.done()
