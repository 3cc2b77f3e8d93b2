"""How many instants of a schedule lie in a range, without making each of them."""

from typing import Final

from flowserver.base.clock import DAY_MS
from flowserver.machine.schedules.days import DAY, MINUTE_MS, RegularDay, day_of, local_date
from flowserver.machine.schedules.timing import Every, InZone, Timing

HOUR_MS: Final = 3_600_000

COUNTED_MAX: Final = 1_000
"""Instants that are counted when many are passed over."""


def count_instants(timing: Timing, from_ms: int, to_ms: int, count_max: int) -> int:
    """How many instants there are from one to another, both included; at most `count_max` are counted."""
    match timing:
        case Every(anchor_at, minutes):
            interval = minutes * MINUTE_MS
            count = (to_ms - anchor_at) // interval - (from_ms - 1 - anchor_at) // interval
            return max(min(count, count_max), 0)
        case InZone():
            return _count_days(timing, from_ms, to_ms, count_max)
        case _:
            return _count_each(timing, from_ms, to_ms, count_max)


def last_instant(timing: Timing, from_ms: int, to_ms: int) -> int | None:
    """The last instant from one to another, both included; None if there is none."""
    for window in (HOUR_MS, DAY_MS, to_ms - from_ms):
        begin, found = max(from_ms, to_ms - window), None
        at = timing.next_after(begin - 1)
        while at is not None and at <= to_ms:
            found, at = at, timing.next_after(at)
        if found is not None:
            return found
    return None


def _count_each(timing: Timing, from_ms: int, to_ms: int, count_max: int) -> int:
    count, at = 0, timing.next_after(from_ms - 1)
    while at is not None and at <= to_ms and count < count_max:
        count, at = count + 1, timing.next_after(at)
    return count


def _count_days(timing: InZone, from_ms: int, to_ms: int, count_max: int) -> int:
    cron, zone, second_ms = timing.cron, timing.zone, timing.cron.second * 1_000
    begin, end = from_ms - second_ms, to_ms - second_ms
    if begin > end:
        return 0
    regular, others = 0, set[int]()
    for day in timing.days(local_date(zone, begin) - DAY, local_date(zone, end) + DAY):
        of_day = day_of(cron, zone, day)
        if isinstance(of_day, RegularDay):
            regular += of_day.count(begin, end)
        else:  # the instants of two such days may be the same, and in another order than the days
            others.update(at for at in of_day.instants if begin <= at <= end)
        if regular + len(others) >= count_max:
            break
    return min(regular + len(others), count_max)
