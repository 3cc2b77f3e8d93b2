"""Threads for blocking work: a few for each kind of work, so that slow work of one kind delays no other kind.

asyncio's default executor is not used: all its users share its threads. A pool starts a thread when it first needs it.
The access keys of the requests whose work waits take turns: a key with few requests does not wait for all those of
another key.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar

from flowserver.base.request_context import present_request
from flowserver.concurrency.keyed_fifos import KeyedFifos
from flowserver.concurrency.load_shedding import LoadShedding

T = TypeVar("T")

Work = tuple[Callable[[], Any], "Future[Any]", str]
"""What is done, its future, and the key under which it is counted."""


class Threads:
    """At most `count` threads for one kind of work; further work waits in a queue."""

    def __init__(self, name: str, count: int = 1, *, waiting_max: int | None = None) -> None:
        """`name` is the prefix of the threads' names; `waiting_max` bounds the work that waits for a thread."""
        self._executor = ThreadPoolExecutor(count, thread_name_prefix=name)
        self._idle = count
        self._pending_max = None if waiting_max is None else count + waiting_max
        self._pending = 0
        self._waiting: KeyedFifos[Work] = KeyedFifos()
        self._shedding = LoadShedding()
        self._is_closed = False
        self._lock = threading.Lock()

    async def run(self, work: Callable[[], T]) -> T:
        """Run `work` in a thread; returns or raises what it does. Work that has begun outlives a cancelled caller.

        Work that has not begun is then not done, but counts until its turn, because it is in memory so long. Work runs
        in the caller's context, so the lines that it logs belong to the caller's request.

        Raises ResourceThrottled if `waiting_max` pieces of work wait already, or more than the share of the caller's
        key (`load_shedding`); RuntimeError once they are closed.
        """
        request, work = present_request(), partial(copy_context().run, work)
        future: Future[T] = Future()
        with self._lock:
            if self._is_closed:
                raise RuntimeError("these threads take no more work")
            key = "" if self._pending_max is None else self._shedding.accept(self._pending, self._pending_max)
            self._pending += 1
            self._waiting.append("" if request is None else request.key_id, (work, future, key))
            starts, self._idle = self._idle > 0, max(0, self._idle - 1)
        future.add_done_callback(lambda done: None if done.cancelled() else self._ended(key))
        if starts:
            self._executor.submit(self._serve)
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Take no more work; the threads end after the work that has begun."""
        self._executor.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            self._is_closed = True
            waiting = [self._waiting.pop() for _ in range(len(self._waiting))]
        for _, future, _ in waiting:
            future.cancel()

    def _serve(self) -> None:
        """Do what waits, in a thread of the pool, until nothing does."""
        while True:
            with self._lock:
                if not self._waiting:
                    self._idle += 1
                    return
                work, future, key = self._waiting.pop()
            if future.set_running_or_notify_cancel():
                _do(work, future)
            else:
                self._ended(key)

    def _ended(self, key: str) -> None:
        with self._lock:
            self._pending -= 1
            if key:
                self._shedding.ended(key)


def _do(work: Callable[[], T], future: "Future[T]") -> None:
    """Give the future what the work returns or raises."""
    try:
        result = work()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)


async def run_aside(work: Callable[[], T]) -> T:
    """Run `work` in a thread of its own, for work that a process does once; returns or raises what it does."""
    threads = Threads("aside")
    try:
        return await threads.run(work)
    finally:
        threads.close()
