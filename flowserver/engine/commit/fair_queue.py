"""The items that wait for the writer, and the order in which batches take them: no execution keeps others waiting.

There are three kinds of items: what the engine itself has to say to executions (`own`), what callers ask for (`asked`),
and executions that only go on with what is ready (`going_on`), as hot loops do without end. In each kind, every
execution has a line of its own, and a batch takes one item from each line before it takes a second from any.

- Own items go before asked ones, which have a share of each batch. What runs does not wait for what only begins.
- Executions that go on come last, in every other batch at most while anything else waits. The more steps they made, the
  fewer the next batch takes.
- The writer may answer only the first items of a batch: all of them were too much for one transaction. The others go
  back to the front of their lines, in their order, so a line is behind others only once it has been served.
- A kind of which a batch answered no item is owed one: it comes first in a later batch, the longest owed before all.
  So nothing waits for ever, however few items each batch answers.
- In each batch stops come before all that. An execution that is stopped need not be read, because none of its other
  messages came first, and the work of another execution never divides the batch before a stop. A batch answers all
  its stops and one more item at least, unless they are too much for the memory: then the next one takes fewer.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Hashable, Iterator, KeysView
from itertools import chain
from typing import Any, Final, TypeGuard

from flowserver.engine.commit.items import Envelope, Item
from flowserver.machine.messages import Continue, Stop

BATCH_MAX: Final = 200
"""Items in one transaction; measured: a hundred already share the cost of an fsync so far that more gains little."""

DIVIDED_MIN: Final = 16
"""After a batch of which only the first items were answered, the next one has about as many, but at least this number
unless they were too much for the memory: what is loaded for an item that is not answered is loaded again."""

ASKED_SHARE: Final = 50
"""Places in a full batch that what callers ask for has in any case."""

GOING_ON_STEPS: Final = 100
"""After a batch in which executions that go on made more steps, the next one takes half as many of them."""

SHARED_BATCHES: Final = 20
"""After so many batches for which nothing else waited, an execution need not be brief for the sake of others."""

Asked = tuple[Item, asyncio.Future[Any]]


class _Lines:
    """A line for each execution, served in turn. Every other change stands for itself."""

    def __init__(self) -> None:
        self._lines: OrderedDict[Hashable, deque[Asked]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def keys(self) -> KeysView[Hashable]:
        """One for each line: an execution's id, or that of a single change."""
        return self._lines.keys()

    def append(self, asked: Asked) -> None:
        self._line_of(asked)[1].append(asked)
        self._count += 1

    def pop(self) -> Asked:
        key, line = self._lines.popitem(last=False)
        asked = line.popleft()
        if line:
            self._lines[key] = line
        self._count -= 1
        return asked

    def __iter__(self) -> Iterator[Asked]:
        return chain.from_iterable(self._lines.values())

    def put_back(self, asked: Asked) -> None:
        """Undo the last `pop`."""
        key, line = self._line_of(asked)
        line.appendleft(asked)
        self._lines.move_to_end(key, last=False)
        self._count += 1

    def _line_of(self, asked: Asked) -> tuple[Hashable, deque[Asked]]:
        item = asked[0]
        key: Hashable = item.execution_id if isinstance(item, Envelope) else id(item)
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = deque()
        return key, line


