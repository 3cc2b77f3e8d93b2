"""Work that is cut off: what it makes of that, and what its caller is told."""

import asyncio

import pytest

from flowserver.base.errors import ServiceUnavailable
from flowserver.engine.shutdown import Cutting


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


async def test_work_comes_to_its_own_end() -> None:
    assert await Cutting().run(done()) == "done"
    with pytest.raises(ZeroDivisionError):
        await Cutting().run(fail())


async def fail() -> None:
    raise ZeroDivisionError


@pytest.mark.parametrize("last_words", ["it had begun", None])
async def test_what_is_cut_off_may_say_something(last_words: str | None) -> None:
    cutting, begun = Cutting(), asyncio.Event()
    running = asyncio.create_task(cutting.run(work(begun, last_words)))
    await begun.wait()
    cutting.cut()
    if last_words is None:
        with pytest.raises(ServiceUnavailable, match="being stopped"):
            await running
    else:
        assert await running == last_words


async def test_nothing_begins_after_that() -> None:
    cutting = Cutting()
    cutting.cut()
    with pytest.raises(ServiceUnavailable):
        await cutting.run(done())


@pytest.mark.parametrize("is_cut_too", [False, True])
async def test_whoever_goes_away_is_told_nothing(is_cut_too: bool) -> None:
    cutting, begun = Cutting(), asyncio.Event()
    running = asyncio.create_task(cutting.run(work(begun)))
    await begun.wait()
    running.cancel()
    if is_cut_too:
        cutting.cut()
    with pytest.raises(asyncio.CancelledError):
        await running
