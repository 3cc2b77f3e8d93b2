"""The load generator's HTTP client. It does as little work per request as possible, because it shares the server's
cores.

It supports the part of HTTP/1.1 that these servers need: keep-alive, one request at a time on a connection, no
redirects.
"""

import asyncio
import json
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlencode

import httptools

from tests.benchmarks.credentials import OPEN, Credentials


@dataclass(frozen=True, slots=True)
class Reply:
    """A server's response."""

    status: int
    body: bytes

    def json(self) -> Any:
        """The body; raises AssertionError with the body unless the request succeeded."""
        assert self.status == 200, self.body
        return json.loads(self.body)

    def require(self, text: bytes) -> None:
        """Assert that the request succeeded and the body holds this text; faster than parsing all of it."""
        assert self.status == 200 and text in self.body, self.body


class Client:
    """Requests to one server, each on a free or a new connection."""

    def __init__(self, base_url: str, credentials: Credentials = OPEN) -> None:
        self.url = base_url
        self.credentials = credentials
        address = base_url.removeprefix("http://")
        self._host, _, port = address.partition(":")
        self._port = int(port)
        self._free: list[_Connection] = []
        self._all: list[_Connection] = []
        self._address = address.encode()
        self._rpc_head = f" HTTP/1.1\r\nHost: {address}\r\n".encode()
        self._head = self._rpc_head + credentials.headers
        self.requests = 0

    async def call(self, action: bytes) -> Reply:
        """An RPC request; `action` is made by `rpc`."""
        proof, body = self.credentials.rpc(action, self._address)
        form = b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n" % len(body)
        return await self._send(b"".join((b"POST /", self._rpc_head, proof, form, body)))

    async def get(self, path: str) -> Reply:
        """A GET request."""
        return await self._send(b"".join((b"GET ", path.encode(), self._head, b"\r\n")))

    async def put(self, path: str, value: object) -> Reply:
        """A PUT request with a JSON body."""
        body = json.dumps(value).encode()
        kind = b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
        return await self._send(b"".join((b"PUT ", path.encode(), self._head, kind, body)))

    async def send(self, method: str, path: str, body: bytes, kind: str, headers: bytes = b"") -> Reply:
        """Any other request; `headers` are whole lines."""
        about = b"%bContent-Type: %b\r\nContent-Length: %d\r\n\r\n" % (headers, kind.encode(), len(body))
        return await self._send(b"".join((f"{method} {path}".encode(), self._head, about, body)))

    def close(self) -> None:
        """Close all connections."""
        for connection in self._all:
            connection.transport.close()
        self._free.clear()
        self._all.clear()

    async def _send(self, request: bytes) -> Reply:
        connection = await self._take()
        self.requests += 1
        reply = await connection.send(request)
        self._free.append(connection)
        return reply

    async def _take(self) -> "_Connection":
        while self._free:
            connection = self._free.pop()
            if not connection.transport.is_closing():
                return connection
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(_Connection, self._host, self._port)
        self._all.append(connection)
        return connection


class _Connection(asyncio.Protocol):
    def __init__(self) -> None:
        self.transport: asyncio.Transport
        self._parser = httptools.HttpResponseParser(self)
        self._parts: list[bytes] = []
        self._reply: asyncio.Future[Reply]

    def send(self, request: bytes) -> asyncio.Future[Reply]:
        self._reply = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return self._reply

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def connection_lost(self, error: Exception | None) -> None:
        if hasattr(self, "_reply") and not self._reply.done():
            self._reply.set_exception(error or ConnectionResetError("the server closed the connection"))

    # Callbacks of the parser

    def on_body(self, part: bytes) -> None:
        self._parts.append(part)

    def on_message_complete(self) -> None:
        reply = Reply(self._parser.get_status_code(), b"".join(self._parts))
        self._parts.clear()
        if not self._reply.done():
            self._reply.set_result(reply)


def rpc(action: str, **parameters: object) -> bytes:
    """An encoded RPC request. Variable parameters may be appended: `rpc(…) + b"&ExecutionName=e1"`."""
    return urlencode({"Action": action, **parameters}).encode()
