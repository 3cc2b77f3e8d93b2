"""Publishes to the streams of a NATS server or cluster (JetStream). Stores nothing: an unconfirmed publish has failed.

The client's own reconnecting is not used: it would buffer messages that no caller waits for any more. Instead each
publish uses the open connection or makes one, and retries transient errors until its time is up.
"""

import asyncio
import contextlib
import logging
import os
import ssl
from dataclasses import dataclass
from typing import Final

from nats.aio.client import Client
from nats.errors import Error
from nats.js import JetStreamContext
from nats.js.api import Header
from nats.js.errors import APIError, NoStreamResponseError, ServerError, ServiceUnavailableError

from flowserver.base.errors import FlowServerError, QueueNotExist
from flowserver.concurrency.futures import shared
from flowserver.invokers.brokers import Access, BrokerMessage, BrokerRefused, BrokerUnavailable, Outlet

log = logging.getLogger(__name__)

TITLE: Final = "the NATS server"
"""How failures name it; where it is, is for the log alone, because failures stand in histories."""

AGAIN_SECONDS = 0.1
"""The pause before a message is published again."""

CONNECT_SECONDS = 2
"""A host that has not answered in this time is left for another."""

CLOSE_SECONDS = 1

PING_SECONDS = 5
"""How often a silent server is asked whether it is there; two answers that stay away end the connection."""

MAY_PASS = (BrokerUnavailable, QueueNotExist)
"""A stream may be missing for a moment: its leader is being chosen, or its server has just started."""


@dataclass(frozen=True)
class NatsConnection:
    """A connection."""

    client: Client
    stream: JetStreamContext
    lost: asyncio.Future[None]
    """Resolved when the connection is closed or lost."""

    def let_go(self) -> None:
        """Tell the users of the connection that it is closed or lost."""
        if not self.lost.done():
            self.lost.set_result(None)


