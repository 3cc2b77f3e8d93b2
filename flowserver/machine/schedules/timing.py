"""The instants at which a schedule is due: a cron expression in a time zone, or `@every <n>m` from an anchor.

`days` says what happens when the clock of a zone changes. Instants are ms since the epoch.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta, tzinfo
from typing import Final, Protocol

from flowserver.machine.schedules.cron import Cron, read_cron
from flowserver.machine.schedules.days import DAY, MINUTE_MS, RegularDay, day_of, local_date
from flowserver.machine.schedules.expression_error import ExpressionRejected

EVERY: Final = "@every"
EVERY_PATTERN = re.compile(r"@every\s+([0-9]{1,7})m\Z")
MINUTES_MAX = 525_600
"""A year, the longest interval of `@every`."""

EXPRESSION_CHARACTERS_MAX = 256
SEARCHED: Final = timedelta(days=50 * 366)


class Timing(Protocol):
    """When a schedule is due."""

    def next_after(self, instant_ms: int) -> int | None:
        """The first instant after this one; None if there is none for 50 years."""
        ...


@dataclass(frozen=True, slots=True)
class Every:
    """Every so many minutes, counted from an instant."""

    anchor_at: int
    minutes: int

    def next_after(self, instant_ms: int) -> int | None:
        """The first instant after this one. The phase reaches back before the anchor, for backfills."""
        interval = self.minutes * MINUTE_MS
        return self.anchor_at + ((instant_ms - self.anchor_at) // interval + 1) * interval


@dataclass(frozen=True, slots=True)
class InZone:
    """A cron expression in a time zone."""

    cron: Cron
    zone: tzinfo

    def next_after(self, instant_ms: int) -> int | None:
        """The first instant after this one; None if there is none for 50 years."""
        second_ms = self.cron.second * 1_000
        minute_ms = instant_ms - second_ms
        begin = local_date(self.zone, minute_ms) - DAY
        found: int | None = None
        for day in self.days(begin, begin + SEARCHED if begin < date.max - SEARCHED else date.max - DAY):
            of_day = day_of(self.cron, self.zone, day)
            found = of_day.first_after(minute_ms)
            if found is not None and not isinstance(of_day, RegularDay):
                # A clock that is set back over midnight shows times of the next day before some of this one.
                others = (day_of(self.cron, self.zone, other) for other in self.days(day + DAY, day + 2 * DAY))
                found = min([found, *(at for each in others if (at := each.first_after(minute_ms)) is not None)])
            if found is not None:
                return found + second_ms
        return None

    def days(self, first: date, last: date) -> Iterator[date]:
        """The days that the expression matches, from one to another, both included."""
        day = first
        while day <= last:
            if self.cron.matches(day):
                yield day
            day += DAY


def read_timing(expression: str, zone: tzinfo, anchor_at: int) -> Timing:
    """The instants of an expression; `@every` counts from the anchor. Raises ExpressionRejected."""
    if len(expression) > EXPRESSION_CHARACTERS_MAX:
        raise ExpressionRejected(f"the expression is longer than {EXPRESSION_CHARACTERS_MAX} characters")
    text = expression.strip()
    if not text.startswith("@"):
        return InZone(read_cron(expression), zone)
    found = EVERY_PATTERN.match(text)
    if found is None or not 1 <= int(found[1]) <= MINUTES_MAX:
        raise ExpressionRejected(
            f"{text!r} is not {EVERY} <n>m, where n is a number of minutes from 1 to {MINUTES_MAX}, such as @every 90m"
        )
    return Every(anchor_at, int(found[1]))


def next_instants(timing: Timing, after_ms: int, count: int) -> list[int]:
    """The first `count` instants after one."""
    found: list[int] = []
    at = timing.next_after(after_ms)
    while at is not None and len(found) < count:
        found.append(at)
        at = timing.next_after(at)
    return found
