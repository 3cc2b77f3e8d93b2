"""How the functions fare that this process calls: calls, errors and times, in memory.

The last minutes are for people, what has been counted since the start of the process for metrics.

A call costs a look-up and a few additions. Only the event loop's thread counts; other threads may read.
"""

import time
from bisect import bisect_left
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from flowserver.base.limits import Limits
from flowserver.metrics.bounded_names import OTHER, count_bounded
from flowserver.metrics.durations import Durations

SLICE_SECONDS: Final = 30
SLICES: Final = 10
WINDOW_SECONDS: Final = SLICE_SECONDS * SLICES
"""What is shown is of so many seconds, the last slice of which has only begun."""

FUNCTIONS_MAX: Final = 1_000
"""Functions of which a process keeps numbers; a further one takes the place of the one called least recently."""

ERROR_NAMES_MAX: Final = 10
"""Names of errors that a slice counts one by one."""


OTHER_ERRORS: Final = OTHER

BOUNDS_MS: Final = tuple(1.2**power for power in range(101))
"""Upper bounds of the times that are counted together, from 1 ms to a day: so a quantile is at most 20 % too large."""

FunctionKey = tuple[str, str]
"""Service (perhaps with a qualifier) and function, as they are registered."""


@dataclass(frozen=True, slots=True)
class Health:
    """A function's calls of the last WINDOW_SECONDS on this node. Times are None without a call."""

    calls: int
    errors: int
    errors_by_name: dict[str, int]
    """The most frequent first."""
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    in_flight: int
    """Calls that are made now."""


class _Slice:
    __slots__ = ("calls", "errors", "number", "times")

    def __init__(self, number: int) -> None:
        self.number = number
        self.calls = 0
        self.errors: dict[str, int] = {}
        self.times: dict[int, int] = {}


class FunctionTotals:
    """The calls of one function, or of all that have no numbers of their own, since the start of the process."""

    __slots__ = ("durations", "in_flight", "results", "results_max", "retries")

    def __init__(self, results_max: int) -> None:
        self.results_max = results_max
        self.in_flight = 0
        self.results: dict[str | None, int] = {}
        """Calls by the names of their errors, and by None if they succeeded."""
        self.retries = 0
        """Those of them that were not the first attempt."""
        self.durations = Durations()


class FunctionCalls:
    """The calls of one function."""

    __slots__ = ("_slices", "_totals", "in_flight")

    def __init__(self, totals: FunctionTotals) -> None:
        self.in_flight = 0
        self._totals = totals
        self._slices: deque[_Slice] = deque([_Slice(-1)], maxlen=SLICES)

    def begun(self) -> None:
        """A call begins."""
        self.in_flight += 1
        self._totals.in_flight += 1

    def was_cancelled(self) -> None:
        """A call is given up, and not counted."""
        self.in_flight -= 1
        self._totals.in_flight -= 1

    def ended(self, now: float, seconds: float, error: str | None, attempt: int = 1) -> None:
        """A call has ended with this error, or None."""
        self.was_cancelled()
        number, last = int(now / SLICE_SECONDS), self._slices[-1]
        if last.number != number:
            last = _Slice(number)
            self._slices.append(last)
        last.calls += 1
        place = bisect_left(BOUNDS_MS, seconds * 1000)
        last.times[place] = last.times.get(place, 0) + 1
        if error is not None:
            known = error if error in last.errors or len(last.errors) < ERROR_NAMES_MAX else OTHER_ERRORS
            last.errors[known] = last.errors.get(known, 0) + 1
        totals = self._totals
        count_bounded(totals.results, error, totals.results_max)
        totals.retries += attempt > 1
        totals.durations.add(seconds)

    def health(self, now: float) -> Health:
        """The numbers of the last WINDOW_SECONDS."""
        first = int(now / SLICE_SECONDS) - SLICES + 1
        calls, errors, times = 0, dict[str, int](), dict[int, int]()
        for each in list(self._slices):
            if each.number >= first:
                calls += each.calls
                for name, count in list(each.errors.items()):
                    errors[name] = errors.get(name, 0) + count
                for place, count in list(each.times.items()):
                    times[place] = times.get(place, 0) + count
        by_count = dict(sorted(errors.items(), key=lambda each: (-each[1], each[0])))
        p50, p95, p99 = (_quantile(times, share) for share in (0.5, 0.95, 0.99))
        return Health(calls, sum(errors.values()), by_count, p50, p95, p99, self.in_flight)


class FunctionHealth:
    """The calls of each function; of FUNCTIONS_MAX at most."""

    def __init__(self, limits: Limits, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self._limits = limits
        self._totals: dict[FunctionKey, FunctionTotals] = {}
        self._functions: OrderedDict[FunctionKey, FunctionCalls] = OrderedDict()

    def begun(self, key: FunctionKey) -> FunctionCalls:
        """A call of the function begins; the caller says how it `ended`, or that it `was_cancelled`."""
        calls = self._functions.get(key)
        if calls is None:
            if len(self._functions) >= FUNCTIONS_MAX:
                self._functions.popitem(last=False)
            calls = self._functions[key] = FunctionCalls(self._totals_of(key))
        else:
            self._functions.move_to_end(key)
        calls.begun()
        return calls

    def totals(self) -> list[tuple[FunctionKey, FunctionTotals]]:
        """The calls of each of the first functions that were called, and of the others under the key ("", OTHER)."""
        return list(self._totals.items())

    def keys(self) -> list[FunctionKey]:
        """The functions that were called, by name."""
        return sorted(self._functions)

    def of(self, key: FunctionKey) -> Health:
        """The function's numbers, zeros if it was not called."""
        calls = self._functions.get(key) or FunctionCalls(FunctionTotals(0))
        return calls.health(self.now())

    def _totals_of(self, key: FunctionKey) -> FunctionTotals:
        if key not in self._totals and len(self._totals) >= self._limits.metric_functions_max:
            key = "", OTHER
        return self._totals.setdefault(key, FunctionTotals(self._limits.metric_names_max))


def _quantile(times: dict[int, int], share: float) -> float | None:
    """The bound up to which this share of the calls took."""
    left = share * sum(times.values())
    for place in sorted(times):
        left -= times[place]
        if left <= 0:
            return round(BOUNDS_MS[min(place, len(BOUNDS_MS) - 1)], 1)
    return None
