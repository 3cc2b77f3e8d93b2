"""Large replies are read in turns, and only so many at a time: they neither fill the memory nor hold up the event loop.

Unhindered, libuv reads up to 8 MiB of one connection before it does anything else. So a connection whose reply has
grown beyond LARGE_BYTES pauses after each part, and goes on when it is its turn: one connection in each round of the
event loop, so that other work waits for at most one part. When there is no other work, this is as fast as before.

Before its first turn such a reply takes a place, or waits for one; its call's time goes on meanwhile. Functions and
flows have shares of the places (`concurrency/keyed_semaphore.py`): a function that sends without end, or slowly, leaves
places for the replies of others.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from flowserver.base.limits import Limits
from flowserver.concurrency.keyed_semaphore import KeyedSemaphore

LARGE_BYTES: Final = 65_536
"""A reply of more bytes is a large one."""

Sender = tuple[str, tuple[str, ...]]
"""The flow, "" if no step makes the call, and the function whose reply it is."""

Turn = Callable[[], object]
"""Goes on reading."""


class LargeReplies:
    """The places and turns of one process. Make and use it inside one event loop."""

    def __init__(self, limits: Limits) -> None:
        self.places = KeyedSemaphore(limits.large_replies_max, limits.in_flight_share_percent)
        self._loop = asyncio.get_running_loop()
        self._turns: deque[Turn] = deque()

    def take_turn(self, turn: Turn) -> None:
        """Have the turn called in one of the next rounds of the event loop."""
        self._turns.append(turn)
        if len(self._turns) == 1:
            self._loop.call_soon(self._next)

    def _next(self) -> None:
        turn = self._turns.popleft()
        if self._turns:
            self._loop.call_soon(self._next)
        turn()


class Place:
    """The place of one reply, once that is large."""

    def __init__(self, replies: LargeReplies, sender: Sender) -> None:
        self._replies = replies
        self._sender = sender
        self._waiting: asyncio.Task[None] | None = None
        self._is_held = False

    def wait_for_turn(self, turn: Turn) -> None:
        """Have the turn called once the reply has a place and it is its turn."""
        if not self._is_held:
            self._is_held = self._replies.places.acquire_now(*self._sender)
        if self._is_held:
            self._replies.take_turn(turn)
        else:
            self._waiting = asyncio.create_task(self._wait(turn), name="large reply")

    def give_back(self) -> None:
        """The reply is read, or will not be."""
        if self._waiting is not None:
            self._waiting.cancel()
        if self._is_held:
            self._is_held = False
            self._replies.places.release(*self._sender)

    async def _wait(self, turn: Turn) -> None:
        await self._replies.places.acquire(*self._sender)
        self._is_held, self._waiting = True, None
        self._replies.take_turn(turn)
