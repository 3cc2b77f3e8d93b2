"""What waits for the writer, and in which order it is taken: no execution keeps all others waiting.

Each execution has its own line, and batches take from one line after the other. Executions that only go on with what
is ready, which hot loops do without end, are taken last: not in two batches one after the other if anything else
waits, and fewer of them the more steps the last ones made.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Hashable
from typing import Any, Final

from flowserver.engine.batches import Envelope, Item
from flowserver.machine.messages import Continue

BATCH_MAX: Final = 200
"""Items in one transaction; measured: a hundred already share the cost of an fsync so far that more gains little."""

ASKED_SHARE: Final = 50
"""Places in a full batch that what callers ask for has in any case."""

GOING_ON_STEPS: Final = 100
"""After a batch in which executions that go on made more steps, the next one takes half as many of them."""

SHARED_BATCHES: Final = 20
"""After so many batches of executions that go on alone, they need not be short for the sake of others."""

Asked = tuple[Item, asyncio.Future[Any]]


class _Lines:
    """A line for each execution, served in turn. Every other change stands for itself."""

    def __init__(self) -> None:
        self._lines: OrderedDict[Hashable, deque[Asked]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def append(self, asked: Asked) -> None:
        self._line_of(asked).append(asked)
        self._count += 1

    def pop(self) -> Asked:
        key, line = self._lines.popitem(last=False)
        asked = line.popleft()
        if line:
            self._lines[key] = line
        self._count -= 1
        return asked

    def _line_of(self, asked: Asked) -> deque[Asked]:
        item = asked[0]
        key: Hashable = item.execution_id if isinstance(item, Envelope) else id(item)
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = deque()
        return line


class Intake:
    """Items with the futures of their answers."""

    def __init__(self) -> None:
        self._own = _Lines()
        self._asked = _Lines()
        self._going_on: deque[Asked] = deque()
        self._going_on_max = BATCH_MAX
        self._has_gone_on = False
        self._batches_alone = SHARED_BATCHES
        self.is_shared = False
        """Whether others than executions that go on had anything in the last batches; may be asked in any thread."""

    def __len__(self) -> int:
        return len(self._own) + len(self._asked) + len(self._going_on)

    @property
    def asked(self) -> int:
        """How many of the items callers have asked for."""
        return len(self._asked)

    def put(self, asked: Asked, *, by_caller: bool) -> None:
        """Let an item wait."""
        if _goes_on(asked):
            self._going_on.append(asked)
        else:
            (self._asked if by_caller else self._own).append(asked)

    def take(self, count_max: int = BATCH_MAX) -> list[Asked]:
        """The items of the next batch; those of one execution in the order in which they came."""
        own = min(len(self._own), count_max - min(len(self._asked), count_max * ASKED_SHARE // BATCH_MAX))
        asked = min(len(self._asked), count_max - own)
        taken = [self._own.pop() for _ in range(own)] + [self._asked.pop() for _ in range(asked)]
        self._batches_alone = 0 if taken else self._batches_alone + 1
        self.is_shared = self._batches_alone < SHARED_BATCHES
        going_on = 0
        if not (taken and self._has_gone_on):
            going_on = min(len(self._going_on), self._going_on_max, max(1, count_max - len(taken)))
        self._has_gone_on = going_on > 0
        return taken + [self._going_on.popleft() for _ in range(going_on)]

    def went_on(self, steps: int) -> None:
        """So many steps were made in a batch by executions that only went on."""
        if steps > GOING_ON_STEPS:
            self._going_on_max = max(1, self._going_on_max // 2)
        elif steps:
            self._going_on_max = min(BATCH_MAX, self._going_on_max * 2)


def _goes_on(asked: Asked) -> bool:
    item = asked[0]
    return isinstance(item, Envelope) and isinstance(item.message, Continue)
