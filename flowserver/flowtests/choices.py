"""How values of made-up data are chosen."""

from dataclasses import dataclass
from random import Random
from typing import Final

from flowserver.base.json_values import Json

PLAIN_SIZE: Final = 2
"""Elements of a list in plain data."""


@dataclass(frozen=True, slots=True)
class Choices:
    """How values are chosen: at random, or the plainest if `random` is None."""

    random: Random | None = None
    sizes: tuple[int, ...] = (PLAIN_SIZE,)
    """Sizes of lists; nested ones have at most PLAIN_SIZE elements."""

    @property
    def largest(self) -> int:
        """The largest size of a list."""
        return PLAIN_SIZE if self.random is None else max(self.sizes)

    def size(self, level: int) -> int:
        """The size of a list that is so deep in the data."""
        if self.random is None:
            return PLAIN_SIZE
        size = self.random.choice(self.sizes)
        return min(size, PLAIN_SIZE) if level > 1 else size

    def one_of(self, values: tuple[Json, ...]) -> Json:
        """One of several values."""
        return values[0] if self.random is None else self.random.choice(values)

    def is_taken(self, share: float) -> bool:
        """Whether something is there that need not be; in plain data it is."""
        return self.random is None or self.random.random() < share
