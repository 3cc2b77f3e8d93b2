"""Makes many small changes as one write: changes that are added before the writer reaches them share its statements.

The event loop adds changes to a deque; the writer's thread takes them as late as it can, inside its transaction. The
flag `_is_requested` says that a write is queued at the writer and has not taken anything yet. Two rules replace a
lock:

- The loop appends a change first and reads the flag second. The writer clears the flag first and takes second. So if
  the loop finds the flag set, the writer has not begun to take, and will find the change; if it finds the flag clear,
  it requests another write. In between the first write may take the change as well: then the second finds nothing,
  and does nothing.
- A write takes once. If the writer repeats its transaction, the same changes are made again, and those that came
  meanwhile belong to the next write.

So each change is in exactly one write, changes are made in the order in which they were added, and a transaction holds
one group of `GROUP_MAX` at most: what a full group leaves is requested when its answers are there. If a write fails
before it took any change, no other write is queued, so all waiting changes fail with its error. If a group fails, each
of its changes is tried alone, unless the error shows that no change could be made now.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from flowserver.concurrency.futures import resolve
from flowserver.concurrency.load_shedding import LoadShedding

GROUP_MAX = 500
"""The weight of the changes in one transaction; a single change may weigh more."""

K = TypeVar("K")
A = TypeVar("A")
T = TypeVar("T")


class Writer(Protocol):
    """Makes changes in transactions, in a thread of its own."""

    async def write(self, change: Callable[[Any], T], /) -> T:
        """Make a change, which gets the transaction; returns its result once that is durable. It may be tried again."""

    def is_for_all(self, error: Exception, /) -> bool:
        """Whether the error of a change shows that no other one could be made at present either."""


class Coalescer(Generic[K, A]):
    """Takes changes of one kind from the event loop and makes them in groups."""

    def __init__(
        self,
        writer: Writer,
        apply: Callable[[Any, Sequence[K]], Sequence[A | Exception]],
        pending_max: int,
        weigh: Callable[[K], int] = lambda _: 1,
    ) -> None:
        """`apply` makes changes in the writer's thread and returns for each its result, or its exception.

        It may get the same changes again, after a try that may have been committed.
        """
        self._writer = writer
        self._apply = apply
        self._pending_max = pending_max
        self._weigh = weigh
        self._shedding = LoadShedding()
        self._waiting: deque[tuple[K, asyncio.Future[A]]] = deque()
        self._is_requested = False
        self._writes: set[asyncio.Task[None]] = set()

    def add(self, change: K, *, by_caller: bool = False) -> asyncio.Future[A]:
        """Request a change; the future has its result, or raises its exception, once that is durable.

        Raises ResourceThrottled at once when `by_caller` and `pending_max` changes wait for the writer, or more than
        the share of the caller's key (`load_shedding`).
        """
        future: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        if by_caller and (key := self._shedding.accept(len(self._waiting), self._pending_max, is_change=True)):
            future.add_done_callback(self._shedding.until_done(key))
        self._waiting.append((change, future))
        if not self._is_requested:
            self._request()
        return future

    def _request(self) -> None:
        self._is_requested = True
        task = asyncio.create_task(self._write(), name="coalesced write")
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)

    async def _write(self) -> None:
        group: list[tuple[K, asyncio.Future[A]]] = []
        has_taken = False

        def change(transaction: Any) -> Sequence[A | Exception]:
            nonlocal has_taken
            if not has_taken:
                has_taken = True
                self._is_requested = False
                self._take(group)
            return self._apply(transaction, [each for each, _ in group]) if group else []

        answers: Sequence[A | Exception]
        try:
            answers = await self._writer.write(change)
        except Exception as error:
            if has_taken and len(group) > 1 and not self._writer.is_for_all(error):
                answers = await asyncio.gather(*(self._alone(each) for each, _ in group))
            else:
                if not has_taken:
                    self._is_requested = False
                    group.extend(self._waiting)
                    self._waiting.clear()
                answers = [error] * len(group)
        for (_, future), answer in zip(group, answers, strict=True):
            resolve(future, answer)
        if self._waiting and not self._is_requested:
            self._request()

    def _take(self, group: list[tuple[K, asyncio.Future[A]]]) -> None:
        room = GROUP_MAX
        while self._waiting and room > 0:
            group.append(self._waiting.popleft())
            room -= max(self._weigh(group[-1][0]), 1)

    async def _alone(self, change: K) -> A | Exception:
        try:
            (answer,) = await self._writer.write(lambda transaction: self._apply(transaction, [change]))
        except Exception as error:
            return error
        return answer
