"""The lines in which calls wait for their turn, of keys only: what a key stands for is read when its turn comes.

There is a line for each flow and what it calls, and one for each function of asynchronous invocations. A line waits
for a slot of its function and of the node as one waiter, so that a hundred thousand in it keep neither another flow's
call nor another function's line waiting for more than one turn.
"""

import asyncio
import logging
from collections import Counter, OrderedDict
from collections.abc import Callable
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

from flowserver.engine.commit.retry import persist
from flowserver.engine.functions.call_slots import CallSlot, CallSlots
from flowserver.engine.functions.keyed_semaphore import Callee, KeyedSemaphore
from flowserver.engine.functions.registry import FunctionKey, FunctionRegistry, Lookup
from flowserver.invokers.invocation import Endpoint

log = logging.getLogger(__name__)

K = TypeVar("K")


class Line(NamedTuple):
    """What a line goes by."""

    flow_name: str
    """The flow whose calls wait; for calls of no flow, what they call."""
    called: Callee
    """The function, as a `FunctionKey`; or another target by its name."""
    is_function: bool = True

    @staticmethod
    def of(function: FunctionKey) -> "Line":
        """The line of a function that no flow calls."""
        return Line("/".join(function), function)


class Lines(Generic[K]):
    """The lines of this node for one kind of key."""

    def __init__(
        self,
        registry: FunctionRegistry,
        slots: CallSlots,
        begin: Callable[[K, CallSlot], None],
        refuse: Callable[[K, str], None] | None = None,
    ) -> None:
        """`begin` has a key's turn begin. `refuse` is told of a key that is one too many for its function, and why;
        without it, whoever has keys join looks before how many may.
        """
        self._registry = registry
        self._slots = slots
        self._begin = begin
        self._refuse = refuse
        self._lines: dict[Line, OrderedDict[K, None]] = {}
        self._heads: dict[Line, asyncio.Task[None]] = {}
        self._looking: dict[Line, asyncio.Task[None]] = {}
        self._waiting: Counter[Callee] = Counter()
        self._at_limits: Counter[Callee] = Counter()
        self._is_closed = False

    @property
    def waiting(self) -> int:
        """How many wait, all together."""
        return self._waiting.total()

    def length(self, line: Line) -> int:
        """How many wait in the line."""
        return len(self._lines.get(line, ()))

    def take_now(self, line: Line) -> CallSlot | None:
        """A slot that needs no waiting; None if there is none, or others wait in the line, or its function has to be
        looked up first: then join.
        """
        if self._is_closed or self._lines.get(line):
            return None
        found = self._registry.remembered(*line.called) if line.is_function else None
        if found is None and line.is_function:
            return None
        limit, callee = self._limit(line, found)
        if limit is not None and not limit.acquire_now():
            return None
        return self._slots.acquire_now(line.flow_name, callee, limit)

    def join(self, line: Line, key: K) -> None:
        """Wait for a turn."""
        if self._is_closed:
            return
        keys = self._lines.setdefault(line, OrderedDict())
        if key not in keys:
            keys[key] = None
            self._waiting[line.called] += 1
        if line not in self._heads:
            head = asyncio.create_task(self._advance(line), name=f"line of {'/'.join(line.called)}")
            self._heads[line] = head
            head.add_done_callback(lambda _: self._left(line, head))
        elif self._refuse is not None and line.is_function:
            self._check_soon(line)

    def drop(self, line: Line, key: K) -> None:
        """It waits no more, if it did."""
        keys = self._lines.get(line)
        if keys is not None and key in keys:
            del keys[key]
            self._count_down(line)

    def close(self) -> None:
        """Nobody's turn comes any more, and nobody joins."""
        self._is_closed = True
        self.clear()

    def clear(self) -> None:
        """Send everybody away."""
        for task in (*self._heads.values(), *self._looking.values()):
            task.cancel()
        self._heads.clear()
        self._looking.clear()
        self._lines.clear()
        self._waiting.clear()

    def send_away(self, keeps: Callable[[K], bool], limit: int) -> list[K]:
        """Have up to `limit` that cannot begin at once leave their lines, but not those that `keeps` is true for."""
        if not self._slots.are_crowded:
            return []
        waiting = ((line, key) for line, keys in self._lines.items() for key in keys if not keeps(key))
        gone = list(islice(waiting, limit))
        for line, key in gone:
            self.drop(line, key)
        return [key for _, key in gone]

    async def _advance(self, line: Line) -> None:
        while self._lines.get(line):
            found = await self._look_up(line)
            self._check_room(line, found)
            if not self._lines.get(line):
                return
            slot = await self._take(line, found)
            keys = self._lines.get(line)
            if not keys:  # they were sent away meanwhile
                slot.release()
                return
            key, _ = keys.popitem(last=False)
            self._count_down(line)
            self._begin(key, slot)

    async def _take(self, line: Line, found: Lookup | None) -> CallSlot:
        """A slot for the next one."""
        limit, callee = self._limit(line, found)
        if limit is not None:
            self._at_limits[line.called] += 1
            try:
                await limit.acquire()
            finally:
                self._at_limits[line.called] -= 1
        return await self._slots.acquire(line.flow_name, callee, limit, for_line=True)

    def _limit(self, line: Line, found: Lookup | None) -> tuple[KeyedSemaphore | None, Callee]:
        """The function's own slots, if it has a limit, and the name under which slots of the node are taken."""
        if not isinstance(found, Endpoint):
            return None, line.called
        return self._slots.concurrency.of(found), found.registered_as

    async def _look_up(self, line: Line) -> Lookup | None:
        if not line.is_function:
            return None
        service, qualifier, function = line.called
        found = self._registry.remembered(service, qualifier, function)
        try:
            return found or await persist(lambda: self._registry.find(service, qualifier, function), gives_up=True)
        except Exception:  # unreadable names or registration: those who wait find that out when their turn comes
            log.exception("a function of calls that wait cannot be looked up")
            return None

    def _check_soon(self, line: Line) -> None:
        """See that not too many wait in the line."""
        found = self._registry.remembered(*line.called)
        if found is not None:
            self._check_room(line, found)
        elif line not in self._looking:
            self._looking[line] = asyncio.create_task(self._check_later(line))

    async def _check_later(self, line: Line) -> None:
        me = asyncio.current_task()
        self._check_room(line, await self._look_up(line))
        if self._looking.get(line) is me:
            del self._looking[line]

    def _check_room(self, line: Line, found: Lookup | None) -> None:
        """Refuse those that came last if more of the function wait than may, those outside of these lines included."""
        concurrency = self._slots.concurrency
        limit = concurrency.of(found) if isinstance(found, Endpoint) else None
        if self._refuse is None or limit is None or not isinstance(found, Endpoint):
            return
        room = concurrency.room(found) - limit.waiting + self._at_limits[line.called]
        keys = self._lines.get(line)
        while keys and self._waiting[line.called] > room:
            key, _ = keys.popitem()
            self._count_down(line)
            self._refuse(key, concurrency.refusal(found))

    def _count_down(self, line: Line) -> None:
        self._waiting[line.called] -= 1
        if not self._waiting[line.called]:
            del self._waiting[line.called]

    def _left(self, line: Line, head: asyncio.Task[None]) -> None:
        if self._heads.get(line) is not head:
            return
        del self._heads[line]
        keys = self._lines.pop(line, OrderedDict())
        for key in keys:  # they came at the last moment
            self._count_down(line)
            self.join(line, key)
