"""The instants of a cron expression on one day of a time zone, without the second of the minute.

On most days an instant is the midnight plus the time of day. Near a change of the zone's offset each time is looked up.
A skipped time is due at the end of the gap, unless it is due every hour. A repeated time is due once, unless
`Cron.is_repeated`. Instants are ms since the epoch.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from typing import Final

from flowserver.base.clock import EPOCH
from flowserver.machine.schedules.cron import Cron

MINUTE_MS: Final = 60_000
DAY: Final = timedelta(days=1)
_MS: Final = timedelta(milliseconds=1)
_NEAR: Final = timedelta(hours=3)
"""How far from a change of the zone's offset times may be skipped or shown twice."""


@dataclass(frozen=True, slots=True)
class RegularDay:
    """A day with 24 hours: instants are found by binary search, however many there are."""

    midnight_ms: int
    minutes: list[int]

    def count(self, from_ms: int, to_ms: int) -> int:
        """How many instants there are from one to another, both included."""
        first, last = -((self.midnight_ms - from_ms) // MINUTE_MS), (to_ms - self.midnight_ms) // MINUTE_MS
        return max(bisect_right(self.minutes, last) - bisect_left(self.minutes, first), 0)

    def first_after(self, instant_ms: int) -> int | None:
        """The first instant after this one."""
        index = bisect_right(self.minutes, (instant_ms - self.midnight_ms) // MINUTE_MS)
        return self.midnight_ms + self.minutes[index] * MINUTE_MS if index < len(self.minutes) else None


@dataclass(frozen=True, slots=True)
class ChangingDay:
    """A day near a change of the offset. Its instants may overlap with those of its neighbours."""

    instants: tuple[int, ...]

    def first_after(self, instant_ms: int) -> int | None:
        """The first instant after this one."""
        index = bisect_right(self.instants, instant_ms)
        return self.instants[index] if index < len(self.instants) else None


def day_of(cron: Cron, zone: tzinfo, day: date) -> RegularDay | ChangingDay:
    """The instants of a day that the expression matches."""
    begin, end = _midnight(zone, day), _midnight(zone, day + DAY)
    if _offset(zone, begin - _NEAR) == _offset(zone, end + _NEAR):
        return RegularDay(_ms(begin), cron.minutes_of_day)
    return ChangingDay(_changing(cron, zone, day))


def local_date(zone: tzinfo, instant_ms: int) -> date:
    """The date in the zone."""
    return (EPOCH + timedelta(milliseconds=instant_ms)).astimezone(zone).date()


@lru_cache(maxsize=100)
def _changing(cron: Cron, zone: tzinfo, day: date) -> tuple[int, ...]:
    """Kept: the loop asks for one instant after the other."""
    begin = datetime.combine(day, time(), zone)
    found = (at for minute in cron.minutes_of_day for at in _instants(cron, begin + timedelta(minutes=minute)))
    return tuple(sorted({_ms(at) for at in found}))


def _instants(cron: Cron, local: datetime) -> Iterator[datetime]:
    """The instants of one time of a day."""
    first, second = local.astimezone(UTC), local.replace(fold=1).astimezone(UTC)
    if first <= second:
        yield first
        if cron.is_repeated:
            yield second
    elif not cron.is_of_every_hour:
        yield _end_of_gap(local.tzinfo, second, first)


def _end_of_gap(zone: tzinfo | None, before: datetime, after: datetime) -> datetime:
    """When the offset changes between two instants, to the second."""
    seconds = range(int((after - before).total_seconds()))
    offset = after.astimezone(zone).utcoffset()
    has_changed = bisect_left(
        seconds, True, key=lambda n: (before + timedelta(seconds=n)).astimezone(zone).utcoffset() == offset
    )
    return before + timedelta(seconds=has_changed)


def _midnight(zone: tzinfo, day: date) -> datetime:
    """When the day begins in the zone; in UTC, so that sums are those of instants."""
    return datetime.combine(day, time(), zone).astimezone(UTC)


def _offset(zone: tzinfo, instant: datetime) -> timedelta | None:
    return instant.astimezone(zone).utcoffset()


def _ms(instant: datetime) -> int:
    return (instant - EPOCH) // _MS
