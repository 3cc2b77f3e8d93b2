"""What is done in the background again and again, whatever becomes of a single time."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import ClassVar, TypeVar

from sqlalchemy.exc import SQLAlchemyError

from flowserver.base.threads import Threads
from flowserver.store.sql.errors import reason_of

log = logging.getLogger(__name__)

AGAIN_SECONDS = 1.0
"""Pause after a round that failed."""

T = TypeVar("T")


class Rounds(ABC):
    """One round after another, from `start` to `stop`; one that fails is told in the log, and the next comes."""

    name: ClassVar[str]
    """What it is that goes round, for the log."""

    _running: asyncio.Task[None] | None = None
    _thread: Threads | None = None

    @abstractmethod
    async def _round(self) -> None:
        """Wait until there is something to do, or it is time to look, and do it."""

    def start(self) -> None:
        """Begin."""
        self._running = asyncio.create_task(self._go_round(), name=self.name)

    async def stop(self) -> None:
        """Stop, between two changes or after one that is on its way; what is left is there for others, or for later."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])
        if self._thread is not None:
            self._thread.close()
            self._thread = None

    async def _aside(self, work: Callable[[], T]) -> T:
        """What `work`, which blocks, returns or raises; done in a thread that belongs to this loop alone."""
        if self._thread is None:
            self._thread = Threads(self.name)
        return await self._thread.run(work)

    async def _go_round(self) -> None:
        while True:
            try:
                await self._round()
            except SQLAlchemyError as error:
                log.warning("%s goes on later: %s", self.name, reason_of(error))
                await asyncio.sleep(AGAIN_SECONDS)
            except Exception:
                log.exception("%s failed and goes on", self.name)
                await asyncio.sleep(AGAIN_SECONDS)


class TimedRounds(Rounds):
    """Rounds that come every `seconds`; `rest` waits for so many."""

    seconds: ClassVar[float]

    def __init__(self, rest: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._rest = rest

    @abstractmethod
    async def round(self) -> int:
        """Do what there is to do now; returns how much it was."""

    async def _round(self) -> None:
        await self._rest(self.seconds)
        await self.round()
