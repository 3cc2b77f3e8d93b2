"""The peers of the invoker's tests: a server that can answer incorrectly, and a name service that can lie."""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable

from aiohttp.abc import AbstractResolver

Answer = Callable[[bytes, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class WireServer:
    """An HTTP server on 127.0.0.1 that answers in bytes, so that it can answer incorrectly."""

    def __init__(self) -> None:
        self.answer: Answer = reply_with(b"{}")
        self.requests: list[bytes] = []
        self.connections = 0
        self.open_connections: set[asyncio.StreamWriter] = set()
        self.disconnected = asyncio.Event()

    async def start(self, tls: ssl.SSLContext | None = None) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=tls)
        self._scheme = "http" if tls is None else "https"
        self.port = self._server.sockets[0].getsockname()[1]

    def stop_listening(self) -> None:
        self._server.close()

    async def stop(self) -> None:
        self.stop_listening()
        for writer in list(self.open_connections):
            writer.transport.abort()
        await self._server.wait_closed()

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self.port}/function"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open_connections.add(writer)
        try:
            while not writer.is_closing():
                request = await _read_request(reader)
                self.requests.append(request)
                await self.answer(request, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            self.open_connections.discard(writer)
            self.disconnected.set()


async def _read_request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(int(line.split(b":")[1]) for line in head.lower().splitlines() if b"content-length" in line)
    return head + await reader.readexactly(length)


def reply_with(body: bytes, status: int = 200, *lines: str) -> Answer:
    async def answer(_: bytes, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head(status, f"content-length: {len(body)}", *lines) + body)
        await writer.drain()

    return answer


def head(status: int, *lines: str) -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status} Status", *lines, "", ""]).encode()


class FixedResolver(AbstractResolver):
    """Resolves every name to the next of the given answers and counts the lookups."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def resolve(self, host: str, port: int = 0, family: int = socket.AF_INET) -> list[dict]:
        self.asked += 1
        if not self.answers:
            raise OSError(None, "no such name")
        addresses = self.answers.pop(0)
        return [
            {
                "hostname": host,
                "host": address,
                "port": port,
                "family": socket.AF_INET6 if ":" in address else socket.AF_INET,
                "proto": 0,
                "flags": 0,
            }
            for address in addresses
        ]

    async def close(self) -> None:
        pass
