"""Backfills: their ticks are counted beside the writer, however rare they are."""

import threading
from datetime import UTC, datetime

import pytest

from flowserver.base.errors import InvalidArgument
from flowserver.engine.reads.slow_reads import SlowReads
from flowserver.machine.schedules.counting import count_instants
from flowserver.machine.schedules.timing import Timing
from flowserver.operations import schedules as module
from flowserver.operations.schedule_fields import ScheduleChange
from tests.engine.schedules.conftest import ENDS, TurnTaker

DAY_MS = 86_400_000
DAILY = "0 0 12 * * ?"


async def test_the_writer_counts_no_ticks(taker: TurnTaker, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand ticks of a rare expression take it a third of a second, in which nothing would be committed."""
    threads: list[str] = []

    def count(timing: Timing, from_ms: int, to_ms: int, count_max: int) -> int:
        threads.append(threading.current_thread().name)
        return count_instants(timing, from_ms, to_ms, count_max)

    monkeypatch.setattr(module, "count_instants", count)
    await taker.create(ENDS, DAILY, is_enabled=False)
    now = taker.clock.now_ms()
    assert await taker.node.operations.schedules.backfill("f", "s", now - 3 * DAY_MS, now, None) == 3
    assert [name.startswith("lists") for name in threads] == [True]
    await taker.turns()
    assert len(await taker.executions()) == 3


async def test_a_schedule_that_changes_meanwhile_is_counted_anew(
    taker: TurnTaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    await taker.create(ENDS, DAILY, is_enabled=False)
    operations, now = taker.node.operations.schedules, taker.clock.now_ms()
    changes = [ScheduleChange(expression="0 0 */6 * * ?")]

    async def ask(reads: SlowReads, query: object) -> object:
        found = await _ASK(reads, query)  # type: ignore[arg-type]
        if changes:
            await operations.update("f", "s", changes.pop())
        return found

    monkeypatch.setattr(SlowReads, "ask", ask)
    assert await operations.backfill("f", "s", now - 3 * DAY_MS, now, None) == 13
    assert len((await taker.schedule()).memory.backfills) == 1


_ASK = SlowReads.ask


@pytest.mark.parametrize("year", [1, 1969])
async def test_a_range_before_1970_is_refused(taker: TurnTaker, year: int) -> None:
    """Time zones know no instants before the year 1."""
    await taker.create(ENDS, DAILY, time_zone="America/New_York", is_enabled=False)
    begin = int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) * 1000
    with pytest.raises(InvalidArgument, match="1970"):
        await taker.node.operations.schedules.backfill("f", "s", begin, taker.clock.now_ms(), None)
