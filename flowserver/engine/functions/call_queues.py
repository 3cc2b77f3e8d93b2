"""FIFO queues of waiting calls. They hold keys only: the call of a key is read when the key reaches a slot.

There is one queue for each flow and callee, and one for each function of asynchronous invocations. A queue waits for a
slot of its function and of the node as one waiter. So a hundred thousand keys in it delay another flow's call, or
another function's queue, by one turn at most.
"""

import asyncio
import logging
from collections import Counter, OrderedDict
from collections.abc import Callable
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

from flowserver.concurrency.keyed_semaphore import KeyedSemaphore
from flowserver.engine.commit.outage_retry import retry_until_available
from flowserver.engine.functions.call_slots import Callee, CallSlot, CallSlots
from flowserver.engine.functions.endpoint_lookup import EndpointLookup, FunctionKey, Lookup
from flowserver.invokers.calls import Endpoint

log = logging.getLogger(__name__)

KEPT_MAX = 512
"""How many waiting calls of each kind keep their commands or rows in memory; those of other calls are read again."""

KEPT_BYTES_MAX = 16_384
"""The most bytes of the documents of a waiting call that are kept so."""

K = TypeVar("K")


class QueueKey(NamedTuple):
    """The flow and the callee of a queue."""

    flow_name: str
    """The flow whose calls wait; the callee's name for calls of no flow."""
    called: Callee
    """The function, as a `FunctionKey`; or another target by its name."""
    is_function: bool = True

    @staticmethod
    def of(function: FunctionKey) -> "QueueKey":
        """The queue of a function's asynchronous invocations."""
        return QueueKey("/".join(function), function)


