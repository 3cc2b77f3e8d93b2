"""Keeps the last connection between transactions: checking one out of the pool each time costs more than a turn."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine

UNTESTED_SECONDS = 1.0
"""How long a connection to a database server may be idle and still be used without a test."""


class ConnectionCache:
    """The last used connection of an engine. The next transaction takes it; concurrent ones use the pool."""

    def __init__(self, engine: Engine, *, may_die: bool, seconds: Callable[[], float] = time.monotonic) -> None:
        """With `may_die`, an idle connection goes back to the pool, which tests it before its next use.

        `seconds` is a monotonic clock.
        """
        self._engine = engine
        self._may_die = may_die
        self._seconds = seconds
        self._lock = threading.Lock()
        self._spare: tuple[Connection, float] | None = None
        self._is_closed = False

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        """A transaction, committed when the block ends and rolled back if it raises."""
        connection = self._take()
        try:
            with connection.begin():
                yield connection
        except BaseException:
            self._let_go(connection)
            raise
        self._put_back(connection)

    def close(self) -> None:
        """Return the connection to the pool and cache none from now on; close the pool next."""
        with self._lock:
            self._is_closed = True
            spare, self._spare = self._spare, None
        if spare is not None:
            spare[0].close()

    def _take(self) -> Connection:
        with self._lock:
            spare, self._spare = self._spare, None
        if spare is not None:
            connection, last_used = spare
            if not self._may_die or self._seconds() - last_used < UNTESTED_SECONDS:
                return connection
            connection.close()
        return self._engine.connect()

    def _put_back(self, connection: Connection) -> None:
        with self._lock:
            if self._spare is None and not self._is_closed:
                self._spare = connection, self._seconds()
                return
        self._let_go(connection)

    def _let_go(self, connection: Connection) -> None:
        """Return it to the pool, or close it if the pool is closed."""
        if self._is_closed and not connection.invalidated:
            connection.detach()
        connection.close()
