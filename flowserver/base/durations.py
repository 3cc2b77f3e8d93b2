"""Durations as people write them, in commands, in files and in what they read. The console writes them so, too."""

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


def rounded_duration(duration_ms: float) -> str:
    """How long something took: `310ms`, `1.23s`, `12.4s`, `3m7s`, `2h3m7s`, `3d4h`. Nothing is rounded up."""
    ms = max(0, int(duration_ms))
    if 1_000 <= ms < 10_000:
        return f"{ms // 10 / 100:.2f}s"
    if 10_000 <= ms < 60_000:
        return f"{ms // 100 / 10:.1f}s"
    return shown_duration(ms if ms < 1_000 else ms - ms % (1_000 if ms < 86_400_000 else 3_600_000))
