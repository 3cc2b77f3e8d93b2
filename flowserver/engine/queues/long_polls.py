"""Those who wait for messages of a queue, in memory: a poll each, in a line for each queue. Serves nobody itself."""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field

from flowserver.base.sharing import give
from flowserver.store.queues.messages import QueueMessage


@dataclass(slots=True, eq=False)
class LongPoll:
    """One who waits for messages. `is_over` when he waits no longer, unless messages are on their way to him."""

    count: int
    answer: asyncio.Future[list[QueueMessage]]
    is_over: bool = False

    def end(self) -> None:
        """He gets nothing."""
        give(self.answer, [])


@dataclass(slots=True, eq=False)
class LongPolls:
    """Those who wait for messages of one queue, first come first."""

    polls: OrderedDict[LongPoll, None] = field(default_factory=OrderedDict)
    members: int = 0
    """Those in `polls`, and those for whom somebody is just looking."""
    is_stale: bool = False
    looking: asyncio.Task[None] | None = None
    timer: asyncio.TimerHandle | None = None
