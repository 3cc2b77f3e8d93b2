"""Small changes of one kind, gathered into one: whatever is asked for before the writer comes to it.

So many of them share their statements, not only their commit. A gathering goes with the very next batch, since it is
closed only in the writer's thread, when its turn has come.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection

from flowserver.base.errors import ResourceThrottled
from flowserver.base.sharing import give
from flowserver.engine.commit.committer import Committer
from flowserver.store.sql.errors import is_away

GATHERED_MAX = 500
"""Changes in one transaction, by their weight, or one that is heavier; the rest goes with the next."""

K = TypeVar("K")

Work = Callable[[Connection, Sequence[K]], Sequence[Any]]
"""Does the changes; returns the result of each, or the exception that it alone came to.

The same items may come again, after a try that was perhaps committed. Runs in the writer's thread.
"""


class Gathered(Generic[K]):
    """Takes changes from the event loop and has them made together."""

    def __init__(
        self, committer: Committer, work: Work[K], pending_max: int, weigh: Callable[[K], int] = lambda _: 1
    ) -> None:
        self._committer = committer
        self._work = work
        self._pending_max = pending_max
        self._weigh = weigh
        self._waiting: deque[tuple[K, asyncio.Future[Any]]] = deque()
        self._is_ordered = False
        self._writing: set[asyncio.Task[None]] = set()

    def put(self, item: K, *, bounded: bool = False) -> asyncio.Future[Any]:
        """Ask for a change; the future has its result once that is durable, or raises what it came to.

        Changes are made in the order in which they were put, those of one transaction at once. Raises
        ResourceThrottled at once when `bounded` and as many wait as may.
        """
        if bounded and len(self._waiting) >= self._pending_max:
            raise ResourceThrottled
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if not self._is_ordered:  # nor has the writer begun, who says so before it looks what there is
            self._order()
        return future

    def _order(self) -> None:
        self._is_ordered = True
        task = asyncio.create_task(self._write(), name="gathered")
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    async def _write(self) -> None:
        taken: list[tuple[K, asyncio.Future[Any]]] = []
        has_tried = False

        def change(connection: Connection) -> Sequence[Any]:
            nonlocal has_tried
            if not has_tried:  # a second try is of the same items
                has_tried = True
                self._is_ordered = False
                self._take(taken)
            return self._work(connection, [item for item, _ in taken])

        try:
            answers = await self._committer.write(change)
        except Exception as error:
            await self._failed(taken, error)
        else:
            for (_, future), answer in zip(taken, answers, strict=True):
                give(future, answer)
        if self._waiting and not self._is_ordered:
            self._order()

    def _take(self, taken: list[tuple[K, asyncio.Future[Any]]]) -> None:
        room = GATHERED_MAX
        while self._waiting and room > 0:
            item, future = self._waiting.popleft()
            taken.append((item, future))
            room -= max(self._weigh(item), 1)

    async def _failed(self, taken: list[tuple[K, asyncio.Future[Any]]], error: Exception) -> None:
        """Those that cannot be made together are tried each alone, unless it is the database that is away."""
        if not taken:  # the writer never came to them
            self._is_ordered = False
            taken, self._waiting = list(self._waiting), deque()
        elif len(taken) > 1 and not is_away(error):
            for item, future in taken:
                give(future, await self._alone(item))
            return
        for _, future in taken:
            give(future, error)

    async def _alone(self, item: K) -> Any:
        try:
            (answer,) = await self._committer.write(lambda connection: self._work(connection, [item]))
        except Exception as error:
            return error
        return answer
