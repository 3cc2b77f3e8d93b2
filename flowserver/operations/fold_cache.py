"""Folds over histories that are kept between requests, so that each request reads only the events that are new."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from itertools import chain
from math import inf
from operator import attrgetter
from time import monotonic
from typing import Final, Generic, Protocol, TypeVar
from weakref import WeakValueDictionary

from cachetools import Cache, LRUCache
from sqlalchemy import Connection

from flowserver.base.errors import InvalidArgument
from flowserver.base.limits import Limits
from flowserver.concurrency.background_throttle import yield_to_writer
from flowserver.machine.event_details import HistoryEvent
from flowserver.store.executions.history_facts import scan_facts

EVENTS_AT_ONCE: Final = 20
"""Events that are folded without a pause, in some 0.1 ms."""

EVENTS_BETWEEN_CHECKS: Final = 3 * EVENTS_AT_ONCE
"""The size of a fold is looked at once for so many events: that takes as long as folding one does."""


class Fold(Protocol):
    """A fold over the events of one execution."""

    @property
    def last_event_id(self) -> int:
        """The last event that it has taken in."""

    @property
    def size(self) -> int:
        """About how many bytes it takes."""

    def add(self, event: HistoryEvent) -> object:
        """Take the next event in."""


F = TypeVar("F", bound=Fold)


class KeptFolds(Generic[F]):
    """The most recently used folds, by execution id; before them those of executions that are followed, which need
    theirs for each event. Use it in the event loop.
    """

    def __init__(self, make: Callable[[], F], limits: Limits) -> None:
        """`make` makes an empty fold."""
        self._make = make
        self._kept: LRUCache[str, F] = LRUCache(limits.step_paths_bytes_max, getsizeof=attrgetter("size"))
        self._held: Cache[str, F] = Cache(limits.followed_summaries_bytes_max, getsizeof=attrgetter("size"))
        """Of executions that are followed; the first ones, if there is no room for all."""
        self._followers: Counter[str] = Counter()
        self._in_use: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def folds(self) -> list[F]:
        """Those that are kept."""
        return [*self._held.values(), *self._kept.values()]

    @contextmanager
    def following(self, execution_id: str) -> Iterator[None]:
        """For the length of the block no other fold takes the place of the execution's, if there is room to hold it."""
        self._followers[execution_id] += 1
        try:
            yield
        finally:
            self._followers[execution_id] -= 1
            if not self._followers[execution_id]:
                del self._followers[execution_id]
                fold = self._held.pop(execution_id, None)
                if fold is not None:
                    self._keep(execution_id, fold)

    @asynccontextmanager
    async def use(self, execution_id: str) -> AsyncIterator[F]:
        """The execution's fold, for the length of a block. Only the block adds to it; others wait, and find it read.

        If the block raises, the fold is dropped: a thread may still add to it.
        """
        lock = self._in_use.setdefault(execution_id, asyncio.Lock())
        async with lock:  # else each of many requests would read the whole history
            cache = self._held if execution_id in self._held else self._kept
            fold = cache.pop(execution_id, None)
            fold = self._make() if fold is None else fold
            yield fold
            self._keep(execution_id, fold)

    def _keep(self, execution_id: str, fold: F) -> None:
        if execution_id in self._followers and self._held.currsize + fold.size <= self._held.maxsize:
            self._held[execution_id] = fold
        elif fold.size <= self._kept.maxsize:
            self._kept[execution_id] = fold


def read_on(
    connection: Connection,
    execution_id: str,
    fold: Fold,
    limits: Limits,
    up_to: int | None = None,
    seconds: float = inf,
) -> bool:
    """Add the events that are new, or of these the ones up to that id; for about so many seconds.

    Returns whether it has added all. Raises InvalidArgument if the fold then takes more than `step_paths_bytes_max`.
    """
    last = inf if up_to is None else up_to
    until = monotonic() + seconds
    with closing(scan_facts(connection, execution_id, from_event_id=fold.last_event_id + 1)) as rows:
        for event in chain.from_iterable(rows):
            if event.event_id > last:
                break
            fold.add(event)
            if event.event_id % EVENTS_AT_ONCE == 0:
                yield_to_writer()
                if event.event_id % EVENTS_BETWEEN_CHECKS == 0:
                    _check_size(execution_id, fold, limits)
                    if monotonic() > until:
                        return False
    _check_size(execution_id, fold, limits)
    return True


def _check_size(execution_id: str, fold: Fold, limits: Limits) -> None:
    most = limits.step_paths_bytes_max
    if fold.size > most:
        reason = f"the paths of its steps take more than {most} bytes, the limit step_paths_bytes_max"
        raise InvalidArgument(f"execution {execution_id}: {reason}")
