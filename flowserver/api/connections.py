"""Connections of clients, bounded in bytes and time before the sender is known.

A connection is at any time in one of three states: it receives a request's head, or a request's body, or nothing. The
head has a bound of bytes and of time, the body one of time (its bytes are bounded by `RequestFrame`, which knows what
the path may take). A connection that receives nothing and owes no answer is closed by uvicorn's keep-alive timer.

Time does not run while the server itself has stopped reading, nor while the client waits for `100 Continue`.
Each connection has one timer that looks at it now and then, so that a request costs no timer of its own.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any, Final

import uuid_utils
from uvicorn.config import Config
from uvicorn.protocols.http import httptools_impl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from flowserver.api.middleware import fault_body
from flowserver.api.security_headers import DATA_POLICY, POLICY, SAFE
from flowserver.base.errors import (
    FlowServerError,
    HeadTooLarge,
    InvalidArgument,
    RequestTimeout,
    UrlTooLong,
)
from flowserver.base.limits import Limits

LINGER_SECONDS: Final = 1.0
"""How long a refused client may take to read why. What it still sends meanwhile is dropped; without the pause the
kernel would answer that with a reset, which can overtake the refusal."""

_SAFE: Final = b"".join(f"{name}: {value}\r\n".encode() for name, value in (*SAFE, (POLICY, DATA_POLICY)))

LINE_EXTRA_BYTES: Final = 4
"""Of each header line: colon, space, and the line's end."""


def concerns_the_server(record: logging.LogRecord) -> bool:
    """False for what uvicorn says of each request that cannot be read, or that wants another protocol.

    Every client could fill the disk with such lines. The log has them at the level `debug`.
    """
    is_of_a_request = record.module == httptools_impl.__name__.rpartition(".")[2] and record.levelno == logging.WARNING
    return not is_of_a_request or logging.getLogger(record.name).isEnabledFor(logging.DEBUG)


