"""Durations as people write them."""

import re
from typing import Final

_SECONDS: Final = {"ms": 0.001, "s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_PART: Final = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)(ms|[smhdw])")

BEGINS_AS_DURATION: Final = _PART
"""What a duration begins with."""

DURATION: Final = rf"(?:{_PART.pattern})+"
"""What every duration matches, from its first character to its last."""


def duration_seconds(text: str) -> float | None:
    """Seconds of `90s`, `10m`, `1h30m`, `1d`, `250ms`; None for another text."""
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def shown_duration(duration_ms: int) -> str:
    """`250ms`, `3s`, `1h30m`, `2d`: the same spelling, exact to the millisecond."""
    seconds, ms = divmod(duration_ms, 1000)
    parts = []
    for unit in ("d", "h", "m", "s"):
        count, seconds = divmod(seconds, int(_SECONDS[unit]))
        parts += [f"{count}{unit}"] if count else []
    return "".join([*parts, *([f"{ms}ms"] if ms else [])]) or "0s"
