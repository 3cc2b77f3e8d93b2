"""Work that is cancelled at shutdown: its end, and the error of its caller."""

import asyncio

import pytest

from flowserver.base.errors import ServiceUnavailable
from flowserver.concurrency.shutdown import InterruptibleWork


async def done() -> str:
    return "done"


async def work(begun: asyncio.Event, last_words: str | None = None) -> str:
    begun.set()
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        if last_words is None:
            raise
        return last_words
    raise AssertionError


async def test_work_ends_by_itself() -> None:
    assert await InterruptibleWork().run(done()) == "done"
    with pytest.raises(ZeroDivisionError):
        await InterruptibleWork().run(fail())


async def fail() -> None:
    raise ZeroDivisionError


@pytest.mark.parametrize("last_words", ["it had begun", None])
async def test_cancelled_work_may_return_a_result(last_words: str | None) -> None:
    interruptible, begun = InterruptibleWork(), asyncio.Event()
    running = asyncio.create_task(interruptible.run(work(begun, last_words)))
    await begun.wait()
    interruptible.interrupt()
    if last_words is None:
        with pytest.raises(ServiceUnavailable, match="being stopped"):
            await running
    else:
        assert await running == last_words


async def test_no_work_begins_afterwards() -> None:
    interruptible = InterruptibleWork()
    interruptible.interrupt()
    with pytest.raises(ServiceUnavailable):
        await interruptible.run(done())


@pytest.mark.parametrize("is_interrupted_too", [False, True])
async def test_a_cancelled_caller_gets_no_answer(is_interrupted_too: bool) -> None:
    interruptible, begun = InterruptibleWork(), asyncio.Event()
    running = asyncio.create_task(interruptible.run(work(begun)))
    await begun.wait()
    running.cancel()
    if is_interrupted_too:
        interruptible.interrupt()
    with pytest.raises(asyncio.CancelledError):
        await running
