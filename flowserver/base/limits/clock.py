"""Limits of clocks: how far they may differ before deletions by age pause."""

from dataclasses import dataclass

from flowserver.base.limits.limit import limit


@dataclass(frozen=True, kw_only=True)
class ClockLimits:
    """Rows of `Limits`."""

    clock_differ_seconds: int = limit(
        60,
        unit="seconds",
        reason="difference between the wall clock and the time that has passed, or between the clocks of two nodes, "
        "above which nothing is deleted by its age",
        error="none: deletions by age pause",
    )
    clock_settle_seconds: int = limit(
        3_600,
        unit="seconds",
        reason="how long the clock must be right, after it was set or a long stop, before deletions by age continue",
        error="none: deletions by age pause",
    )
