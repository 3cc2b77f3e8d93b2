"""What waits for the writer, and in which order it is taken: no execution keeps all others waiting.

Each execution has its own line, and batches take from one line after the other. Executions that only go on with what
is ready, which hot loops do without end, are taken last: not in two batches one after the other if anything else
waits, and fewer of them the more steps the last ones made.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Collection, Hashable
from typing import Any, Final

from flowserver.engine.commit.batch import Envelope, Item
from flowserver.machine.messages import Continue

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
    def keys(self) -> Collection[Hashable]:
        """Of the executions and single changes that wait."""
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


class Intake:
    """Items with the futures of their answers. Each batch is taken, and then it is said how much of it was answered."""

    def __init__(self, count_max: int = BATCH_MAX) -> None:
        self._own = _Lines()
        self._asked = _Lines()
        self._going_on = _Lines()
        self._batch_max = self._count_max = count_max
        self._taken: list[tuple[_Lines, Asked]] = []
        self._passed_over: list[_Lines] = []
        """Kinds of items of which the last batches answered none, that which has waited longest first."""
        self._going_on_max = count_max
        self._has_gone_on = False
        self._batches_alone = SHARED_BATCHES
        self._sole: Hashable = None
        self.is_shared = False
        """Whether the last batches were not all for one execution, or for those that go on. For any thread."""

    def __len__(self) -> int:
        return len(self._own) + len(self._asked) + len(self._going_on)

    @property
    def asked(self) -> int:
        """How many of the items callers have asked for."""
        return len(self._asked)

    def put(self, asked: Asked, *, by_caller: bool) -> None:
        """Let an item wait."""
        lines = self._going_on if _goes_on(asked) else self._asked if by_caller else self._own
        lines.append(asked)

    def take(self) -> list[Asked]:
        """The items of the next batch; those of one execution in the order in which they came."""
        self._batches_alone = 0 if self._has_company() else self._batches_alone + 1
        self.is_shared = self._batches_alone < SHARED_BATCHES
        self._passed_over = [lines for lines in self._passed_over if lines]
        first = self._passed_over[: self._count_max]
        self._passed_over += [lines for lines in (self._own, self._asked) if lines and lines not in first]
        self._taken = [(lines, lines.pop()) for lines in first]
        count_max = self._count_max - len(first)
        own = min(len(self._own), count_max - min(len(self._asked), count_max * ASKED_SHARE // BATCH_MAX))
        asked = min(len(self._asked), count_max - own)
        self._taken += [(self._own, self._own.pop()) for _ in range(own)]
        self._taken += [(self._asked, self._asked.pop()) for _ in range(asked)]
        if not self._has_gone_on or all(lines is self._going_on for lines, _ in self._taken):
            going_on = min(len(self._going_on), self._going_on_max, max(1, self._count_max - len(self._taken)))
            self._taken += [(self._going_on, self._going_on.pop()) for _ in range(going_on)]
        return [asked for _, asked in self._taken]

    def _has_company(self) -> bool:
        """Whether another waits than the one that the batch before was for."""
        waiting = [lines for lines in (self._own, self._asked, self._going_on) if lines]
        if not waiting:
            return False
        sole = None if waiting[0] is self._going_on else next(iter(waiting[0].keys))
        before, self._sole = self._sole, sole
        return sole != before or len(waiting) > 1 or (sole is not None and len(waiting[0].keys) > 1)

    def answered(self, count: int, *, steps_gone_on: int = 0, was_too_much: bool = False) -> None:
        """The first `count` items of the batch are answered, the others wait again.

        Executions that only went on made so many steps; `was_too_much` if it was the memory that the others have to
        wait for.
        """
        done, undone = self._taken[:count], self._taken[count:]
        for lines, asked in reversed(undone):
            lines.put_back(asked)
        served = {lines for lines, _ in done}
        if any(lines is self._going_on for lines, _ in undone) and self._going_on not in self._passed_over:
            self._passed_over.append(self._going_on)
        self._passed_over = [lines for lines in self._passed_over if lines not in served]
        self._has_gone_on = self._going_on in served
        if undone:
            self._count_max = max(1 if was_too_much else DIVIDED_MIN, count)
        else:
            self._count_max = min(self._batch_max, 2 * self._count_max)
        if steps_gone_on > GOING_ON_STEPS:
            self._going_on_max = max(1, self._going_on_max // 2)
        elif steps_gone_on:
            self._going_on_max = min(self._batch_max, self._going_on_max * 2)


def _goes_on(asked: Asked) -> bool:
    item = asked[0]
    return isinstance(item, Envelope) and isinstance(item.message, Continue)
