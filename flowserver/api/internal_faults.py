"""The answer to a request that failed through no fault of the caller; the same over RPC and REST."""

import logging

from flowserver.base.errors import FlowServerError, InternalServerError, InvalidArgument, ServiceUnavailable
from flowserver.store.sql.errors import holds_nul, is_away, reason_of

log = logging.getLogger(__name__)


def as_fault(error: Exception, what: str) -> FlowServerError:
    """ServiceUnavailable while the database is away, else InternalServerError; `what` names the failed work in the log.

    A text that the database cannot store is still the caller's error.
    """
    if holds_nul(error):
        return InvalidArgument("a text of the request holds the character NUL, which the database cannot store")
    if is_away(error):
        log.warning("%s failed: %s", what, reason_of(error))
        return ServiceUnavailable()
    log.error("%s failed", what, exc_info=error)
    return InternalServerError()
