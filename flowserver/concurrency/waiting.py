"""Waits with a second reason to end."""

import asyncio
from collections.abc import Coroutine
from typing import Any


async def is_set_within(event: asyncio.Event, seconds: float) -> bool:
    """Wait until the event is set, for so many seconds at most; returns whether it is set."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True


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
