"""Step summaries that can also be had as they were after an earlier event, without reading the history from its begin.

Theory of operation. While a fold takes events in, it is pickled now and then. The state after an event is the snapshot
before it, and the events from there on. Snapshots are bytes, so they do not change with the fold, and a fold made of
one belongs to the caller. A live history makes none in the event loop (`takes_long`). When they take too much, every
second one is dropped, and from then on half as many are made.
"""

import pickle
import zlib
from bisect import bisect_right
from collections.abc import Callable
from functools import partial
from io import BytesIO
from itertools import islice
from typing import Final

from flowserver.machine.event_details import HistoryEvent
from flowserver.machine.step_summary_fold import ENTRY_BYTES, Seen, StepSummaries

EVENTS_BETWEEN: Final = 1_000
"""Events from one snapshot to the next; reading and folding them takes some 10 ms of the processor."""

LATER: Final = 100
"""Events after which a snapshot that could not be made is tried again."""

BYTES_PER_EVENT: Final = 100
"""A larger fold takes longer to pickle, so it is pickled less often: once for as many events as pay for its size."""

ENTRIES_MAX: Final = 2_000
"""What a fold keeps besides loops when it is pickled, at most: that is one call, which keeps other threads waiting for
10 ms.
"""

VISITS_PER_ENTRY: Final = 5
"""So many visits are pickled in the time of an entry."""

LOOPS_AT_ONCE: Final = 500
"""Loops that one call pickles. Those of a foreach in a foreach are kept after their end, so there may be very many."""

LOOP_BYTES: Final = 200
"""A loop is pickled as fast as other things of this size, though it takes more memory."""

SNAPSHOT_BYTES: Final = 100
"""What a snapshot takes besides its bytes."""


class RewindableSummaries:
    """Step summaries with snapshots of their past."""

    def __init__(self, make: Callable[[], StepSummaries], bytes_max: int) -> None:
        """`make` makes empty summaries; `bytes_max` bounds the snapshots."""
        self.newest = make()
        self._make = make
        self._bytes_max = bytes_max
        self._bytes = 0
        self._event_ids: list[int] = []
        self._snapshots: list[bytes] = []
        self._between = EVENTS_BETWEEN
        self._added = 0
        """Events since the last snapshot."""
        self._due = self._between
        """How many of them make the next one due."""

    @property
    def last_event_id(self) -> int:
        """The last event that it has taken in."""
        return self.newest.last_event_id

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return self.newest.size + self._bytes

    def add(self, event: HistoryEvent) -> Seen:
        """Take the next event in."""
        seen = self.newest.add(event)
        self._added += 1
        if self._added >= self._due:
            self._keep()
        return seen

    def takes_long(self, events: int) -> bool:
        """Whether it may make a snapshot when it takes in so many events, so that this belongs in a thread."""
        return self._added + events >= self._due

    def before(self, event_id: int) -> Callable[[], StepSummaries]:
        """Makes a fold of its own, which has taken in some of the events up to this one; add the others to it."""
        place = bisect_right(self._event_ids, event_id)
        return self._make if place == 0 else partial(_thawed, self._snapshots[place - 1])

    def _keep(self) -> None:
        """Make a snapshot; or later, if too few events have paid for it, or if it would take too long."""
        loops = len(self.newest.loops or ())
        paid_by = (self.newest.size - loops * (ENTRY_BYTES - LOOP_BYTES)) // BYTES_PER_EVENT
        entries = len(self.newest) - loops + self.newest.visits_kept // VISITS_PER_ENTRY
        if entries > ENTRIES_MAX or self._added < paid_by:
            self._due += LATER
            return
        snapshot = _frozen(self.newest)
        self._added = 0
        self._event_ids.append(self.newest.last_event_id)
        self._snapshots.append(snapshot)
        self._bytes += len(snapshot) + SNAPSHOT_BYTES
        while self._bytes > self._bytes_max:
            del self._event_ids[::2], self._snapshots[::2]
            self._between *= 2
            self._bytes = sum(len(each) + SNAPSHOT_BYTES for each in self._snapshots)
        self._due = self._between


def _frozen(summaries: StepSummaries) -> bytes:
    """First loops, some at a time, then what refers to them: no call keeps other threads waiting for long."""
    written = BytesIO()
    pickler = pickle.Pickler(written, pickle.HIGHEST_PROTOCOL)
    loops = summaries.loops.all() if summaries.loops is not None else iter(())
    while some := list(islice(loops, LOOPS_AT_ONCE)):
        pickler.dump(some)
    pickler.dump(summaries)
    return zlib.compress(written.getvalue(), 1)


def _thawed(snapshot: bytes) -> StepSummaries:
    unpickler = pickle.Unpickler(BytesIO(zlib.decompress(snapshot)))  # noqa: S301 - this process made it, and nothing stores it
    while not isinstance(thawed := unpickler.load(), StepSummaries):
        pass
    return thawed
