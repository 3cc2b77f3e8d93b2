"""Reads that may take long: lists, histories, counts. They have threads of their own and delay only each other.

Look-ups by key use `Reader`, which answers many of them in one transaction.
"""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from sqlalchemy import Connection

from flowserver.base.limits import Limits
from flowserver.concurrency.threads import Threads
from flowserver.store.sql.database import Database

LIST_THREADS = 3
"""Slow reads that run at once; each takes one of the database's `READERS_MAX` connections."""

T = TypeVar("T")


class SlowReads:
    """Runs slow reads, each in a transaction of its own."""

    def __init__(self, database: Database, limits: Limits) -> None:
        self._database = database
        self._threads = Threads("lists", LIST_THREADS, waiting_max=limits.pending_messages_max)

    async def ask(self, query: Callable[[Connection], T]) -> T:
        """Run a query; returns or raises what it does. Raises ResourceThrottled if `pending_messages_max` wait."""
        return await self._threads.run(partial(self._database.run_read, query))

    def close(self) -> None:
        """Accept no more queries."""
        self._threads.close()
