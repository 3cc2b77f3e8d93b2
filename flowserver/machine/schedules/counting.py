"""How many instants of a schedule lie in a range, without making each of them.

The ticks of a day follow from the fields of the expression: on each day that matches they are at the same minutes. So a
day is counted by two binary searches, however many ticks it has. A day near a change of daylight saving time is counted
tick by tick, because what happens to the ticks of that hour is cronsim's to say.
"""

from bisect import bisect_left, bisect_right
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from cronsim import CronSim

from flowserver.base.clock import EPOCH
from flowserver.machine.schedules.timing import MINUTE_MS, Every, InZone, Timing

COUNTED_MAX: Final = 1_000
"""Instants that are counted when many are passed over."""

_DAY: Final = timedelta(days=1)
_MS: Final = timedelta(milliseconds=1)
_NEAR: Final = timedelta(hours=3)
"""How far from a change of the zone's offset ticks may be moved or left out."""


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


def _count_each(timing: Timing, from_ms: int, to_ms: int, count_max: int) -> int:
    count, at = 0, timing.next_after(from_ms - 1)
    while at is not None and at <= to_ms and count < count_max:
        count, at = count + 1, timing.next_after(at)
    return count


def _count_days(timing: InZone, from_ms: int, to_ms: int, count_max: int) -> int:
    fields = CronSim(timing.cron.five_fields, EPOCH)
    minutes = sorted(hour * 60 + minute for hour in fields.hours for minute in fields.minutes)
    if len(minutes) == 1:  # then to look at each day takes as long as to find each tick
        return _count_each(timing, from_ms, to_ms, count_max)
    second_ms, count = timing.cron.second * 1_000, 0
    begin, end = from_ms - second_ms, to_ms - second_ms
    day = _instant(begin).astimezone(timing.zone).date()
    while (starts_at := _midnight(timing, day)) <= _instant(end) and count < count_max:
        following = _midnight(timing, day + _DAY)
        midnight = _ms(starts_at)
        if _offset(timing, starts_at - _NEAR) != _offset(timing, following + _NEAR):
            last = min(end, _ms(following) - 1)
            count += _count_near(timing, begin + second_ms, midnight + second_ms, last + second_ms)
        elif day.month in fields.months and fields.match_day(day):
            first, last = -((midnight - begin) // MINUTE_MS), (end - midnight) // MINUTE_MS
            count += max(bisect_right(minutes, last) - bisect_left(minutes, first), 0)
        day += _DAY
    return min(count, count_max)


def _count_near(timing: InZone, from_ms: int, midnight_ms: int, to_ms: int) -> int:
    """The instants of one day, found as from the day before: from a midnight that is left out cronsim finds others."""
    begin = max(from_ms, midnight_ms - _NEAR // _MS)
    at, count = timing.next_after(begin - 1), 0
    while at is not None and at <= to_ms:
        count += at >= midnight_ms
        at = timing.next_after(at)
    return count


def _midnight(timing: InZone, day: date) -> datetime:
    """When the day begins in the zone; in UTC, so that sums are those of instants."""
    return datetime.combine(day, time(), timing.zone).astimezone(UTC)


def _offset(timing: InZone, instant: datetime) -> timedelta | None:
    return instant.astimezone(timing.zone).utcoffset()


def _instant(at_ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=at_ms)


def _ms(instant: datetime) -> int:
    return (instant - EPOCH) // _MS
