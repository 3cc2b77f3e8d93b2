"""How many rows one deletion takes, so that its transaction stays short: adapted to the time of the last ones."""

import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from sqlalchemy import Connection

from flowserver.engine.commit.committer import Committer

ROWS_MIN, ROWS_MAX = 100, 4_000
"""Rows in one transaction."""

ROW_BYTES: Final = 4_096
"""A larger row counts as one row per so many bytes: a database reads and frees large values page by page."""

SHORT_SECONDS, LONG_SECONDS = 0.005, 0.02


class DeletionPace:
    """The size of the next deletion. It doubles after a short one and is halved after a long one."""

    def __init__(self, committer: Committer, rest: Callable[[float], Awaitable[None]]) -> None:
        """`rest` waits for a number of seconds."""
        self._committer = committer
        self._rest = rest
        self.rows = ROWS_MIN

    async def change(self, change: Callable[[Connection], int]) -> int:
        """Commit a deletion; returns its result, the number of deleted items."""
        count, seconds = await self._committer.write(partial(_timed, change=change))
        if count and seconds < SHORT_SECONDS:
            self.rows = min(self.rows * 2, ROWS_MAX)
        elif seconds > LONG_SECONDS:
            self.rows = max(self.rows // 2, ROWS_MIN)
        if self._committer.pending:  # give other work as much time as this has taken
            await self._rest(seconds)
        return count


def _timed(connection: Connection, change: Callable[[Connection], int]) -> tuple[int, float]:
    began = time.perf_counter()
    return change(connection), time.perf_counter() - began
