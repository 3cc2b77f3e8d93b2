"""The instants at which a schedule is due: a cron expression in a time zone, or `@every <n>m` from an anchor.

cronsim evaluates the five fields after the seconds, because with five fields it treats the changes of daylight saving
time as Debian's cron does: an hour that is left out runs when it would have ended, an hour that comes twice runs once.
The second is added to the instant that it finds. Instants are ms since the epoch.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, Protocol

from cronsim import CronSim

from flowserver.base.clock import EPOCH
from flowserver.machine.schedules.cron import Cron, read_cron
from flowserver.machine.schedules.expression_error import ExpressionRejected

EVERY: Final = "@every"
EVERY_PATTERN = re.compile(r"@every\s+([0-9]{1,7})m\Z")
MINUTES_MAX = 525_600
"""A year, the longest interval of `@every`."""

EXPRESSION_CHARACTERS_MAX = 256
MINUTE_MS = 60_000


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
        """The first instant after this one."""
        second = timedelta(seconds=self.cron.second)
        begin = EPOCH + timedelta(milliseconds=instant_ms) - second
        moments: Iterator[datetime] = CronSim(self.cron.five_fields, begin.astimezone(self.zone))
        instants = ((each.astimezone(UTC) + second - EPOCH) // timedelta(milliseconds=1) for each in moments)
        # An hour that comes twice may begin with instants that have passed.
        return next((at for at in instants if at > instant_ms), None)


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
