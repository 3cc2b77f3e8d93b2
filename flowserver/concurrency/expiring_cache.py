"""A cache of reads for a moment, whose values many callers ask for and other processes may change.

A change that this process makes or hears of is visible at once: `forget` begins a new cache, and a read that began
before it goes to the old one.
"""

from collections.abc import Callable, Coroutine, Hashable
from functools import partial
from time import monotonic
from typing import Any, Generic, TypeVar

from flowserver.concurrency.single_flight import SingleFlight

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class ExpiringCache(Generic[K, V]):
    """Values by key, each for `seconds` after its read. Make and use it inside one event loop."""

    def __init__(self, read: Callable[[K], Coroutine[Any, Any, V]], *, seconds: float, keys_max: int) -> None:
        """All values are dropped when more than `keys_max` keys were asked for."""
        self._read = read
        self._seconds = seconds
        self._keys_max = keys_max
        self._known: dict[K, tuple[V, float]] = {}
        self._reads: SingleFlight[K, V] = SingleFlight()

    async def find(self, key: K) -> V:
        """The value; callers that need a read at once share one. Raises what the read does.

        A value that is equal to the one before is the same object.
        """
        known = self._known.get(key)
        if known is not None and monotonic() < known[1]:
            return known[0]
        return await self._reads.run(key, partial(self._fill, key, self._known))

    def cached(self, key: K) -> V | None:
        """What `find` would return without a read; None if it would read."""
        known = self._known.get(key)
        return None if known is None or monotonic() >= known[1] else known[0]

    def forget(self) -> None:
        """Some value has changed."""
        self._known = {}
        self._reads.forget()

    async def _fill(self, key: K, into: dict[K, tuple[V, float]]) -> V:
        value = await self._read(key)
        before = into.get(key)
        if before is not None and before[0] == value:
            value = before[0]
        elif len(into) >= self._keys_max:
            into.clear()
        into[key] = value, monotonic() + self._seconds
        return value
