"""An answer's head and body in one packet: uvicorn writes them one by one, and each costs a system call."""

import asyncio
from typing import Any

from flowserver.api.connections import BoundedProtocol

WRITTEN_AT_ONCE_BYTES = 65_536
"""More than this is written before the turn's end, so that the transport can pause a sender that never waits."""


class JoinedWrites:
    """A transport that collects writes and passes them on once per turn of the event loop, sooner if they are large."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._pieces: list[bytes] = []
        self._bytes = 0

    def write(self, data: bytes) -> None:
        """Write soon, in order. Data that a lost connection did not take is dropped."""
        if not self._pieces:
            self._loop.call_soon(self._flush)
        self._pieces.append(data)
        self._bytes += len(data)
        if self._bytes >= WRITTEN_AT_ONCE_BYTES:
            self._flush()

    def close(self) -> None:
        """Close once everything is written."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._pieces and not self._transport.is_closing():
            self._transport.write(b"".join(self._pieces))
        self._pieces.clear()
        self._bytes = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class JoiningProtocol(BoundedProtocol):
    """The bounded protocol over such a transport."""

    def connection_made(self, transport: Any) -> None:
        """A client has connected."""
        super().connection_made(JoinedWrites(transport))  # type: ignore[arg-type] # it has all that a transport has
