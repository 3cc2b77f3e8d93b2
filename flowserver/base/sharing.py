"""Tasks that work for several who wait for them, any of whom may go away."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def shared(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Begin the work as a task to be awaited under `asyncio.shield`; if it fails when all have gone, nobody is told."""
    task = asyncio.create_task(work)
    task.add_done_callback(_take_note)
    return task


def _take_note(task: asyncio.Task[Any]) -> None:
    """Look at the error, else asyncio would log that nobody did."""
    if not task.cancelled():
        task.exception()
