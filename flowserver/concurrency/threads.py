"""Threads for blocking work: a few for each kind of work, so that slow work of one kind delays no other kind.

asyncio's default executor is not used: all its users share its threads. A pool starts a thread when it first needs it.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

from flowserver.base.errors import ResourceThrottled
from flowserver.concurrency.load_shedding import is_refused

T = TypeVar("T")


class Threads:
    """At most `count` threads for one kind of work; further work waits in a queue."""

    def __init__(self, name: str, count: int = 1, *, waiting_max: int | None = None) -> None:
        """`name` is the prefix of the threads' names; `waiting_max` bounds the work that waits for a thread."""
        self._executor = ThreadPoolExecutor(count, thread_name_prefix=name)
        self._pending_max = None if waiting_max is None else count + waiting_max
        self._pending = 0
        self._counting = threading.Lock()

    async def run(self, work: Callable[[], T]) -> T:
        """Run `work` in a thread; returns or raises what it does. Work that has begun outlives a cancelled caller.

        It runs in the caller's context, so the lines that it logs belong to the caller's request.

        Raises ResourceThrottled if `waiting_max` pieces of work wait already, unless the present request has changed
        something.
        """
        with self._counting:
            if self._pending_max is not None and is_refused(is_full=self._pending >= self._pending_max):
                raise ResourceThrottled
            self._pending += 1
        future = self._executor.submit(copy_context().run, work)
        future.add_done_callback(self._ended)
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Take no more work; the threads end after the work that has begun."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _ended(self, _: Future[T]) -> None:
        with self._counting:
            self._pending -= 1


async def run_aside(work: Callable[[], T]) -> T:
    """Run `work` in a thread of its own, for work that a process does once; returns or raises what it does."""
    threads = Threads("aside")
    try:
        return await threads.run(work)
    finally:
        threads.close()
