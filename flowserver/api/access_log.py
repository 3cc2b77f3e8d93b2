"""One line of the log for each request, if the setting `access_log` asks for it.

A line holds nothing that the client chose freely: no path and no query, in which there may be tokens and signatures.
"""

import logging
import time
from typing import Final

from starlette.types import Message, Scope, Send

from flowserver.base.request_context import RequestContext

log = logging.getLogger("flowserver.access")
log.setLevel(logging.CRITICAL)  # until `turn_on`

FORM: Final = "%(method)s %(route)s %(status)s in %(ms).1f ms, %(bytes)d bytes"

UNANSWERED: Final = "unanswered"
"""The status of a request whose client went away before it was answered."""


def turn_on() -> None:
    """Write lines from now on, at every `log_level`."""
    log.setLevel(logging.INFO)


def is_on() -> bool:
    """Whether lines are written."""
    return log.isEnabledFor(logging.INFO)


class Line:
    """The line of one request, which begins now; `send` takes its answer."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._began_at = time.perf_counter()
        self._status: int | str = UNANSWERED
        self._bytes = 0

    async def send(self, message: Message) -> None:
        """Pass a message on, and note what it is."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
        await self._send(message)
        self._bytes += len(message.get("body", b""))

    def write(self, scope: Scope, request: RequestContext) -> None:
        """Write the line; the request is over."""
        endpoint = getattr(scope.get("endpoint"), "__name__", "").lstrip("_")
        fields = {
            "method": scope["method"],
            "route": request.route or endpoint or request.api or "unknown",
            "status": self._status,
            "ms": round((time.perf_counter() - self._began_at) * 1_000, 3),
            "bytes": self._bytes,
        }
        log.info(FORM, fields)