class HeadRefused(Exception):
    """Ends the parsing of a request that was refused."""


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's own protocol within `limits`; `on_lost` is called when the connection is gone."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        limits: Limits | None = None,
        on_lost: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state)
        self._limits = limits or Limits()
        self._on_lost = on_lost
        self._head_since: float | None = None
        self._body_since: float | None = None
        self._heard_at = 0.0
        self._answered_at = 0.0
        self._unparsed_bytes = 0
        """What has come since the last part of a request that was whole: a head, or a piece of a body."""
        self._head_bytes = 0
        self._fault: FlowServerError | None = None
        self._is_refused = False
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        """A client has connected; its first request is expected now."""
        super().connection_made(transport)
        self._head_since = self.loop.time()
        self._timer = self.loop.call_later(self._limits.head_seconds_max, self._look)

    @property
    def silent_since(self) -> float | None:
        """Since when the server has waited for this client, by the event loop's clock; None if the client waits for it.

        For a head that is since its begin, however many bytes come: else each could hold a connection for long.
        """
        cycle = self.cycle
        if self._is_refused or self.transport.is_closing():
            return None
        if cycle is None or cycle.response_complete:
            return self._answered_at if self._head_since is None else self._head_since
        is_sending = self._body_since is not None and self._head_since is None
        if not is_sending or self.flow.read_paused or cycle.waiting_for_100_continue:
            return None
        return self._heard_at

    def on_response_complete(self) -> None:
        """The server has answered."""
        self._answered_at = self.loop.time()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)
        if self._on_lost is not None:
            self._on_lost()

    def data_received(self, data: bytes) -> None:
        """Parse the data, unless it exceeds a limit."""
        if self._is_refused or self.transport.is_closing():
            return
        self._heard_at = self.loop.time()
        if self._head_since is None and self._body_since is None:
            self._head_since = self._heard_at
        self._unparsed_bytes += len(data)
        super().data_received(data)
        if self._unparsed_bytes > self._limits.head_bytes_max and not self._is_refused:
            self._refuse(self._too_large(len(self.url) if self.scope is not None and not self.headers else 0))

    def on_message_begin(self) -> None:
        """A request begins, perhaps behind another one."""
        super().on_message_begin()
        if self._head_since is None:
            self._head_since = self._heard_at

    def on_headers_complete(self) -> None:
        """The head is whole: serve the request, and let nothing that comes now be a header of it."""
        self._head_bytes = len(self.url) + _size(self.headers)
        if self._head_bytes > self._limits.head_bytes_max:
            self._fault = self._too_large(len(self.url))
            raise HeadRefused
        self._unparsed_bytes = 0
        self._head_since = None
        super().on_headers_complete()  # raises for a URL that it cannot read
        self._body_since = self._heard_at
        self.headers = []  # the scope keeps the old list; trailers go into this one, which nothing reads

    def on_body(self, body: bytes) -> None:
        """A piece of a body."""
        self._unparsed_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is whole."""
        if self.headers and self._head_bytes + _size(self.headers) > self._limits.head_bytes_max:
            self._fault = self._too_large(0)
            raise HeadRefused
        self._unparsed_bytes = 0
        self._body_since = None
        super().on_message_complete()
        if self.cycle.response_complete:  # sooner than its request: uvicorn's own timer went with the next byte
            self._unset_keepalive_if_required()
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def send_400_response(self, msg: str) -> None:
        """Refuse what the parser cannot read, or what was refused while it read."""
        self._refuse(self._fault or InvalidArgument(msg))

    def _too_large(self, url_bytes: int) -> FlowServerError:
        bytes_max = self._limits.head_bytes_max
        if url_bytes >= bytes_max:
            return UrlTooLong(f"the URL is longer than {bytes_max} bytes; send long parameters in the body of a POST")
        return HeadTooLarge(f"request line, headers and trailers have more than {bytes_max} bytes")

    def _look(self) -> None:
        """Refuse the request if its time is up, else check again when it will be."""
        if self._is_refused or self.transport.is_closing():
            return
        now = self.loop.time()
        due = self._due(now)
        if due > now:
            self._timer = self.loop.call_at(due, self._look)
        else:
            self._refuse(RequestTimeout())

    def _due(self, now: float) -> float:
        limits, cycle = self._limits, self.cycle
        if self._head_since is not None and (cycle is None or cycle.response_complete):
            return self._head_since + limits.head_seconds_max
        if self._body_since is None or self._head_since is not None:
            return now + limits.head_seconds_max
        if self.flow.read_paused or cycle.waiting_for_100_continue:
            self._heard_at = now
            return now + limits.body_idle_seconds_max
        return min(self._heard_at + limits.body_idle_seconds_max, self._body_since + limits.body_seconds_max)

    def _refuse(self, fault: FlowServerError) -> None:
        """Send the reason, unless it could be taken for the answer to another request, and close the connection."""
        self._is_refused = True
        self._unset_keepalive_if_required()
        cycle = self.cycle
        if self._body_since is not None and cycle is not None and not cycle.response_complete:
            is_free = not cycle.response_started and not self.pipeline
            cycle.disconnected = True
            cycle.message_event.set()
        else:
            is_free = self._body_since is None and (cycle is None or cycle.response_complete)
        if not is_free:
            self.transport.close()
            return
        self.transport.write(_refusal(fault))
        self.flow.resume_reading()
        self._timer = self.loop.call_later(LINGER_SECONDS, self.transport.close)


def _size(headers: Iterable[tuple[bytes, bytes]]) -> int:
    return sum(len(name) + len(value) + LINE_EXTRA_BYTES for name, value in headers)


def _refusal(fault: FlowServerError) -> bytes:
    request_id = str(uuid_utils.uuid4())
    body = fault_body(fault, request_id)
    head = (
        STATUS_LINE[fault.status],
        b"content-type: application/json\r\n",
        b"content-length: %d\r\n" % len(body),
        b"x-request-id: %s\r\n" % request_id.encode(),
        _SAFE,
        b"connection: close\r\n\r\n",
    )
    return b"".join((*head, body))
