"""How much the tests of one request may do together, counted while they run.

A command runs as many tests as its user wants. A server does not: it gives all tests of a request one budget, and
pauses between their turns. A unit is an event of ordinary size, about 10 µs and 1 KiB of memory; larger events and
long searches among mocks count as several. Mappings and conditions that visit much and put little out count as few
units, so a budget has a time, too.
"""

from collections.abc import Callable
from math import inf
from typing import Final

UNIT_BYTES: Final = 1_024
"""Of an event's detail and path, and of large values, per unit."""

UNIT_COMPARISONS: Final = 16
"""Of names with each other, per unit."""


class BudgetSpent(Exception):
    """The tests have done as much as they may; the message says what they have used up."""


def _go_on() -> None:
    """The pause of a command: none."""


def _no_time() -> float:
    """The clock of a command: none."""
    return 0.0


class Budget:
    """What is left; without maxima there is always more."""

    def __init__(
        self,
        units_max: float = inf,
        seconds_max: float = inf,
        pause: Callable[[], None] = _go_on,
        clock: Callable[[], float] = _no_time,
    ) -> None:
        """`clock` is the processor time of the thread, in seconds."""
        self._units_max = units_max
        self._seconds_max = seconds_max
        self._pause = pause
        self._clock = clock
        self._left = units_max
        self._ends_at = clock() + seconds_max

    def spend(self, units: int) -> None:
        """Count work that was done, and pause; raises BudgetSpent."""
        self._left -= units
        self._pause()
        if self._left < 0:
            raise BudgetSpent(f"made more than {self._units_max:g} events")
        if self._clock() > self._ends_at:
            raise BudgetSpent(f"taken more than {self._seconds_max:g} seconds of the processor")

    def spend_on_names(self, comparisons: int) -> None:
        """Count a search among so many names; raises BudgetSpent."""
        if comparisons >= UNIT_COMPARISONS:
            self.spend(comparisons // UNIT_COMPARISONS)
