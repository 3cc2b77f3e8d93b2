"""One line of the log for each request, if the setting `access_log` asks for it.

A line holds nothing that the client chose freely: no path and no query, in which there may be tokens and signatures.
"""

import logging
from typing import Final

from starlette.types import Scope

log = logging.getLogger("flowserver.access")
log.setLevel(logging.CRITICAL)  # until `turn_on`

FORM: Final = "%(method)s %(route)s %(status)s in %(ms).1f ms, %(bytes)d bytes"


def turn_on() -> None:
    """Write lines from now on, at every `log_level`."""
    log.setLevel(logging.INFO)


def is_on() -> bool:
    """Whether lines are written."""
    return log.isEnabledFor(logging.INFO)


def endpoint_of(scope: Scope) -> str:
    """The name of what serves the request, for a request that does not say what it calls; "" if nothing does."""
    return str(getattr(scope.get("endpoint"), "__name__", "")).lstrip("_")


def write(method: str, route: str, status: int | str, seconds: float, bytes_sent: int) -> None:
    """Write the line of a request that is over."""
    fields = {
        "method": method,
        "route": route or "unknown",
        "status": status,
        "ms": round(seconds * 1_000, 3),
        "bytes": bytes_sent,
    }
    log.info(FORM, fields)