class NatsBroker:
    """One connection that all publishes share. It is opened at the first use, and again after it was lost."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._connection: asyncio.Task[NatsConnection] | None = None
        self._last_error: Exception | None = None
        self._is_away = False
        self._is_closed = False

    async def publish(self, outlet: Outlet, message: BrokerMessage) -> None:
        """Return once a stream has confirmed that it keeps the message, or kept one of the same id before.

        Raises QueueNotExist if no stream takes the subject, BrokerUnavailable (it may keep the message nevertheless),
        BrokerRefused.
        """
        mishap: FlowServerError | None = None
        try:
            async with asyncio.timeout(outlet.timeout_seconds):
                while True:
                    try:
                        return await self._publish(outlet, message)
                    except MAY_PASS as error:
                        if self._is_closed:
                            raise
                        mishap = error
                    await asyncio.sleep(AGAIN_SECONDS)
        except TimeoutError:
            raise mishap or self._not_confirmed(outlet) from None

    async def close(self) -> None:
        """Close the connection; publishes under way fail."""
        self._is_closed = True
        if self._connection is None:
            return
        self._connection.cancel()
        try:
            connection = await self._connection
        except (asyncio.CancelledError, BrokerUnavailable):
            return
        connection.let_go()
        await _close(connection.client)

    async def _publish(self, outlet: Outlet, message: BrokerMessage) -> None:
        headers = {**message.headers, Header.MSG_ID.value: message.message_id}
        if not all(value.isascii() and value.isprintable() for value in headers.values()):
            raise BrokerRefused("a header would hold what is no single line of ASCII")  # the client does not check
        connection = await self._connected()
        publishing = shared(
            connection.stream.publish(
                outlet.subject, message.body, timeout=outlet.timeout_seconds, stream=outlet.stream, headers=headers
            )
        )
        try:
            await asyncio.wait((publishing, connection.lost), return_when=asyncio.FIRST_COMPLETED)
            if not publishing.done():
                raise BrokerUnavailable(f"the connection to {TITLE} broke before the message was confirmed")
            publishing.result()
        except (Error, OSError) as error:
            raise self._explained(error, outlet) from None
        except (LookupError, TypeError, ValueError):
            raise BrokerRefused(f"what answers to the subject {outlet.subject} is no stream") from None
        finally:
            publishing.cancel()

    async def _connected(self) -> NatsConnection:
        """The connection; concurrent callers share one attempt to open it."""
        if self._is_closed:
            raise BrokerUnavailable("the server stops")
        if self._connection is None or _is_over(self._connection):
            self._connection = shared(self._connect())
        return await asyncio.shield(self._connection)

    async def _connect(self) -> NatsConnection:
        client = Client()
        connection = NatsConnection(client, client.jetstream(), asyncio.get_running_loop().create_future())
        self._last_error = None
        try:
            await self._open(connection)
        except (Error, OSError) as error:
            await _close(client)
            reason = _reason(self._last_error or error)
            self._note_away(reason)
            raise BrokerUnavailable(f"{TITLE} could not be reached: {reason}") from None
        except asyncio.CancelledError:
            await _close(client)
            raise
        self._note_away(None)
        return connection

    async def _open(self, connection: NatsConnection) -> None:
        """Connect to any of the hosts, each tried twice; raises Error or OSError."""

        async def note_closed() -> None:
            connection.let_go()

        token = self._access.user if self._access.password is None else None
        await connection.client.connect(
            [f"nats://{host}" for host in self._access.hosts],
            name="flowserver",
            user=None if token else self._access.user,
            password=self._access.password,
            token=token,
            error_cb=self._note_error,
            closed_cb=note_closed,
            allow_reconnect=False,
            max_reconnect_attempts=1,  # of each host, here
            reconnect_time_wait=0,
            connect_timeout=CONNECT_SECONDS,
            ping_interval=PING_SECONDS,
        )

    def _note_away(self, reason: str | None) -> None:
        """Tell the log once when the broker goes away, and once when it is back."""
        hosts = ",".join(self._access.hosts)
        if reason is not None and not self._is_away:
            log.warning("%s at %s cannot be reached: %s", TITLE, hosts, reason)
        if reason is None and self._is_away:
            log.warning("%s at %s is reached again", TITLE, hosts)
        self._is_away = reason is not None

    async def _note_error(self, error: Exception) -> None:
        self._last_error = error

    def _explained(self, error: Exception, outlet: Outlet) -> FlowServerError:
        """The error that callers see for a client's error."""
        if isinstance(error, NoStreamResponseError):
            return QueueNotExist(f"no stream of {TITLE} takes the subject {outlet.subject}")
        if isinstance(error, ServiceUnavailableError | ServerError):
            return BrokerUnavailable(f"{TITLE} cannot keep the message: {error.description}")
        if isinstance(error, APIError):
            return BrokerRefused(f"{TITLE} refuses the message: {error.description}")
        if isinstance(error, TimeoutError):
            return self._not_confirmed(outlet)
        return BrokerRefused(f"{TITLE} takes no such message: {_reason(error)}")

    def _not_confirmed(self, outlet: Outlet) -> BrokerUnavailable:
        heard = f" ({_reason(self._last_error)})" if self._last_error else ""
        return BrokerUnavailable(f"{TITLE} did not confirm the message in {outlet.timeout_seconds:g} s{heard}")


async def _close(client: Client) -> None:
    """Close a connection within a bounded time. The client would wait forever if the TLS handshake never finished."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(CLOSE_SECONDS):
            await client.close()


def _is_over(connection: asyncio.Task[NatsConnection]) -> bool:
    if not connection.done():
        return False
    return connection.cancelled() or connection.exception() is not None or connection.result().lost.done()


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return f"no secure connection came about: {error.reason}"
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno) if error.errno > 0 else str(error.strerror)
    return str(error).removeprefix("nats: ") or type(error).__name__
