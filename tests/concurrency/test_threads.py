"""Threads for blocking work: bounded, even when callers are cancelled, and fair between access keys."""

import asyncio

import pytest

from flowserver.base.errors import ResourceThrottled
from flowserver.base.request_context import RequestContext
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


async def test_waiting_work_of_cancelled_callers_has_the_same_bound() -> None:
    gate, threads = Gate(), Threads("test", waiting_max=2)
    blocking = asyncio.create_task(threads.run(gate.block))
    await gate.reached.wait()
    for _ in range(2):
        waiting = asyncio.create_task(threads.run(lambda: None))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
    refused = asyncio.create_task(threads.run(lambda: None))
    await asyncio.sleep(0)
    gate.open()
    with pytest.raises(ResourceThrottled):
        await refused
    await blocking
    threads.close()


async def test_work_of_cancelled_callers_leaves_its_place_in_turn() -> None:
    gate, threads = Gate(), Threads("test", waiting_max=2)
    blocking = asyncio.create_task(threads.run(gate.block))
    await gate.reached.wait()
    waiting, last = [asyncio.create_task(threads.run(lambda: 0)) for _ in range(2)]
    await asyncio.sleep(0)
    waiting.cancel()
    gate.open()
    await asyncio.gather(blocking, last)
    assert await asyncio.gather(*(threads.run(lambda: 1) for _ in range(3))) == [1, 1, 1]
    threads.close()


async def test_access_keys_take_turns() -> None:
    gate, threads = Gate(), Threads("test", waiting_max=100)
    done: list[str] = []

    async def ask(key: str) -> None:
        with RequestContext() as request:
            request.key_id = key
            await threads.run(lambda: done.append(key))

    blocking = asyncio.create_task(threads.run(gate.block))
    await gate.reached.wait()
    tasks = [asyncio.create_task(ask(key)) for key in "aaaaab"]
    await asyncio.sleep(0)
    gate.open()
    await asyncio.gather(blocking, *tasks)
    assert done == ["a", "b", "a", "a", "a", "a"]
    threads.close()


async def test_waiting_work_ends_when_they_are_closed() -> None:
    gate, threads = Gate(), Threads("test")
    begun = asyncio.create_task(threads.run(gate.block))
    await gate.reached.wait()
    waiting = asyncio.create_task(threads.run(lambda: None))
    await asyncio.sleep(0)
    threads.close()
    await asyncio.wait([waiting])
    assert waiting.cancelled()
    gate.open()
    await begun
    with pytest.raises(RuntimeError):
        await threads.run(lambda: None)


async def test_each_thread_works() -> None:
    gates, threads = [Gate() for _ in range(3)], Threads("test", 3)
    blocking = [asyncio.create_task(threads.run(gate.block)) for gate in gates]
    for gate in gates:
        await gate.reached.wait()
    more = [asyncio.create_task(threads.run(lambda number=number: number)) for number in range(9)]  # type: ignore[misc]
    gates[1].open()
    assert await asyncio.gather(*more) == list(range(9))
    for gate in gates:
        gate.open()
    await asyncio.gather(*blocking)
    threads.close()
