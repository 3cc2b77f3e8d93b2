"""Histograms of durations, as cheap as counting can be: a search in a tuple and two additions."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

BOUNDS_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3_600, 86_400)
"""Upper bounds: from a fast call to an execution that waited for a day."""

FEW_BOUNDS_SECONDS: Final = (0.01, 0.05, 0.25, 1, 5, 30, 300, 3_600)
"""Where there are many histograms: half the series."""


class Durations:
    """The durations of one kind of work. One thread adds; another may read at the same time."""

    __slots__ = ("_bounds", "_counts", "_seconds")

    def __init__(self, bounds: Sequence[float] = BOUNDS_SECONDS) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._seconds = 0.0

    def add(self, seconds: float) -> None:
        """Something has taken so long."""
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self._seconds += seconds

    def numbers(self) -> tuple[list[int], float]:
        """How many there were up to each bound and above all, and their sum in seconds."""
        return list(self._counts), self._seconds

    def merge(self, counts: Sequence[int], seconds: float) -> None:
        """Add the `numbers` of others."""
        self._counts = [mine + more for mine, more in zip(self._counts, counts, strict=True)]
        self._seconds += seconds

    def buckets(self) -> tuple[list[tuple[str, float]], float]:
        """The buckets as Prometheus wants them, each with all shorter durations; and the sum in seconds."""
        labels = (*(f"{bound:g}" for bound in self._bounds), "+Inf")
        return list(zip(labels, map(float, accumulate(self._counts)), strict=True)), self._seconds
