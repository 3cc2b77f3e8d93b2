"""Occupies a thread of the engine until a test releases it."""

import asyncio
import threading

from sqlalchemy import Connection


class Gate:
    """A write or query that occupies its thread until the test opens it."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self._opened = threading.Event()
        self._loop = asyncio.get_running_loop()

    def __call__(self, _: Connection) -> str:
        return self.block()

    def block(self) -> str:
        """Return once the test has opened it."""
        self._loop.call_soon_threadsafe(self.reached.set)
        assert self._opened.wait(20)
        return "through"

    def open(self) -> None:
        self._opened.set()

    close = open
    """For `closing`: nothing remains occupied after its block."""
