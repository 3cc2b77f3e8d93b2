"""Retries with backoff while the database is away, so that nothing is lost by an outage."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from sqlalchemy.exc import SQLAlchemyError

from flowserver.base.errors import InvalidArgument
from flowserver.store.cluster.nodes import LeaseLost
from flowserver.store.sql.errors import holds_nul, is_away, lost_connection, reason_of

log = logging.getLogger(__name__)

BACKOFF_SECONDS = (0.05, 0.2, 1.0, 2.0, 5.0)
"""Backoff between tries; the last pause repeats."""

FAULTS_MAX = 3
"""With `gives_up`: how many failures other than outages end the retries."""

NUL_IN_TEXT = "a text holds the character NUL, which the database cannot store"

T = TypeVar("T")


async def retry_until_available(attempt: Callable[[], Awaitable[T]], *, gives_up: bool = False) -> T:
    """Retry until the database works; `attempt` must be idempotent, because an earlier try may have been committed.

    With `gives_up`: raises after FAULTS_MAX failures that are not outages. Without it: retries for ever, except that a
    text with NUL raises InvalidArgument.
    """
    faults = tries = 0
    while True:
        try:
            return await attempt()
        except (SQLAlchemyError, LeaseLost) as error:
            faults += not (isinstance(error, LeaseLost) or is_away(error) or lost_connection(error))
            if gives_up and faults >= FAULTS_MAX:
                raise
            if holds_nul(error) and not gives_up:
                raise InvalidArgument(NUL_IN_TEXT) from None
            log.warning("the database failed and the work is retried: %s", reason_of(error))
        await asyncio.sleep(BACKOFF_SECONDS[min(tries, len(BACKOFF_SECONDS) - 1)])
        tries += 1
