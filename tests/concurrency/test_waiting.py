"""Signals: waits that end."""

import asyncio

from flowserver.concurrency.waiting import Signal


async def test_a_signal_wakes_all_that_wait() -> None:
    signal = Signal()
    waiting = [asyncio.create_task(signal.is_set_within(60)) for _ in range(2)]
    await asyncio.sleep(0)
    signal.set()
    signal.clear()
    assert await asyncio.gather(*waiting) == [True, True]
    assert not await signal.is_set_within(0)
    signal.set()
    assert await signal.is_set_within(0)


async def test_a_wait_that_is_cancelled_leaves_nothing() -> None:
    signal = Signal()
    waiting = asyncio.create_task(signal.is_set_within(60))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert waiting.cancelled()
    signal.set()
    assert signal.is_set()
