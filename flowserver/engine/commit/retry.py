"""Trying again what a database that is away could not do. Nothing may be lost because it was."""

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
"""Pauses before what the database could not do is tried again; the last one repeats."""

FAULTS_MAX = 3
"""So often the same fails although the database is there, before that is given up."""

NUL_IN_TEXT = "a text holds the character NUL, which the database cannot store"

T = TypeVar("T")


async def persist(attempt: Callable[[], Awaitable[T]], *, gives_up: bool = False) -> T:
    """Try until the database takes part; what is tried must do no harm when it has been done already.

    With `gives_up`, it raises the error of what fails again and again although the database is not away.
    Otherwise it raises InvalidArgument for a text that the database can never store.
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
            log.warning("the database failed, which is tried again: %s", reason_of(error))
        await asyncio.sleep(pause)
    raise AssertionError("the pauses never end")
