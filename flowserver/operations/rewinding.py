"""Folds that can also be had as they were after an earlier event, without reading the history from its begin.

Theory of operation. While a fold takes events in, it is pickled now and then. The state after an event is the
snapshot before it, and the events from there on. Snapshots are bytes, so they do not change with the fold, and a fold
made of one belongs to the caller. When they take too much, every second one is dropped, and from then on half as many
are made.
"""

import pickle
import zlib
from bisect import bisect_right
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeVar

from sqlalchemy import Connection

from flowserver.engine.engine import Engine
from flowserver.machine.event_details import HistoryEvent
from flowserver.operations.fold_cache import Fold, KeptFolds, read_on

EVENTS_BETWEEN: Final = 1_000
"""Events from one snapshot to the next; reading and folding them takes some 10 ms of the processor."""

BYTES_PER_EVENT: Final = 100
"""A larger fold takes longer to pickle, so it is pickled less often: once for as many events as pay for its size."""

ENTRIES_MAX: Final = 2_000
"""What a fold keeps when it is pickled, at most: pickling is one call, which keeps other threads waiting for 10 ms."""

SNAPSHOT_BYTES: Final = 100
"""What a snapshot takes besides its bytes."""


class SizedFold(Fold, Protocol):
    """A fold that tells how many entries it keeps."""

    def __len__(self) -> int:
        """How many objects it keeps."""


F = TypeVar("F", bound=SizedFold)
T = TypeVar("T")


class Rewindable(Generic[F]):
    """A fold with snapshots of its past."""

    def __init__(self, make: Callable[[], F], bytes_max: int) -> None:
        """`make` makes an empty fold; `bytes_max` bounds the snapshots."""
        self.newest = make()
        self._make = make
        self._bytes_max = bytes_max
        self._bytes = 0
        self._event_ids: list[int] = []
        self._snapshots: list[bytes] = []
        self._between = EVENTS_BETWEEN
        self._added = 0
        """Events since the last snapshot."""

    @property
    def last_event_id(self) -> int:
        """The last event that it has taken in."""
        return self.newest.last_event_id

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return self.newest.size + self._bytes

    def add(self, event: HistoryEvent) -> None:
        """Take the next event in."""
        self.newest.add(event)
        self._added += 1
        if self._added >= self._between and self.newest.size <= self._added * BYTES_PER_EVENT:
            self._keep()

    def before(self, event_id: int) -> Callable[[], F]:
        """Makes a fold of its own, which has taken in some of the events up to this one; add the others to it."""
        place = bisect_right(self._event_ids, event_id)
        return self._make if place == 0 else partial(_thawed, self._snapshots[place - 1])

    def _keep(self) -> None:
        if len(self.newest) > ENTRIES_MAX:
            return
        snapshot = zlib.compress(pickle.dumps(self.newest), 1)
        self._added = 0
        self._event_ids.append(self.newest.last_event_id)
        self._snapshots.append(snapshot)
        self._bytes += len(snapshot) + SNAPSHOT_BYTES
        while self._bytes > self._bytes_max:
            del self._event_ids[::2], self._snapshots[::2]
            self._between *= 2
            self._bytes = sum(len(each) + SNAPSHOT_BYTES for each in self._snapshots)


def _thawed(snapshot: bytes) -> Any:
    return pickle.loads(zlib.decompress(snapshot))  # noqa: S301 - this process made it, and nothing stores it


async def read_at(
    kept: KeptFolds[Rewindable[F]], engine: Engine, execution_id: str, at: int | None, show: Callable[[F], T]
) -> T:
    """What `show` makes of the fold as it was after the event `at`, or as it is; it runs in a thread of slow reads.

    A request for an earlier event keeps no other one waiting, once the fold has read so far.
    """

    def read(connection: Connection, fold: Rewindable[F]) -> T:
        read_on(connection, execution_id, fold, engine.limits, at)
        return show(fold.newest)

    def read_again(connection: Connection, make: Callable[[], F], up_to: int) -> T:
        fold = make()
        read_on(connection, execution_id, fold, engine.limits, up_to)
        return show(fold)

    async with kept.use(execution_id) as fold:
        if at is None or at >= fold.last_event_id:
            return await engine.slow_reads.ask(partial(read, fold=fold))
        make = fold.before(at)
    return await engine.slow_reads.ask(partial(read_again, make=make, up_to=at))
