"""Shares one database scan among concurrent receives.

A receive joins only a scan that has not started, so it never misses a committed message.
"""

import asyncio
from functools import partial

from sqlalchemy import Connection

from flowserver.base.clock import Clock
from flowserver.concurrency.futures import shared
from flowserver.engine.commit.reader import Reader
from flowserver.store.queues.messages import ScanResult, scan_queue


class SharedScan:
    """Scans through the reader. Make and use it inside one event loop."""

    def __init__(self, reader: Reader, clock: Clock) -> None:
        self._reader = reader
        self._clock = clock
        self._under_way: dict[tuple[str, int], tuple[int, asyncio.Task[ScanResult | None]]] = {}

    async def scan(self, queue: str, wanted: int, *, by_caller: bool = False) -> ScanResult | None:
        """The messages of a queue, counted up to `wanted`, as of now or later; None if the queue does not exist.

        Raises ResourceThrottled when `by_caller`, SQLAlchemyError.
        """
        key = (queue, wanted)
        begun, scanning = self._under_way.get(key, (None, None))
        if scanning is None or begun != self._reader.begun:
            scanning = shared(self._reader.ask(partial(self._scan, queue=queue, wanted=wanted), by_caller=by_caller))
            self._under_way[key] = self._reader.begun, scanning
            scanning.add_done_callback(partial(self._ended, key))
        return await asyncio.shield(scanning)

    def _scan(self, connection: Connection, queue: str, wanted: int) -> ScanResult | None:
        return scan_queue(connection, queue, wanted, self._clock.now_ms())

    def _ended(self, key: tuple[str, int], scanning: asyncio.Task[ScanResult | None]) -> None:
        if key in self._under_way and self._under_way[key][1] is scanning:
            del self._under_way[key]
