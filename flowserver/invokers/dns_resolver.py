"""Resolves the names of functions' hosts on threads of their own.

The system's look-up blocks its thread, for seconds if a name server does not answer. On the event loop's own threads,
which also read the database, calls to a few such names would stop the whole server.
"""

import socket
from collections.abc import Callable
from functools import partial
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult

from flowserver.concurrency.threads import Threads

THREADS_MAX = 8
"""How many names are looked up at once; further ones wait, and their calls' time-outs bound how long."""

_NUMERIC = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV


class OwnThreadsResolver(AbstractResolver):
    """The system's resolver; `look_up` is `socket.getaddrinfo` or a replacement for it."""

    def __init__(self, look_up: Callable[..., list[Any]] = socket.getaddrinfo) -> None:
        self._look_up = look_up
        self._threads = Threads("resolver", THREADS_MAX)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The addresses of a host; raises OSError if it has none."""
        kind, flags = socket.SOCK_STREAM, socket.AI_ADDRCONFIG
        found = await self._threads.run(partial(self._look_up, host, port, family, kind, 0, flags))
        return [_result(host, *info) for info in found]

    async def close(self) -> None:
        """Take no more names; look-ups under way end by themselves."""
        self._threads.close()


def _result(
    name: str, family: socket.AddressFamily, _: int, protocol: int, __: str, target: tuple[Any, ...]
) -> ResolveResult:
    # A link-local IPv6 address would lose its zone here, but such addresses are never called.
    return ResolveResult(hostname=name, host=target[0], port=target[1], family=family, proto=protocol, flags=_NUMERIC)
