"""The loop for due work: when it looks, how it sleeps, and what it announces to other nodes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, cast

import pytest

from flowserver.engine.due_loop import AT_ONCE, DueLoop
from flowserver.store.cluster.notices import Notice
from tests.engine.nodes import PATIENCE_SECONDS
from tests.support.clock import ManualClock

LATE_MS = 10**9


class FixedMembership:
    """A membership of this node, alone or not, that records announcements."""

    def __init__(self, *, is_alone: bool) -> None:
        self.is_alone = is_alone
        self.announced = Notice()

    def announce(self) -> Notice:
        return self.announced


class Source(DueLoop):
    """Gives the answers it is set to, and reports when it was asked."""

    name = "source"

    def __init__(self, clock: ManualClock, company: FixedMembership) -> None:
        super().__init__(clock, cast(Any, company))
        self.answers: list[Callable[[], int | None]] = []
        self.looks = 0
        self.has_looked = asyncio.Semaphore(0)

    async def handle_due(self) -> int | None:
        await asyncio.sleep(0)
        self.looks += 1
        self.has_looked.release()
        return self.answers.pop(0)() if self.answers else None

    async def looked(self, times: int) -> None:
        """Wait until it has looked this many times more, and sleeps."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            for _ in range(times):
                await self.has_looked.acquire()
        for _ in range(3):
            await asyncio.sleep(0)


@pytest.fixture(autouse=True)
def no_second_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a notice makes a loop look again."""
    monkeypatch.setattr("flowserver.engine.due_loop.LOOK_AGAIN_SECONDS", 3_600)


@pytest.fixture
async def source(clock: ManualClock) -> AsyncIterator[Source]:
    source = Source(clock, FixedMembership(is_alone=True))
    yield source
    await source.stop()


async def test_it_looks_again_at_once_until_nothing_more_is_due(source: Source) -> None:
    source.answers = [lambda: AT_ONCE, lambda: AT_ONCE, lambda: None]
    source.start()
    await source.looked(3)
    assert source.looks == 3


async def test_it_sleeps_towards_a_future_instant_without_a_look(source: Source, clock: ManualClock) -> None:
    source.start()
    await source.looked(1)
    for sooner_ms in range(5):
        source.notice(clock.now_ms() + LATE_MS - sooner_ms)
        await asyncio.sleep(0)
    source.notice(clock.now_ms())
    await source.looked(1)
    assert source.looks == 2


async def test_the_instant_found_in_the_rows_is_kept(source: Source, clock: ManualClock) -> None:
    source.answers = [lambda: clock.now_ms() + LATE_MS]
    source.start()
    await source.looked(1)
    clock.advance(ms=LATE_MS)
    source.notice(clock.now_ms() + 1)  # later than the known instant, so it does not wake the loop
    source.notice(clock.now_ms() - 1)
    await source.looked(1)
    assert source.looks == 2


async def test_a_notice_during_a_look_counts_for_the_next_look(source: Source) -> None:
    """Its row may have been committed after the read."""

    def notice_late() -> None:
        source.notice()

    source.answers = [notice_late, lambda: None]
    source.start()
    await source.looked(2)
    assert source.looks == 2


async def test_a_look_that_fails_is_repeated(
    source: Source, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> int:
        raise RuntimeError("a bug")

    monkeypatch.setattr("flowserver.engine.background_loop.RETRY_SECONDS", 0)
    source.answers = [fail, lambda: None]
    source.start()
    await source.looked(2)
    assert "source: an iteration failed and is repeated" in caplog.text


def test_other_nodes_are_notified_of_commits_here_alone(clock: ManualClock) -> None:
    company = FixedMembership(is_alone=False)
    source = Source(clock, company)
    source.notice(5)
    assert company.announced == Notice()
    source.note_due(8)
    source.note_due(7)
    assert company.announced == Notice(due={"source": 7})
