"""How many pieces of work are under way to each target, and how many more may begin.

A target that does not answer holds its slots until the timeout. So one target has a part of the slots at most, and all
targets whose last attempt failed have half of them together: what is due to the others finds a slot, however much is
due to those, and for however long.

It is no semaphore, because nothing waits here: what finds no slot stays where it is, and the search for the next
work gets these counts and steps over the targets that are full.
"""

from collections import Counter

from cachetools import FIFOCache

SAME_TARGET_PART = 8
"""One target has at most this part of the slots."""

FAILING_PART = 2
"""All that fail have at most this part of the slots together."""

FAILING_KNOWN_MAX = 1_000
"""Targets remembered to fail, those that failed last; the others are found out again."""


class TargetLimits:
    """Counts what is under way to each target, and remembers which of them fail."""

    def __init__(self, slots: int) -> None:
        self.per_target_max = max(slots // SAME_TARGET_PART, 1)
        self._failing_max = max(slots // FAILING_PART, 1)
        self._under_way: Counter[str] = Counter()
        self._failing: FIFOCache[str, None] = FIFOCache(FAILING_KNOWN_MAX)

    def begin(self, target: str) -> None:
        """Work for it begins."""
        self._under_way[target] += 1

    def end(self, target: str) -> None:
        """Work for it has ended."""
        self._under_way[target] -= 1
        if not self._under_way[target]:
            del self._under_way[target]

    def note(self, target: str, *, has_failed: bool) -> None:
        """What came of an attempt."""
        self._failing.pop(target, None)
        if has_failed:
            self._failing[target] = None

    @property
    def under_way(self) -> dict[str, int]:
        """How many are under way to each target."""
        return dict(self._under_way)

    @property
    def failing(self) -> frozenset[str]:
        """Targets whose last attempt failed."""
        return frozenset(self._failing)

    @property
    def failing_max(self) -> int:
        """How many more may be begun to those that fail, all together."""
        return self._failing_max - sum(count for target, count in self._under_way.items() if target in self._failing)

    @property
    def full(self) -> frozenset[str]:
        """Targets to which nothing may be begun."""
        own = frozenset(target for target, count in self._under_way.items() if count >= self.per_target_max)
        return own if self.failing_max > 0 else own | self.failing
