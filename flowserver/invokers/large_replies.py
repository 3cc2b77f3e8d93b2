"""Large replies are read in turns, and only so many at a time: they neither fill the memory nor hold up the event loop.

Unhindered, libuv reads up to 8 MiB of one connection before it does anything else. So a connection whose reply has
grown beyond LARGE_BYTES pauses after each part, and goes on when it is its turn: one connection in each round of the
event loop, so that other work waits for at most one part, and fewer while a commit is under way
(`concurrency/background_throttle.py`). When there is no other work, this is as fast as before.

Before its first turn such a reply takes a place, or waits for one; its call's time goes on meanwhile. Functions and
flows have shares of the places (`concurrency/keyed_semaphore.py`): a function that sends without end, or slowly, leaves
places for the replies of others.
"""

import asyncio
from typing import Final

from flowserver.base.limits import Limits
from flowserver.concurrency.background_throttle import BACKGROUND
from flowserver.concurrency.keyed_semaphore import KeyedSemaphore
from flowserver.concurrency.loop_turns import Turn

LARGE_BYTES: Final = 65_536
"""A reply of more bytes is a large one."""

Sender = tuple[str, tuple[str, ...]]
"""The flow, "" if no step makes the call, and the function whose reply it is."""


def places_of_process(limits: Limits) -> KeyedSemaphore:
    """The places of all large replies."""
    return KeyedSemaphore(limits.large_replies_max, limits.in_flight_share_percent)


class Place:
    """The place of one reply, once that is large."""

    def __init__(self, places: KeyedSemaphore, sender: Sender) -> None:
        self._places = places
        self._sender = sender
        self._waiting: asyncio.Task[None] | None = None
        self._is_held = False

    def wait_for_turn(self, turn: Turn) -> None:
        """Have the turn called once the reply has a place and it is its turn. Until then nothing of it may be read."""
        assert self._waiting is None, "a reply was read on before its turn"
        if not self._is_held:
            self._is_held = self._places.acquire_now(*self._sender)
        if self._is_held:
            BACKGROUND.turns.call(turn)
        else:
            self._waiting = asyncio.create_task(self._wait(turn), name="large reply")

    def give_back(self) -> None:
        """The reply is read, or will not be."""
        if self._waiting is not None:
            self._waiting.cancel()
        if self._is_held:
            self._is_held = False
            self._places.release(*self._sender)

    async def _wait(self, turn: Turn) -> None:
        await self._places.acquire(*self._sender)
        self._is_held, self._waiting = True, None
        BACKGROUND.turns.call(turn)
