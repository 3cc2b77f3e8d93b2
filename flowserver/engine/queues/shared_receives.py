"""Shares one database scan among concurrent receives.

A receive joins only a scan that has not started, so it never misses a committed message.
"""

from functools import partial

from sqlalchemy import Connection

from flowserver.base.clock import Clock
from flowserver.concurrency.single_flight import SingleFlight
from flowserver.engine.reads.lookup_reader import Reader
from flowserver.store.queues.messages import ScanResult, scan_queue


class SharedScan:
    """Scans through the reader. Make and use it inside one event loop."""

    def __init__(self, reader: Reader, clock: Clock) -> None:
        self._reader = reader
        self._clock = clock
        self._scans: SingleFlight[tuple[int, str, int], ScanResult | None] = SingleFlight()

    async def scan(self, queue: str, wanted: int, *, by_caller: bool = False) -> ScanResult | None:
        """The messages of a queue, counted up to `wanted`, as of now or later; None if the queue does not exist.

        Raises ResourceThrottled when `by_caller`, SQLAlchemyError.
        """
        question = partial(self._scan, queue=queue, wanted=wanted)
        key = self._reader.begun, queue, wanted
        return await self._scans.run(key, partial(self._reader.ask, question, by_caller=by_caller))

    def _scan(self, connection: Connection, queue: str, wanted: int) -> ScanResult | None:
        return scan_queue(connection, queue, wanted, self._clock.now_ms())
