"""Base classes of the loops that run in the background of a node."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import ClassVar, TypeVar

from sqlalchemy.exc import SQLAlchemyError

from flowserver.concurrency.threads import Threads
from flowserver.store.sql.errors import reason_of

log = logging.getLogger(__name__)

RETRY_SECONDS = 1.0
"""Pause after an iteration that raised."""

T = TypeVar("T")


class BackgroundLoop(ABC):
    """Base class for background loops. An iteration that raises is logged and the loop continues after one second."""

    name: ClassVar[str]
    """The loop's name in the log, its task and its thread."""

    _task: asyncio.Task[None] | None = None
    _thread: Threads | None = None

    @abstractmethod
    async def _iterate(self) -> None:
        """Wait for the next reason to work, then work."""

    def start(self) -> None:
        """Start the loop."""
        self._task = asyncio.create_task(self._run(), name=self.name)

    async def stop(self) -> None:
        """Stop the loop. A change that the writer has begun is completed; the rows keep what is left."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if self._thread is not None:
            self._thread.close()
            self._thread = None

    async def _aside(self, work: Callable[[], T]) -> T:
        """Run `work`, which blocks, in the loop's own thread; returns or raises what `work` does."""
        if self._thread is None:
            self._thread = Threads(self.name)
        return await self._thread.run(work)

    async def _run(self) -> None:
        while True:
            try:
                await self._iterate()
            except SQLAlchemyError as error:
                log.warning("%s: an iteration failed and is repeated: %s", self.name, reason_of(error))
                await asyncio.sleep(RETRY_SECONDS)
            except Exception:
                log.exception("%s: an iteration failed and is repeated", self.name)
                await asyncio.sleep(RETRY_SECONDS)


class PeriodicLoop(BackgroundLoop):
    """A loop that runs `run_once` every `interval_seconds`, first after the first interval.

    To add one, write a subclass and name it in `Parts.loops`; every node runs it. `queues/expiry.py` is the shortest.
    """

    interval_seconds: ClassVar[float]

    def __init__(self, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._sleep = sleep

    @abstractmethod
    async def run_once(self) -> int:
        """Do the work that there is now; returns how many items it did."""

    async def _iterate(self) -> None:
        await self._sleep(self.interval_seconds)
        await self.run_once()
