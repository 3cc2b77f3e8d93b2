"""Connections to functions: where a URL leads, and the pool of idle ones.

New ones are made by aiohttp's connector: names go through our resolver, sockets through a `Guard`, happy eyeballs and
TLS are its own. The proxies of the environment are not asked. The pool is ours because aiohttp's does not tell a
new connection from a used one without tracing, which costs more than the pool.
"""

import asyncio
from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from aiohttp import (
    ClientConnectionError,
    ClientRequest,
    ClientTimeout,
    ConnectionTimeoutError,
    InvalidURL,
    NonHttpUrlClientError,
    TCPConnector,
)
from aiohttp.abc import AbstractResolver
from aiohttp.client_reqrep import ConnectionKey
from yarl import URL

from flowserver.base.limits import Limits
from flowserver.invokers.calls import Endpoint
from flowserver.invokers.forbidden_addresses import ORDINARY, AddressRules, Guard
from flowserver.invokers.http_connection import DeadlinePassed, HttpConnection
from flowserver.invokers.request_bytes import lasting_head

CONNECT_SECONDS = 10
"""A function's host that does not take a connection in this time counts as not reachable."""

IDLE_SECONDS = 4
"""An idle connection is closed after this time: sooner than common servers close theirs (uvicorn and Node 5 s), so
that a call seldom meets a connection that is just being closed."""

ROUTES_MAX = 1_000
"""Endpoints whose way is remembered, each by its identity; a further one makes all be worked out anew."""

_TIMEOUT = ClientTimeout(connect=CONNECT_SECONDS)


@dataclass(frozen=True, slots=True)
class Route:
    """How to reach an endpoint, computed once for all its calls."""

    origin: ClientRequest
    """What the connector wants to know: scheme, host and port. It is never sent."""
    key: ConnectionKey
    """The same for all routes that may share connections."""
    head: str
    """See `lasting_head`."""


class Routes:
    """The routes of endpoints that were called; make it inside a running event loop."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Endpoint, Route]] = {}

    def find(self, endpoint: Endpoint) -> Route:
        """The endpoint's route. Raises InvalidURL or NonHttpUrlClientError, and ValueError for bad headers."""
        known = self._known.get(id(endpoint))
        if known is not None:
            return known[1]
        route = _route(endpoint)
        if len(self._known) >= ROUTES_MAX:
            self._known.clear()
        self._known[id(endpoint)] = endpoint, route  # which keeps the endpoint, or another could have its id
        return route


def _route(endpoint: Endpoint) -> Route:
    try:
        url = URL(endpoint.url)
    except ValueError:
        raise InvalidURL(endpoint.url) from None
    if url.scheme not in {"http", "https"}:
        raise NonHttpUrlClientError(endpoint.url)
    if not url.raw_host:
        raise InvalidURL(endpoint.url)
    origin = ClientRequest("POST", url, loop=asyncio.get_running_loop())
    return Route(origin, origin.connection_key, lasting_head(url, endpoint.headers))


class ConnectionPool:
    """The connections to functions, idle ones kept for the next call. Calls bound their number, not this pool."""

    def __init__(
        self,
        resolver: AbstractResolver,
        limits: Limits,
        idle_seconds: float = IDLE_SECONDS,
        addresses: AddressRules = ORDINARY,
    ) -> None:
        self._resolver = resolver
        self._limits = limits
        self._idle_seconds = idle_seconds
        self._addresses = addresses
        self._loop = asyncio.get_running_loop()
        self._connectors: dict[Guard, TCPConnector] = {}
        self._is_closed = False
        self._idle: dict[ConnectionKey, deque[tuple[HttpConnection, float]]] = {}
        self._closing: asyncio.TimerHandle | None = None

    def take(self, route: Route) -> HttpConnection | None:
        """The idle connection to the route's origin that was used last, if there is one."""
        idle = self._idle.get(route.key)
        while idle:
            connection, since = idle.pop()
            if connection.is_ready and self._loop.time() - since < self._idle_seconds:
                return connection
            connection.close()
        return None

    def give_back(self, route: Route, connection: HttpConnection) -> None:
        """Keep a connection after a call, if it can carry another."""
        if not connection.is_ready or self._is_closed:
            connection.close()
            return
        self._idle.setdefault(route.key, deque()).append((connection, self._loop.time()))
        if self._closing is None:
            self._closing = self._loop.call_later(self._idle_seconds, self._close_idle)

    async def open(self, route: Route, deadline: float) -> HttpConnection:
        """A new connection to the route's origin.

        Raises aiohttp's ClientConnectionError if none comes about, ConnectionTimeoutError if that takes too long, and
        DeadlinePassed if the event loop's clock shows `deadline` before.
        """
        if self._is_closed:
            raise ClientConnectionError("the invoker has been closed")
        whole_call = asyncio.timeout_at(deadline)
        try:
            async with whole_call:
                lease = await self._connector(route).connect(route.origin, [], _TIMEOUT)
        except TimeoutError as error:
            if whole_call.expired():
                raise DeadlinePassed(connected=False) from error
            raise ConnectionTimeoutError from error
        connection = cast(HttpConnection, lease.protocol)
        connection.lease = lease
        return connection

    def close_idle(self) -> None:
        """Close the connections that are not in use: each holds a descriptor."""
        for idle in self._idle.values():
            for connection, _ in idle:
                connection.close()
        self._idle.clear()

    async def close(self) -> None:
        """Close all connections, also those in use."""
        if self._closing is not None:
            self._closing.cancel()
        self._is_closed = True
        self.close_idle()
        for connector in self._connectors.values():
            await connector.close()

    def _connector(self, route: Route) -> TCPConnector:
        """The one whose sockets the guard of the route's host makes."""
        guard = self._addresses.guard_of(route.origin.url.raw_host or "")
        connector = self._connectors.get(guard)
        if connector is None:
            make = guard.open_socket
            connector = TCPConnector(limit=0, force_close=True, resolver=self._resolver, socket_factory=make)
            # The connector has no parameter for the protocol of its connections.
            connector._factory = cast(Any, partial(HttpConnection, self._loop, self._limits))
            self._connectors[guard] = connector
        return connector

    def _close_idle(self) -> None:
        """Close connections that have been idle for long enough, oldest first; runs again later if any are left."""
        longest = self._loop.time() - self._idle_seconds
        for key, idle in list(self._idle.items()):
            while idle and (idle[0][1] <= longest or not idle[0][0].is_ready):
                idle.popleft()[0].close()
            if not idle:
                del self._idle[key]
        self._closing = self._loop.call_later(self._idle_seconds / 4, self._close_idle) if self._idle else None
