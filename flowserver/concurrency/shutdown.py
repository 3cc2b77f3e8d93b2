"""The end of work under way when the server stops: drained, or cancelled early enough to answer its callers."""

import asyncio
from collections.abc import Collection, Coroutine
from typing import Any, TypeVar

from flowserver.base.errors import ServiceUnavailable

T = TypeVar("T")

STOPPING = "the server is being stopped; try again shortly"


class InterruptibleWork:
    """Work in progress that `interrupt` interrupts."""

    def __init__(self) -> None:
        self.is_interrupted = False
        self._under_way: set[asyncio.Task[Any]] = set()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do the work. If it is interrupted, it may still return a result when it is cancelled.

        Raises ServiceUnavailable if it returns none, or if `interrupt` was called before.
        """
        if self.is_interrupted:
            work.close()
            raise ServiceUnavailable(STOPPING)
        task = asyncio.create_task(work)
        self._under_way.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if self.is_interrupted and current is not None and not current.cancelling():
                raise ServiceUnavailable(STOPPING) from None
            raise
        finally:
            self._under_way.discard(task)

    def interrupt(self) -> None:
        """Interrupt all work in progress, and refuse new work. A second call has no effect."""
        if self.is_interrupted:
            return
        self.is_interrupted = True
        for task in self._under_way:
            task.cancel()


async def drain(tasks: Collection[asyncio.Task[Any]], seconds: float) -> None:
    """Wait for tasks for so many seconds, then cancel the rest and wait for their end."""
    if tasks:
        _, pending = await asyncio.wait(tasks, timeout=seconds)
        for task in pending:
            task.cancel()
        if pending:
            await asyncio.wait(pending)
