"""The bytes on the wire: requests of real clients that a web server must accept."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from flowserver.server import Application
from tests.api.rest.conftest import LiveServer
from tests.api.rpc.conftest import PASS

HOST = b"Host: 127.0.0.1\r\n"
FORM = b"Content-Type: application/x-www-form-urlencoded\r\n"


class Wire:
    """One connection to a server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.port = writer.get_extra_info("peername")[1]

    async def ask(self, request: bytes, *, has_body: bool = True) -> tuple[int, dict[str, str], Any]:
        """Send bytes; returns status, headers in lower case, and the JSON body."""
        self._writer.write(request)
        async with asyncio.timeout(60):
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode().splitlines()
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:-1])}
            body = await self._reader.readexactly(int(headers["content-length"])) if has_body else b"null"
        return int(head[0].split()[1]), headers, json.loads(body)

    def close(self) -> None:
        self._writer.close()


@pytest.fixture
async def wire(app: Application) -> AsyncIterator[Wire]:
    """A connection to the application on a real socket."""
    server = LiveServer(app)
    serving = asyncio.create_task(server.serve())
    await server.listens.wait()
    port = int(server.url.rpartition(":")[2])
    opened = Wire(*await asyncio.open_connection("127.0.0.1", port))
    yield opened
    opened.close()
    server.should_exit = True
    await serving


async def test_connections_are_kept(wire: Wire) -> None:
    ids = set()
    for _ in range(3):
        status, headers, body = await wire.ask(b"GET /?Action=ListFlows HTTP/1.1\r\n" + HOST + b"\r\n")
        assert (status, body["Flows"]) == (200, [])
        assert headers["content-type"] == "application/json"
        assert headers["x-request-id"] == body["RequestId"]
        ids.add(body["RequestId"])
    assert len(ids) == 3


@pytest.mark.parametrize("authority", [b"cn-hangzhou.fnf.aliyuncs.com", b"127.0.0.1:8080"])
async def test_absolute_targets(wire: Wire, authority: bytes) -> None:
    """Sent by a client that uses the server as its HTTP proxy."""
    request = b"GET http://" + authority + b"/?Action=ListFlows HTTP/1.1\r\nHost: " + authority + b"\r\n\r\n"
    status, _, body = await wire.ask(request)
    assert (status, body.get("Flows")) == (200, [])


async def test_chunked_bodies(wire: Wire) -> None:
    parts = [
        b"Action=CreateFlow&Name=f&Ty",
        b"pe=FDL&Definition=",
        PASS.replace("\n", "%0A").encode(),
        b"%23%E4",
        b"%B8%AD",
    ]
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
    head = b"POST / HTTP/1.1\r\n" + HOST + FORM + b"Transfer-Encoding: chunked\r\n\r\n"
    status, _, body = await wire.ask(head + chunks)
    assert (status, body["Definition"]) == (200, PASS + "#中")


async def test_an_empty_form(wire: Wire) -> None:
    head = b"POST /?Action=ListFlows HTTP/1.1\r\n" + HOST + FORM + b"Content-Length: 0\r\n\r\n"
    assert (await wire.ask(head))[0] == 200


async def test_headers_alone_name_the_action(wire: Wire) -> None:
    head = b"POST / HTTP/1.1\r\n" + HOST + b"x-acs-action: ListFlows\r\nx-acs-version: 2019-03-15\r\n\r\n"
    assert (await wire.ask(head))[0] == 200


async def test_a_head_has_no_body(wire: Wire) -> None:
    status, headers, _ = await wire.ask(b"HEAD /?Action=ListFlows HTTP/1.1\r\n" + HOST + b"\r\n", has_body=False)
    assert status == 200
    assert int(headers["content-length"]) > 0
    assert (await wire.ask(b"GET /?Action=ListFlows HTTP/1.1\r\n" + HOST + b"\r\n"))[0] == 200


@pytest.mark.parametrize("method", [b"PUT", b"OPTIONS", b"DELETE"])
async def test_other_methods(wire: Wire, method: bytes) -> None:
    status, _, body = await wire.ask(method + b" /?Action=ListFlows HTTP/1.1\r\n" + HOST + b"\r\n")
    assert status == 405
    assert "Flows" not in body


@pytest.mark.parametrize("chunked", [True, False])
async def test_a_body_that_is_too_large_is_not_read_to_its_end(wire: Wire, chunked: bool) -> None:
    size = 1_048_577
    head = b"POST / HTTP/1.1\r\n" + HOST + FORM
    if chunked:
        request = head + b"Transfer-Encoding: chunked\r\n\r\n" + b"%x\r\n" % (50 * size) + b"x" * size
    else:
        request = head + b"Content-Length: %d\r\n\r\n" % (50 * size) + b"x" * size
    status, _, body = await wire.ask(request)
    assert (status, body["Code"]) == (400, "EntityTooLarge")


async def test_an_invalid_host(wire: Wire) -> None:
    status, _, body = await wire.ask(b"GET /?Action=ListFlows HTTP/1.1\r\nHost: [\r\n\r\n")
    assert (status, body["Code"]) == (403, "AccessDenied")


async def test_a_query_that_is_not_text(wire: Wire) -> None:
    status, _, body = await wire.ask(b"GET /?Action=DescribeFlow&Name=%FF HTTP/1.1\r\n" + HOST + b"\r\n")
    assert (status, body["Code"]) == (400, "InvalidArgument")


async def test_a_client_that_disconnects_is_harmless(wire: Wire) -> None:
    """In the middle of its body."""
    _, writer = await asyncio.open_connection("127.0.0.1", wire.port)
    writer.write(b"POST / HTTP/1.1\r\n" + HOST + FORM + b"Content-Length: 100\r\n\r\nAction=")
    await writer.drain()
    writer.close()
    await writer.wait_closed()
    assert (await wire.ask(b"GET /?Action=ListFlows HTTP/1.1\r\n" + HOST + b"\r\n"))[0] == 200
