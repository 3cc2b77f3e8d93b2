"""Waits with a second reason to end."""

import asyncio
from collections.abc import Coroutine
from typing import Any


class Signal:
    """An event that is waited for no longer than so many seconds.

    `asyncio.timeout` around an `asyncio.Event` costs three times as much, and each request of an execution's end waits.
    """

    def __init__(self) -> None:
        self._is_set = False
        self._waiting: set[asyncio.Future[bool]] = set()

    def is_set(self) -> bool:
        """Whether it is set."""
        return self._is_set

    def set(self) -> None:
        """Set it, and wake all that wait."""
        self._is_set = True
        for waiter in self._waiting:
            _wake(waiter, is_set=True)

    def clear(self) -> None:
        """Let those wait that come from now on."""
        self._is_set = False

    async def is_set_within(self, seconds: float) -> bool:
        """Wait until it is set, for so many seconds at most; returns whether it was set."""
        if self._is_set:
            return True
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[bool] = loop.create_future()
        timer = loop.call_later(seconds, _wake, waiter)
        self._waiting.add(waiter)
        try:
            return await waiter
        finally:
            timer.cancel()
            self._waiting.discard(waiter)


def _wake(waiter: asyncio.Future[bool], is_set: bool = False) -> None:
    if not waiter.done():
        waiter.set_result(is_set)


async def ends_first(work: asyncio.Future[Any], other: Coroutine[Any, Any, object]) -> bool:
    """Wait until `work` is done, which returns True, or until `other` has ended, which returns False.

    Then `other` is cancelled; `work` is left to the caller.
    """
    waiting = asyncio.create_task(other)
    try:
        await asyncio.wait((work, waiting), return_when=asyncio.FIRST_COMPLETED)
        return work.done()
    finally:
        waiting.cancel()
