"""How much one deletion of retention may take, so that its transaction stays short: by how long the last ones took."""

import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from sqlalchemy import Connection

from flowserver.engine.commit.committer import Committer

ROWS_MIN, ROWS_MAX = 100, 4_000
"""Rows in one transaction."""

ROW_BYTES: Final = 4_096
"""So many bytes of a larger row count as another row: a database reads and frees large values page by page."""

SHORT_SECONDS, LONG_SECONDS = 0.005, 0.02


class DeletionPace:
    """The size of the next deletion. It doubles after a short one and is halved after a long one."""

    def __init__(self, committer: Committer, rest: Callable[[float], Awaitable[None]]) -> None:
        """`rest` waits for so many seconds."""
        self._committer = committer
        self._rest = rest
        self.rows = ROWS_MIN

    async def change(self, change: Callable[[Connection], int]) -> int:
        """Commit a deletion; returns what it returns, the number of things that it has deleted."""
        count, seconds = await self._committer.write(partial(_timed, change=change))
        if count and seconds < SHORT_SECONDS:
            self.rows = min(self.rows * 2, ROWS_MAX)
        elif seconds > LONG_SECONDS:
            self.rows = max(self.rows // 2, ROWS_MIN)
        if self._committer.pending:  # let the others have as much time as this has taken from them
            await self._rest(seconds)
        return count


def _timed(connection: Connection, change: Callable[[Connection], int]) -> tuple[int, float]:
    began = time.perf_counter()
    return change(connection), time.perf_counter() - began