class CallQueues(Generic[K]):
    """The queues of this node for keys of one kind."""

    def __init__(
        self,
        endpoints: EndpointLookup,
        slots: CallSlots,
        begin: Callable[[K, CallSlot], None],
        refuse: Callable[[K, str], None] | None = None,
    ) -> None:
        """`begin` is called with a key and its slot. `refuse` is called with a key that exceeds the limit of its
        function, and the reason; without it, callers check the limit before they `join`.
        """
        self._endpoints = endpoints
        self._slots = slots
        self._begin = begin
        self._refuse = refuse
        self._queues: dict[QueueKey, OrderedDict[K, None]] = {}
        self._heads: dict[QueueKey, asyncio.Task[None]] = {}
        self._looking: dict[QueueKey, asyncio.Task[None]] = {}
        self._waiting: Counter[Callee] = Counter()
        self._is_closed = False

    @property
    def waiting(self) -> int:
        """How many keys wait in all queues."""
        return self._waiting.total()

    def length(self, queue: QueueKey) -> int:
        """How many keys wait in a queue."""
        return len(self._queues.get(queue, ()))

    def take_now(self, queue: QueueKey) -> CallSlot | None:
        """A slot, without waiting. None if no slot is free, keys wait in the queue, or the function must be looked up
        first: then `join`.
        """
        if self._is_closed or self._queues.get(queue):
            return None
        found = self._endpoints.cached(*queue.called) if queue.is_function else None
        if found is None and queue.is_function:
            return None
        limit, callee = self._limit(queue, found)
        if limit is not None and not limit.acquire_now():
            return None
        return self._slots.acquire_now(queue.flow_name, callee, limit)

    def join(self, queue: QueueKey, key: K) -> None:
        """Append a key to its queue, if it does not wait there already."""
        if self._is_closed:
            return
        keys = self._queues.setdefault(queue, OrderedDict())
        if key not in keys:
            keys[key] = None
            self._waiting[queue.called] += 1
        if queue not in self._heads:
            head = asyncio.create_task(self._advance(queue), name=f"queue of {'/'.join(queue.called)}")
            self._heads[queue] = head
            head.add_done_callback(lambda _: self._left(queue, head))
        elif self._refuse is not None and queue.is_function:
            self._check_soon(queue)

    def drop(self, queue: QueueKey, key: K) -> None:
        """Remove a key from its queue, if it waits there."""
        keys = self._queues.get(queue)
        if keys is not None and key in keys:
            del keys[key]
            self._count_down(queue)

    def close(self) -> None:
        """Remove all keys, and accept no more."""
        self._is_closed = True
        self.clear()

    def clear(self) -> None:
        """Remove all keys."""
        for task in (*self._heads.values(), *self._looking.values()):
            task.cancel()
        self._heads.clear()
        self._looking.clear()
        self._queues.clear()
        self._waiting.clear()

    def send_away(self, keeps: Callable[[K], bool], limit: int) -> list[K]:
        """Remove and return up to `limit` keys for which `keeps` is false; none while the node has free slots."""
        if not self._slots.are_crowded:
            return []
        waiting = ((queue, key) for queue, keys in self._queues.items() for key in keys if not keeps(key))
        gone = list(islice(waiting, limit))
        for queue, key in gone:
            self.drop(queue, key)
        return [key for _, key in gone]

    async def _advance(self, queue: QueueKey) -> None:
        while self._queues.get(queue):
            found = await self._look_up(queue)
            self._check_room(queue, found)
            if not self._queues.get(queue):
                return
            slot = await self._take(queue, found)
            keys = self._queues.get(queue)
            if not keys:  # they were removed meanwhile
                slot.release()
                return
            key, _ = keys.popitem(last=False)
            self._count_down(queue)
            self._begin(key, slot)

    async def _take(self, queue: QueueKey, found: Lookup | None) -> CallSlot:
        """Wait for a slot for the first key."""
        limit, callee = self._limit(queue, found)
        if limit is not None:
            await limit.acquire()
        return await self._slots.acquire(queue.flow_name, callee, limit, for_queue=True)

    def _limit(self, queue: QueueKey, found: Lookup | None) -> tuple[KeyedSemaphore | None, Callee]:
        """The function's own slots, None without a limit, and the name under which slots of the node are taken."""
        if not isinstance(found, Endpoint):
            return None, queue.called
        return self._slots.function_limits.of(found), found.registered_as

    async def _look_up(self, queue: QueueKey) -> Lookup | None:
        if not queue.is_function:
            return None
        service, qualifier, function = queue.called
        try:
            return await retry_until_available(
                lambda: self._endpoints.find(service, qualifier, function), gives_up=True
            )
        except Exception:  # an unreadable name or registration: each call fails by it when it reaches a slot
            log.exception("cannot look up function %s of waiting calls", "/".join(queue.called))
            return None

    def _check_soon(self, queue: QueueKey) -> None:
        """Check the function's limit, after a look-up if it is not cached."""
        found = self._endpoints.cached(*queue.called)
        if found is not None:
            self._check_room(queue, found)
        elif queue not in self._looking:
            self._looking[queue] = asyncio.create_task(self._check_later(queue))

    async def _check_later(self, queue: QueueKey) -> None:
        me = asyncio.current_task()
        self._check_room(queue, await self._look_up(queue))
        if self._looking.get(queue) is me:
            del self._looking[queue]

    def _check_room(self, queue: QueueKey, found: Lookup | None) -> None:
        """Refuse the newest keys while more of the function's calls wait here than its registration allows.

        Calls that wait elsewhere are those of callers, who are refused by themselves.
        """
        limits = self._slots.function_limits
        if self._refuse is None or not isinstance(found, Endpoint):
            return
        if found.concurrency_max is None or found.waiting_max is None:
            return
        room = limits.room(found)
        keys = self._queues.get(queue)
        while keys and self._waiting[queue.called] > room:
            key, _ = keys.popitem()
            self._count_down(queue)
            self._refuse(key, limits.refusal(found))

    def _count_down(self, queue: QueueKey) -> None:
        self._waiting[queue.called] -= 1
        if not self._waiting[queue.called]:
            del self._waiting[queue.called]

    def _left(self, queue: QueueKey, head: asyncio.Task[None]) -> None:
        if self._heads.get(queue) is not head:
            return
        del self._heads[queue]
        keys = self._queues.pop(queue, OrderedDict())
        for key in keys:  # they joined while the task ended
            self._count_down(queue)
            self.join(queue, key)
