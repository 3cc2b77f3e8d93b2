"""Work done for several who wait for it, any of whom may go away."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def shared(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Begin the work as a task to be awaited under `asyncio.shield`; if it fails when all have gone, nobody is told."""
    task = asyncio.create_task(work)
    task.add_done_callback(_take_note)
    return task


def give(future: asyncio.Future[Any], answer: Any) -> None:
    """Give one of those who wait an answer, or raise it there if it is an Exception; nothing if he has gone."""
    if future.done():
        return
    if isinstance(answer, Exception):
        future.set_exception(answer)
    else:
        future.set_result(answer)


def _take_note(task: asyncio.Task[Any]) -> None:
    """Look at the error, else asyncio would log that nobody did."""
    if not task.cancelled():
        task.exception()
