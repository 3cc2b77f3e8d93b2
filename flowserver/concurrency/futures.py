"""Work that several callers wait for, each of which may be cancelled alone."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def shared(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Start the work as a task to await under `asyncio.shield`. An error that no caller awaits is dropped silently."""
    task = asyncio.create_task(work)
    task.add_done_callback(_take_note)
    return task


def resolve(future: asyncio.Future[Any], answer: Any) -> None:
    """Resolve a waiting caller's future with the answer, or fail it if the answer is an Exception.

    A future that is done already, for example cancelled, is left alone. No future holds StopIteration: it becomes the
    cause of a RuntimeError.
    """
    if future.done():
        return
    if isinstance(answer, StopIteration):
        mistake = RuntimeError(f"this raised {answer!r}")
        mistake.__cause__ = answer
        answer = mistake
    if isinstance(answer, Exception):
        future.set_exception(answer)
    else:
        future.set_result(answer)


def _take_note(task: asyncio.Task[Any]) -> None:
    """Retrieve the error, else asyncio would log that it was never retrieved."""
    if not task.cancelled():
        task.exception()
