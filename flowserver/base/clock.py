"""Instants are integers: milliseconds since 1970-01-01T00:00:00Z. Only `SystemClock` asks what time it is."""

import time
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Final, Protocol

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY_MS = 86_400_000
INSTANT_MS_MAX = 253_402_300_799_999  # 9999-12-31T23:59:59.999Z, the last instant RFC 3339 can write


class Clock(Protocol):
    """Tells the time; injected wherever time is needed so that tests can set it."""

    def now_ms(self) -> int:
        """The present instant in ms since the epoch."""
        ...

    def steady_ms(self) -> int:
        """Time that has passed, in ms since some instant; setting the clock does not change it."""
        ...


STEADY_CLOCK: Final[int | None] = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))
"""CLOCK_BOOTTIME counts the time for which the machine is suspended, as the wall clock does."""


class SystemClock:
    """The machine's own clock."""

    def now_ms(self) -> int:
        """The present instant in ms since the epoch."""
        return time.time_ns() // 1_000_000

    def steady_ms(self) -> int:
        """Time that has passed since the machine started, in ms."""
        elapsed = time.monotonic_ns() if STEADY_CLOCK is None else time.clock_gettime_ns(STEADY_CLOCK)
        return elapsed // 1_000_000


def format_instant(instant_ms: int) -> str:
    """UTC RFC 3339 with milliseconds and `Z`, e.g. `2019-01-01T01:01:01.001Z`, as every API reply writes it."""
    seconds, ms = divmod(instant_ms, 1000)
    return f"{_format_second(seconds)}.{ms:03d}Z"


def compact_instant(instant_ms: int, *, with_ms: bool = False) -> str:
    """UTC without separators, as names may hold it: `20190101T010101Z`, with milliseconds `20190101T010101001Z`."""
    seconds, ms = divmod(instant_ms, 1000)
    return time.strftime("%Y%m%dT%H%M%S", time.gmtime(seconds)) + (f"{ms:03d}Z" if with_ms else "Z")


@lru_cache(maxsize=1_000)
def _format_second(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))


def parse_instant(text: str) -> int:
    """RFC 3339 text to ms since the epoch; raises ValueError for anything else, including a missing offset.

    `t` and `z` may be written in lower case, as RFC 3339 allows and Python does not.
    """
    upper = text.upper()
    moment = datetime.fromisoformat(upper)
    if moment.tzinfo is None or "T" not in upper:
        raise ValueError(f"not an RFC 3339 instant with an offset: {text!r}")
    return (moment - EPOCH) // timedelta(milliseconds=1)


def parse_http_date(text: str) -> int:
    """A date as HTTP headers write it, with its zone, to ms since the epoch; raises ValueError for anything else.

    `-0000` is no zone: it says that the zone is not known (RFC 5322).
    """
    try:
        moment = parsedate_to_datetime(text)
    except (OverflowError, TypeError):
        raise ValueError(f"not a date: {text[:40]!r}") from None
    if moment.tzinfo is None:
        raise ValueError(f"not a date with a zone: {text[:40]!r}")
    return (moment - EPOCH) // timedelta(milliseconds=1)
