"""Folds over histories that are kept between requests, so that each request reads only the events that are new."""

from typing import Generic, Protocol, TypeVar

from cachetools import LRUCache


class Fold(Protocol):
    """A fold over the events of one execution; its length is how much it keeps."""

    @property
    def last_event_id(self) -> int:
        """The last event that it has taken in."""

    def __len__(self) -> int: ...


F = TypeVar("F", bound=Fold)


class KeptFolds(Generic[F]):
    """The most recently used folds, by execution id. Use it in the event loop."""

    def __init__(self, kept_max: int) -> None:
        """`kept_max` bounds the lengths of all folds together."""
        self.kept_max = kept_max
        self._kept: LRUCache[str, F] = LRUCache(kept_max, getsizeof=len)

    def folds(self) -> list[F]:
        """Those that are kept."""
        return list(self._kept.values())

    def take(self, execution_id: str) -> F | None:
        """Take the fold out, so that only the caller adds to it. A request that comes meanwhile makes its own."""
        return self._kept.pop(execution_id, None)

    def keep(self, execution_id: str, fold: F) -> None:
        """Put a fold back, unless a newer one is there or it is too large."""
        other = self._kept.get(execution_id)
        is_newer = other is None or other.last_event_id < fold.last_event_id
        if is_newer and len(fold) <= self.kept_max:
            self._kept[execution_id] = fold
