"""Caches reads of the database for many callers: one read at a time, cached for a while, with a bounded wait."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from sqlalchemy.exc import SQLAlchemyError

log = logging.getLogger(__name__)

SHARE_OF_TIME = 20
"""A read that took one second is cached for this many seconds, so that reads take at most a twentieth of the time."""

T = TypeVar("T")


class CachedRead(Generic[T]):
    """The cached result of a read, which is refreshed when a caller asks for it.

    The result is cached for `seconds`, or for `share_of_time` times as long as the read took; a failure for as long as
    it took, since a read that a fault cut off may have waited long for nothing. A caller waits at most
    `patience_seconds` and then gets the previous result if it is at most `good_seconds` old. It gets None if there is
    no such result, or the read failed.
    """

    def __init__(
        self,
        read: Callable[[], Awaitable[T]],
        *,
        seconds: float,
        patience_seconds: float,
        good_seconds: float,
        share_of_time: int = SHARE_OF_TIME,
    ) -> None:
        self._read = read
        self._seconds = seconds
        self._share_of_time = share_of_time
        self._patience_seconds = patience_seconds
        self._good_seconds = good_seconds
        self._value: T | None = None
        self._read_at = 0.0
        self._until = 0.0
        self._task: asyncio.Task[None] | None = None

    async def get(self) -> T | None:
        """The result, as fresh as the class promises."""
        loop = asyncio.get_running_loop()
        if self._task is None and loop.time() >= self._until:
            self._task = asyncio.create_task(self._refresh(), name="cached read")
        if self._task is not None:
            done, _ = await asyncio.wait([self._task], timeout=self._patience_seconds)
            if not done and loop.time() - self._read_at > self._good_seconds:
                return None
        return self._value

    async def _refresh(self) -> None:
        loop = asyncio.get_running_loop()
        began, share = loop.time(), 1
        try:
            self._value = await self._read()
            share = self._share_of_time
        except SQLAlchemyError as error:
            log.warning("the database does not answer: %s", type(error).__name__)
            self._value = None
        except Exception:
            log.exception("reading the database failed")
            self._value = None
        finally:
            self._read_at = loop.time()
            self._until = self._read_at + max(self._seconds, share * (self._read_at - began))
            self._task = None
