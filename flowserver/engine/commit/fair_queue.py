"""Fair scheduling of the items that wait for the writer: no execution starves another.

There are three kinds of items: the engine's messages to executions (`own`), requests of callers (`requested`), and
`Continue` messages (`continuing`), which a hot loop produces without end. In each kind every execution has a FIFO of
its own (a `Write` has one for itself), and a batch takes one item from each FIFO before it takes a second one from any.
The FIFOs of requests are divided among the callers' access keys, which take turns: a key with few requests does not
wait for all those of a key that floods.

- Own items come before requested ones, which have a share of each batch: running work does not wait for new work.
- Continuing items come last, and in every other batch at most while other items wait. The more steps they made, the
  fewer the next batch takes.
- The writer may answer only the first items of a batch, if all were too much for one transaction. The others return to
  the front of their FIFOs in order, so an execution falls behind others only once it was served.
- A kind without an answered item in a batch is owed one. Owed items come first in a later batch, the longest owed kind
  before the others, so every item is answered in the end.
- In each batch stops precede all other items. So a stopped execution is not loaded, because none of its other messages
  came first, and the work of another execution never postpones a stop. A batch answers all its stops and at least one
  more item, unless they exceed the memory bound: then the next batch is smaller.
"""

import asyncio
from collections.abc import Hashable
from itertools import chain
from typing import Any, Final, TypeGuard

from flowserver.concurrency.keyed_fifos import KeyedFifos, NestedFifos
from flowserver.engine.commit.batch_items import Envelope, Item
from flowserver.machine.messages import Continue, Stop

BATCH_MAX: Final = 200
"""Items in one transaction. As measured, 100 items already share the cost of an fsync so well that more gain little."""

DIVIDED_MIN: Final = 16
"""After a divided batch the next one has about as many items as were answered, but at least this number, unless they
exceeded the memory bound. What is loaded for an unanswered item is loaded again."""

REQUESTED_SHARE: Final = 50
"""Items in a full batch that are reserved for requests of callers."""

CONTINUING_STEPS: Final = 100
"""After a batch whose continuing items made more steps, the next one takes half as many of them."""

SHARED_BATCHES: Final = 20
"""After so many batches in which no other execution waited, one execution may make long turns."""

Pending = tuple[Item, asyncio.Future[Any]]
Fifos = KeyedFifos[Pending] | NestedFifos[Pending]


