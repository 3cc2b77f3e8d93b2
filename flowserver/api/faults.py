"""What a request answers that failed for no fault of the caller's; the same over RPC and REST."""

import logging

from flowserver.base.errors import FlowServerError, InternalServerError, ServiceUnavailable
from flowserver.store.errors import is_away, reason_of

log = logging.getLogger(__name__)


def as_fault(error: Exception, request_id: str) -> FlowServerError:
    """ServiceUnavailable while the database is away, else InternalServerError; the log has the details."""
    if is_away(error):
        log.warning("request %s failed: %s", request_id, reason_of(error))
        return ServiceUnavailable()
    log.error("request %s failed", request_id, exc_info=error)
    return InternalServerError()
