"""Shares one database scan among concurrent receives.

A receive joins only a scan that has not started, so it never misses a committed message.
"""

import asyncio
from functools import partial

from sqlalchemy import Connection

from flowserver.base.clock import Clock
from flowserver.concurrency.futures import shared
from flowserver.engine.commit.reader import Reader
from flowserver.store.queues.messages import Sight, look_at


class SharedScan:
    """Scans through the reader. Make and use it inside one event loop."""

    def __init__(self, reader: Reader, clock: Clock) -> None:
        self._reader = reader
        self._clock = clock
        self._under_way: dict[tuple[str, int], tuple[int, asyncio.Task[Sight | None]]] = {}

    async def see(self, queue: str, wanted: int, *, by_caller: bool = False) -> Sight | None:
        """The messages of a queue, counted up to `wanted`, as of now or later; None if the queue does not exist.

        Raises ResourceThrottled when `by_caller`, SQLAlchemyError.
        """
        key = (queue, wanted)
        begun, looking = self._under_way.get(key, (None, None))
        if looking is None or begun != self._reader.begun:
            looking = shared(self._reader.ask(partial(self._look_at, queue=queue, wanted=wanted), by_caller=by_caller))
            self._under_way[key] = self._reader.begun, looking
            looking.add_done_callback(partial(self._ended, key))
        return await asyncio.shield(looking)

    def _look_at(self, connection: Connection, queue: str, wanted: int) -> Sight | None:
        return look_at(connection, queue, wanted, self._clock.now_ms())

    def _ended(self, key: tuple[str, int], looking: asyncio.Task[Sight | None]) -> None:
        if key in self._under_way and self._under_way[key][1] is looking:
            del self._under_way[key]