class FairQueue:
    """Items with the futures of their answers. Call `answered` after each `take`."""

    def __init__(self, count_max: int = BATCH_MAX) -> None:
        self._own = KeyedFifos[Pending]()
        self._requested = NestedFifos[Pending]()
        self._continuing = KeyedFifos[Pending]()
        self._kinds: tuple[Fifos, ...] = (self._own, self._requested, self._continuing)
        self._batch_max = self._count_max = count_max
        self._taken: list[tuple[Fifos, Pending]] = []
        self._owed: list[Fifos] = []
        """Kinds without an answered item in the last batches, the longest waiting first."""
        self._continuing_max = count_max
        self._has_continued = False
        self._batches_alone = SHARED_BATCHES
        self._sole: Hashable = None
        self.is_shared = False
        """Whether several executions had items in the last batches. Readable from any thread."""

    def __len__(self) -> int:
        return len(self._own) + len(self._requested) + len(self._continuing)

    @property
    def requested(self) -> int:
        """How many requests of callers wait."""
        return len(self._requested)

    def unanswered(self) -> list[Pending]:
        """All waiting items, and those of the last batch."""
        return [*chain.from_iterable(self._kinds), *(pending for _, pending in self._taken)]

    def put(self, pending: Pending, *, by_caller: bool) -> None:
        """Add an item."""
        item = pending[0]
        if by_caller:
            self._requested.append((item.caller, _key_of(item)), pending)
        elif isinstance(item, Envelope) and isinstance(item.message, Continue):
            self._continuing.append(_key_of(item), pending)
        else:
            self._own.append(_key_of(item), pending)

    def take(self) -> list[Pending]:
        """The items of the next batch: stops first, then the items of each execution in their order."""
        if not len(self):
            self._taken = []
            return []
        self._batches_alone = 0 if self._has_company() else self._batches_alone + 1
        self.is_shared = self._batches_alone < SHARED_BATCHES
        kinds = self._kinds[:2] if self._has_continued else self._kinds
        self._owed = [fifos for fifos in self._owed if fifos]
        first = self._owed[: self._count_max]
        self._owed += [fifos for fifos in kinds if fifos and fifos not in self._owed]
        self._taken = [(fifos, fifos.pop()) for fifos in first]
        count_max = self._count_max - len(first)
        own = min(len(self._own), count_max - min(len(self._requested), count_max * REQUESTED_SHARE // BATCH_MAX))
        requested = min(len(self._requested), count_max - own)
        again = max(0, own - len(self._own.keys))  # second items of an execution, which come last
        self._pop(self._own, own - again)
        self._pop(self._requested, requested)
        self._pop(self._own, again)
        if not self._has_continued or all(fifos is self._continuing for fifos, _ in self._taken):
            room = max(not self._taken, self._count_max - len(self._taken))
            self._pop(self._continuing, min(len(self._continuing), self._continuing_max, room))
        self._taken = _stops_first(self._taken)
        return [pending for _, pending in self._taken]

    def _pop(self, fifos: Fifos, count: int) -> None:
        self._taken += [(fifos, fifos.pop()) for _ in range(count)]

    def _has_company(self) -> bool:
        """Whether items of another execution wait than in the last batch. Continuing items do not count."""
        given: Fifos = self._own if self._own else self._requested
        if not given:
            return False
        before, self._sole = self._sole, given.first
        return before != self._sole or any(fifos.has_other_than(self._sole) for fifos in self._kinds)

    def answered(self, count: int, *, continued_steps: int = 0, exceeded_memory: bool = False) -> None:
        """The first `count` items of the batch are answered; the others wait again.

        `continued_steps` is the number of steps that continuing items made. `exceeded_memory` says that the batch was
        divided by the memory bound.
        """
        done, undone = self._taken[:count], self._taken[count:]
        for fifos, pending in reversed(undone):
            if isinstance(fifos, NestedFifos):
                fifos.put_back((pending[0].caller, _key_of(pending[0])), pending)
            else:
                fifos.put_back(_key_of(pending[0]), pending)
        left = {fifos for fifos, _ in undone}
        served = {fifos for fifos, pending in done if fifos not in left or not _stops(pending[0])}
        self._owed = [fifos for fifos in self._owed if fifos not in served]
        self._has_continued = self._continuing in served
        if undone:
            self._count_max = min(self._count_max, max(1 if exceeded_memory else DIVIDED_MIN, count))
        else:
            self._count_max = min(self._batch_max, 2 * self._count_max)
        if continued_steps > CONTINUING_STEPS:
            self._continuing_max = max(1, self._continuing_max // 2)
        elif continued_steps:
            self._continuing_max = min(self._batch_max, self._continuing_max * 2)


def _stops_first(taken: list[tuple[Fifos, Pending]]) -> list[tuple[Fifos, Pending]]:
    """Stops before all other items, except for stops of executions that start in the same batch."""
    if not any(_stops(pending[0]) for _, pending in taken):
        return taken
    new = {item.execution_id for _, (item, _) in taken if isinstance(item, Envelope) and item.new is not None}
    return sorted(taken, key=lambda each: not (_stops(each[1][0]) and each[1][0].execution_id not in new))


def _stops(item: Item) -> TypeGuard[Envelope]:
    return isinstance(item, Envelope) and isinstance(item.message, Stop)


def _key_of(item: Item) -> Hashable:
    return item.execution_id if isinstance(item, Envelope) else id(item)
