"""How much the tests of one request may do together, counted while they run.

A command runs as many tests as its user wants. A server does not: it gives all tests of a request one budget, and
pauses between their turns. A unit is an event of ordinary size, about 10 µs and 1 KiB of memory; larger events and
long searches among mocks count as several.
"""

from collections.abc import Callable
from math import inf
from typing import Final

UNIT_BYTES: Final = 1_024
"""Of an event's detail and path, per unit."""

UNIT_COMPARISONS: Final = 16
"""Of names with each other, per unit."""


class BudgetSpent(Exception):
    """The tests have done as much as they may."""


def _go_on() -> None:
    """The pause of a command: none."""


class Budget:
    """What is left; without a maximum there is always more."""

    def __init__(self, units_max: float = inf, pause: Callable[[], None] = _go_on) -> None:
        self.units_max = units_max
        self._left = units_max
        self._pause = pause

    def spend(self, units: int) -> None:
        """Count work that was done, and pause; raises BudgetSpent."""
        self._left -= units
        self._pause()
        if self._left < 0:
            raise BudgetSpent

    def spend_on_names(self, comparisons: int) -> None:
        """Count a search among so many names; raises BudgetSpent."""
        if comparisons >= UNIT_COMPARISONS:
            self.spend(comparisons // UNIT_COMPARISONS)
