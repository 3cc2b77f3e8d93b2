"""Instants and durations as people write and read them."""

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from flowserver.base.durations import BEGINS_AS_DURATION, duration_seconds, rounded_duration
from flowserver.base.lazy_import import load
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed

_ZONE: Final = "zoneinfo:ZoneInfo"
"""Loaded for the times of schedules."""


def seconds_of(text: str, option: str) -> float:
    """Seconds of `90s`, `10m`, `1h30m`, `1d`; raises CommandFailed, which names the option."""
    seconds = duration_seconds(text)
    if seconds is None:
        raise CommandFailed(f"{option} takes a duration such as 90s, 10m, 1h30m or 1d, not {text!r}", ExitCode.USAGE)
    return seconds


def instant_of(text: str, option: str, now: datetime, zone: tzinfo | None = None) -> str:
    """An instant in UTC: so long before now, or the given RFC 3339 text or date.

    Where it names no offset, it is of the zone; without one, local.
    """
    if BEGINS_AS_DURATION.match(text):
        return _rfc3339(now - timedelta(seconds=seconds_of(text, option)))
    if text == "today":
        return _rfc3339(now.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0))
    try:
        given = datetime.fromisoformat(text)
    except ValueError:
        reason = f"{option} takes an age such as 1d, `today`, or an instant such as 2026-01-02T03:04:05, not {text!r}"
        raise CommandFailed(reason, ExitCode.USAGE) from None
    return _rfc3339(given.replace(tzinfo=zone) if given.tzinfo is None else given)


def names_zone(text: str) -> bool:
    """Whether it is an age, or an instant with an offset: both mean the same in every zone."""
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return text != "today"


def _rfc3339(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def shown_instant(text: str | None, now: datetime) -> str:
    """Local time, short, with the date when it is not today's."""
    return "" if text is None else _short(datetime.fromisoformat(text).astimezone(), now.astimezone())


def shown_in_zone(text: str | None, now: datetime, zone: str) -> str:
    """The time in the zone of that name, with its offset; in UTC if this machine does not know the zone."""
    if text is None:
        return ""
    try:
        found: tzinfo = load(_ZONE)(zone)
    except (OSError, ValueError, LookupError):
        found = UTC
    local = datetime.fromisoformat(text).astimezone(found)
    offset = local.isoformat(timespec="seconds")[19:]
    return f"{_short(local, now.astimezone(found))} {offset}"


def _short(local: datetime, now: datetime) -> str:
    return f"today {local:%H:%M:%S}" if local.date() == now.date() else f"{local:%Y-%m-%d %H:%M:%S}"


def shown_span(start: str | None, end: str | None, now: datetime) -> str:
    """The time between two instants: `1.23s`, `3m7s`; or until now, in whole seconds."""
    if start is None:
        return ""
    seconds = seconds_between(start, end, now)
    return rounded_duration(seconds * 1000) if end is not None else shown_so_far(seconds)


def seconds_between(start: str, end: str | None, now: datetime) -> float:
    """The seconds between two instants, or until now."""
    last = now if end is None else datetime.fromisoformat(end)
    return (last - datetime.fromisoformat(start)).total_seconds()


def shown_so_far(seconds: float) -> str:
    """How long something runs that still does, in whole seconds: `7s`, `3m7s`."""
    whole = max(0, int(seconds))
    return f"{whole}s" if whole < 60 else rounded_duration(whole * 1000)
