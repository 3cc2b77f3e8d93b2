"""Retries with backoff while the database is away, so that nothing is lost by an outage."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from itertools import chain, repeat
from typing import TypeVar

from sqlalchemy.exc import SQLAlchemyError

from flowserver.base.errors import InvalidArgument
from flowserver.store.cluster.nodes import LeaseLost
from flowserver.store.sql.errors import holds_nul, is_away, reason_of, was_cut

log = logging.getLogger(__name__)

AGAIN_SECONDS = (0.05, 0.2, 1.0, 2.0, 5.0)
"""Backoff between tries; the last pause repeats."""

FAULTS_MAX = 3
"""Failures of the same work while the database works, before it is given up."""

NUL_IN_TEXT = "a text holds the character NUL, which the database cannot store"

T = TypeVar("T")


async def persist(attempt: Callable[[], Awaitable[T]], *, gives_up: bool = False) -> T:
    """Retry until the database works; `attempt` must be idempotent, because an earlier try may have been committed.

    With `gives_up`, raises the error after FAULTS_MAX failures that are not an outage. Without it, raises
    InvalidArgument for a text that the database cannot store.
    """
    faults = 0
    for pause in chain(AGAIN_SECONDS, repeat(AGAIN_SECONDS[-1])):
        try:
            return await attempt()
        except (SQLAlchemyError, LeaseLost) as error:
            faults += not (isinstance(error, LeaseLost) or is_away(error) or was_cut(error))
            if gives_up and faults >= FAULTS_MAX:
                raise
            if holds_nul(error) and not gives_up:
                raise InvalidArgument(NUL_IN_TEXT) from None
            log.warning("the database failed and the work is retried: %s", reason_of(error))
        await asyncio.sleep(pause)
    raise AssertionError("the pauses never end")
