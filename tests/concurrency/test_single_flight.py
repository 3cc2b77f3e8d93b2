"""Callers of the same work share one run, even if one of them is cancelled."""

import asyncio

import pytest

from flowserver.concurrency.single_flight import SingleFlight


class Work:
    """Counts its runs, each of which ends when `go` is set."""

    def __init__(self) -> None:
        self.runs = 0
        self.go = asyncio.Event()

    async def __call__(self) -> int:
        self.runs += 1
        number = self.runs
        await self.go.wait()
        if number == 1:
            raise ValueError("the first run fails")
        return number


async def test_callers_share_a_run_and_the_next_caller_begins_another() -> None:
    work, flight = Work(), SingleFlight[str, int]()
    gone, *stay = (asyncio.create_task(flight.run("a", work)) for _ in range(3))
    other = asyncio.create_task(flight.run("b", work))
    await asyncio.sleep(0)
    gone.cancel()
    work.go.set()
    for task in stay:
        with pytest.raises(ValueError, match="first run"):
            await task
    assert (await other, work.runs) == (2, 2)
    assert await flight.run("a", work) == 3


async def test_a_forgotten_run_is_no_longer_shared() -> None:
    work, flight = Work(), SingleFlight[str, int]()
    before = asyncio.create_task(flight.run("a", work))
    await asyncio.sleep(0)
    flight.forget()
    after = asyncio.create_task(flight.run("a", work))
    await asyncio.sleep(0)
    work.go.set()
    assert await after == 2
    with pytest.raises(ValueError, match="first run"):
        await before
