"""The long polls that wait for messages, in memory: in order of arrival for each queue. `queues` serves them."""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field

from flowserver.concurrency.futures import resolve
from flowserver.store.queues.messages import QueueMessage


@dataclass(slots=True, eq=False)
class LongPoll:
    """A long poll waiting for messages. `is_over` is set when it ends without having been handed messages."""

    count: int
    answer: asyncio.Future[list[QueueMessage]]
    is_over: bool = False

    def end(self) -> None:
        """Answer without messages."""
        resolve(self.answer, [])


@dataclass(slots=True, eq=False)
class LongPolls:
    """The long polls of one queue, first come first."""

    waiting: OrderedDict[LongPoll, None] = field(default_factory=OrderedDict)
    members: int = 0
    """The polls in `waiting`, and those that a receive is under way for."""
    is_stale: bool = False
    """Whether something has happened in the queue since the last scan began."""
    scan: asyncio.Task[None] | None = None
    timer: asyncio.TimerHandle | None = None
