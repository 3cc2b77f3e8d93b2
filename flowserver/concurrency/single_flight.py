"""One run of the same work for all callers that ask for it at once."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Generic, TypeVar

from flowserver.concurrency.futures import shared

K = TypeVar("K")
T = TypeVar("T")


class SingleFlight(Generic[K, T]):
    """Runs work by key. Make and use it inside one event loop."""

    def __init__(self) -> None:
        self._tasks: dict[K, asyncio.Task[T]] = {}

    async def run(self, key: K, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run the work, or join the run that is under way for this key; returns or raises what it does.

        The run outlives callers that are cancelled.
        """
        task = self._tasks.get(key)
        if task is None:
            task = self._tasks[key] = shared(work())
            task.add_done_callback(partial(self._ended, key))
        return await asyncio.shield(task)

    def forget(self) -> None:
        """Have the next caller of each key begin a new run, although one may be under way."""
        self._tasks.clear()

    def _ended(self, key: K, task: asyncio.Task[T]) -> None:
        if self._tasks.get(key) is task:
            del self._tasks[key]
