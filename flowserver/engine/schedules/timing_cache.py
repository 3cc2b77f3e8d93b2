"""The timings of schedules, each read once: from its expression, its time zone and its anchor."""

from datetime import UTC, tzinfo
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from cachetools import LRUCache

from flowserver.machine.schedules.expression_error import ExpressionRejected
from flowserver.machine.schedules.state import Schedule
from flowserver.machine.schedules.timing import Timing, read_timing

UTC_NAME: Final = "UTC"
CACHED_MAX: Final = 20_000


@lru_cache(maxsize=1_000)
def zone_of(name: str) -> tzinfo:
    """The time zone of an IANA name; raises ExpressionRejected."""
    if name == UTC_NAME:
        return UTC
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError):  # ZoneInfoNotFoundError is a KeyError
        raise ExpressionRejected(f"{name!r} is not the name of a time zone, such as Europe/Berlin") from None


class NeverDue:
    """The timing of a schedule whose expression cannot be read."""

    def next_after(self, instant_ms: int) -> int | None:  # noqa: ARG002
        """No instant."""
        return None


class TimingCache:
    """Used by the loop's thread only."""

    never: Final = NeverDue()

    def __init__(self) -> None:
        self._read: LRUCache[tuple[str, str, int], Timing] = LRUCache(CACHED_MAX)

    def of(self, schedule: Schedule) -> Timing:
        """The schedule's timing; raises ExpressionRejected."""
        key = schedule.expression, schedule.time_zone, schedule.anchor_at
        timing = self._read.get(key)
        if timing is None:
            timing = self._read[key] = timing_of(schedule)
        return timing


def timing_of(schedule: Schedule) -> Timing:
    """The timing of a schedule; raises ExpressionRejected."""
    return read_timing(schedule.expression, zone_of(schedule.time_zone), schedule.anchor_at)
