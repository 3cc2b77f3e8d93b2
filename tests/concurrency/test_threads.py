"""Threads for blocking work: bounded, even when callers are cancelled."""

import asyncio

import pytest

from flowserver.base.errors import ResourceThrottled
from flowserver.concurrency.threads import Threads
from tests.engine.held_threads import Gate


async def test_work_of_a_cancelled_caller_counts_until_it_ends() -> None:
    gate, threads = Gate(), Threads("test", waiting_max=0)
    work = asyncio.create_task(threads.run(gate.block))
    await gate.reached.wait()
    work.cancel()
    await asyncio.wait([work])
    with pytest.raises(ResourceThrottled):
        await threads.run(lambda: None)
    gate.open()
    threads.close()
