"""Accepts connections of clients, and keeps enough file descriptors for the database and the calls of functions.

Event loops accept all queued connections before they report them, and each connection is a descriptor: a burst could
take every descriptor of the process. So the server accepts connections itself, and stops while it has the maximum.
Further clients wait in the kernel's queue.

A client that sends nothing must not keep them waiting, and it costs an attacker nothing to open connections. So while
others wait, connections are closed whose clients have been silent for longest, after `SILENT_SECONDS` at least. What
clients ask for is not cut off: a connection whose answer is due is not silent.
"""

import asyncio
import errno
import heapq
import logging
import selectors
import socket
from functools import partial
from operator import itemgetter
from typing import Any, Final

import uvicorn

from flowserver.api.connections import BoundedProtocol, concerns_the_server
from flowserver.api.security_headers import SAFE
from flowserver.base.limits import Limits

try:
    import resource
except ImportError:  # Windows, which has no such limit
    resource = None  # type: ignore[assignment]

log = logging.getLogger(__name__)

RESERVED_FILES: Final = 512
"""Open files for all else: the calls and deliveries that a node makes at once (384), the database, logs."""

ACCEPTED_AT_ONCE: Final = 64
"""Connections taken in one turn of the event loop; others wait for the next turn, behind the requests of this one."""

SILENT_SECONDS: Final = 1.0
"""A client may be silent for this time, however many others wait."""

LOOK_SECONDS: Final = 0.25
"""How often to look for silent clients while there are none, and others wait."""

CLOSED_AT_ONCE: Final = 256
"""Of many silent clients; looking at all connections takes milliseconds."""

EXHAUSTED_SECONDS: Final = 0.5
"""How long to accept none after the system had no file or memory for another."""

_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


def raise_file_limit(limits: Limits) -> None:
    """Let this process, and those it forks, open as many files as `limits` need and the system allows."""
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = limits.connections_max + RESERVED_FILES
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))


def connections_max(limits: Limits) -> int:
    """How many connections of clients this process may have open at once."""
    files = resource.RLIM_INFINITY if resource is None else resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if resource is None or files == resource.RLIM_INFINITY:
        return limits.connections_max
    return max(1, min(limits.connections_max, files - min(RESERVED_FILES, files // 2)))


class BoundedServer(uvicorn.Server):
    """uvicorn, with connections within `limits`, and safe headers in each answer.

    The configuration's protocol is a BoundedProtocol.
    """

    def __init__(self, config: uvicorn.Config, limits: Limits) -> None:
        config.headers = [*config.headers, *SAFE]
        logging.getLogger("uvicorn.error").addFilter(concerns_the_server)
        super().__init__(config)
        self._limits = limits
        self._listeners: list[socket.socket] = []
        self._connections_max = 0
        self._open: set[socket.socket] = set()
        self._is_accepting = False
        self._was_full = False
        self._connecting: set[asyncio.Task[None]] = set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept on open, listening sockets."""
        await super().startup(sockets=[])  # uvicorn listens on none itself
        self._listeners = list(sockets or ())
        for listener in self._listeners:
            listener.setblocking(False)
        self._connections_max = connections_max(self._limits)
        self._accept_again()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more, let requests end, and end."""
        self._pause()
        self._listeners = []
        await super().shutdown(sockets=sockets)

    def _accept_again(self) -> None:
        if len(self._open) < self._connections_max:
            self._listen()

    def _listen(self) -> None:
        if self._is_accepting or not self._listeners:
            return
        self._is_accepting = True
        loop = asyncio.get_running_loop()
        for listener in self._listeners:
            loop.add_reader(listener, self._accept, listener)

    def _pause(self) -> None:
        if self._is_accepting:
            self._is_accepting = False
            loop = asyncio.get_running_loop()
            for listener in self._listeners:
                loop.remove_reader(listener)

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            if len(self._open) >= self._connections_max:
                if _has_waiting(listener):
                    self._note_full()
                return
            try:
                accepted, _address = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._give_up(error)
                return
            self._open.add(accepted)
            accepted.setblocking(False)
            connecting = asyncio.ensure_future(self._connect(accepted))
            self._connecting.add(connecting)
            connecting.add_done_callback(self._connecting.discard)

    def _note_full(self) -> None:
        self._pause()
        if not self._was_full:
            form = "%d connections are open, which is the most: further ones wait until others end or are silent"
            log.warning(form, len(self._open))
        self._was_full = True
        if not self._close_silent():
            asyncio.get_running_loop().call_later(LOOK_SECONDS, self._listen)

    def _close_silent(self) -> bool:
        """Close the connections whose clients have been silent for longest; whether there are any."""
        latest = asyncio.get_running_loop().time() - SILENT_SECONDS
        silent = [
            (since, connection)
            for connection in self.server_state.connections
            if isinstance(connection, BoundedProtocol)
            and (since := connection.silent_since) is not None
            and since <= latest
        ]
        longest = heapq.nsmallest(CLOSED_AT_ONCE, silent, key=itemgetter(0))
        for _, connection in longest:
            connection.transport.close()
        return bool(longest)

    def _give_up(self, error: OSError) -> None:
        log.warning("a connection cannot be accepted: %s", error.strerror)
        if error.errno in _EXHAUSTED:
            self._pause()
            asyncio.get_running_loop().call_later(EXHAUSTED_SECONDS, self._accept_again)

    async def _connect(self, accepted: socket.socket) -> None:
        protocol_class: Any = self.config.http_protocol_class
        protocol = partial(
            protocol_class,
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
            limits=self._limits,
            on_lost=partial(self._note_lost, accepted),
        )
        try:
            if accepted.family in (socket.AF_INET, socket.AF_INET6):
                accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await asyncio.get_running_loop().connect_accepted_socket(protocol, accepted)
        except OSError:  # the client has gone already
            accepted.close()
            self._note_lost(accepted)

    def _note_lost(self, lost: socket.socket) -> None:
        self._open.discard(lost)
        if len(self._open) <= self._connections_max // 2:
            self._was_full = False
        self._accept_again()


def _has_waiting(listener: socket.socket) -> bool:
    """Whether a client waits to be accepted."""
    with selectors.DefaultSelector() as selector:
        selector.register(listener, selectors.EVENT_READ)
        return bool(selector.select(0))