class FairQueue:
    """Items with the futures of their answers. After each `take`, `answered` says how many of its items were."""

    def __init__(self, count_max: int = BATCH_MAX) -> None:
        self._own = _Lines()
        self._asked = _Lines()
        self._going_on = _Lines()
        self._kinds = (self._own, self._asked, self._going_on)
        self._batch_max = self._count_max = count_max
        self._taken: list[tuple[_Lines, Asked]] = []
        self._owed: list[_Lines] = []
        """Kinds of items of which the last batches answered none, that which has waited longest first."""
        self._going_on_max = count_max
        self._has_gone_on = False
        self._batches_alone = SHARED_BATCHES
        self._sole: Hashable = None
        self.is_shared = False
        """Whether one of the last batches had items of another execution than the batch before. For any thread."""

    def __len__(self) -> int:
        return len(self._own) + len(self._asked) + len(self._going_on)

    @property
    def asked(self) -> int:
        """How many of the items callers have asked for."""
        return len(self._asked)

    def unanswered(self) -> list[Asked]:
        """All items that wait, and those of the last batch."""
        return [*chain.from_iterable(self._kinds), *(asked for _, asked in self._taken)]

    def put(self, asked: Asked, *, by_caller: bool) -> None:
        """Let an item wait."""
        lines = self._going_on if _goes_on(asked) else self._asked if by_caller else self._own
        lines.append(asked)

    def take(self) -> list[Asked]:
        """The items of the next batch; those of one execution in the order in which they came."""
        if not len(self):
            self._taken = []
            return []
        self._batches_alone = 0 if self._has_company() else self._batches_alone + 1
        self.is_shared = self._batches_alone < SHARED_BATCHES
        kinds = self._kinds[:2] if self._has_gone_on else self._kinds
        self._owed = [lines for lines in self._owed if lines]
        first = self._owed[: self._count_max]
        self._owed += [lines for lines in kinds if lines and lines not in self._owed]
        self._taken = [(lines, lines.pop()) for lines in first]
        count_max = self._count_max - len(first)
        own = min(len(self._own), count_max - min(len(self._asked), count_max * ASKED_SHARE // BATCH_MAX))
        asked = min(len(self._asked), count_max - own)
        again = max(0, own - len(self._own.keys))  # second items of executions, for which there may be no room
        self._pop(self._own, own - again)
        self._pop(self._asked, asked)
        self._pop(self._own, again)
        if not self._has_gone_on or all(lines is self._going_on for lines, _ in self._taken):
            room = max(not self._taken, self._count_max - len(self._taken))
            self._pop(self._going_on, min(len(self._going_on), self._going_on_max, room))
        self._taken = _stops_first(self._taken)
        return [asked for _, asked in self._taken]

    def _pop(self, lines: _Lines, count: int) -> None:
        self._taken += [(lines, lines.pop()) for _ in range(count)]

    def _has_company(self) -> bool:
        """Whether items of another execution wait than those of the last batch; loops are no company to each other."""
        given = self._own if self._own else self._asked
        if not given:
            return False
        before, self._sole = self._sole, next(iter(given.keys))
        others = (len(lines.keys - {self._sole}) if len(lines.keys) < 3 else 1 for lines in self._kinds)
        return before != self._sole or any(others)

    def answered(self, count: int, *, steps_gone_on: int = 0, was_too_much: bool = False) -> None:
        """The first `count` items of the batch are answered, the others wait again.

        Executions that only went on made so many steps; `was_too_much` if it was the memory that the others have to
        wait for.
        """
        done, undone = self._taken[:count], self._taken[count:]
        for lines, asked in reversed(undone):
            lines.put_back(asked)
        left = {lines for lines, _ in undone}
        served = {lines for lines, asked in done if lines not in left or not _stops(asked[0])}
        self._owed = [lines for lines in self._owed if lines not in served]
        self._has_gone_on = self._going_on in served
        if undone:
            self._count_max = min(self._count_max, max(1 if was_too_much else DIVIDED_MIN, count))
        else:
            self._count_max = min(self._batch_max, 2 * self._count_max)
        if steps_gone_on > GOING_ON_STEPS:
            self._going_on_max = max(1, self._going_on_max // 2)
        elif steps_gone_on:
            self._going_on_max = min(self._batch_max, self._going_on_max * 2)


def _stops_first(taken: list[tuple[_Lines, Asked]]) -> list[tuple[_Lines, Asked]]:
    """Stops before all other items, each kept behind the start of its execution."""
    if not any(_stops(asked[0]) for _, asked in taken):
        return taken
    new = {item.execution_id for _, (item, _) in taken if isinstance(item, Envelope) and item.new is not None}
    return sorted(taken, key=lambda each: not (_stops(each[1][0]) and each[1][0].execution_id not in new))


def _stops(item: Item) -> TypeGuard[Envelope]:
    return isinstance(item, Envelope) and isinstance(item.message, Stop)


def _goes_on(asked: Asked) -> bool:
    item = asked[0]
    return isinstance(item, Envelope) and isinstance(item.message, Continue)
