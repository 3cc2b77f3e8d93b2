"""Folds over histories that are kept between requests, so that each request reads only the events that are new."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from operator import attrgetter
from typing import Final, Generic, Protocol, TypeVar
from weakref import WeakValueDictionary

from cachetools import LRUCache
from sqlalchemy import Connection

from flowserver.base.errors import InvalidArgument
from flowserver.base.limits import Limits
from flowserver.machine.event_details import HistoryEvent
from flowserver.store.executions.history import scan_history

EVENTS_BETWEEN_CHECKS: Final = 50
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
    """The most recently used folds, by execution id. Use it in the event loop."""

    def __init__(self, make: Callable[[], F], limits: Limits) -> None:
        """`make` makes an empty fold."""
        self._make = make
        self._kept: LRUCache[str, F] = LRUCache(limits.step_paths_bytes_max, getsizeof=attrgetter("size"))
        self._in_use: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def folds(self) -> list[F]:
        """Those that are kept."""
        return list(self._kept.values())

    @asynccontextmanager
    async def use(self, execution_id: str) -> AsyncIterator[F]:
        """The execution's fold, for the length of a block. Only the block adds to it; others wait, and find it read.

        If the block raises, the fold is dropped: a thread may still add to it.
        """
        lock = self._in_use.setdefault(execution_id, asyncio.Lock())
        async with lock:  # else each of many requests would read the whole history
            fold = self._kept.pop(execution_id, None)
            fold = self._make() if fold is None else fold
            yield fold
            if fold.size <= self._kept.maxsize:
                self._kept[execution_id] = fold


def read_on(connection: Connection, execution_id: str, fold: Fold, limits: Limits, up_to: int | None = None) -> None:
    """Add the events that are new, or of these the ones up to that id.

    Raises InvalidArgument if the fold then takes more than `step_paths_bytes_max`.
    """
    with closing(scan_history(connection, execution_id, from_event_id=fold.last_event_id + 1)) as events:
        for event in events:
            if up_to is not None and event.event_id > up_to:
                break
            fold.add(event)
            if event.event_id % EVENTS_BETWEEN_CHECKS == 0:
                _check_size(execution_id, fold, limits)
    _check_size(execution_id, fold, limits)


def _check_size(execution_id: str, fold: Fold, limits: Limits) -> None:
    most = limits.step_paths_bytes_max
    if fold.size > most:
        reason = f"the paths of its steps take more than {most} bytes, the limit step_paths_bytes_max"
        raise InvalidArgument(f"execution {execution_id}: {reason}")
