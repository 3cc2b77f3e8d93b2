"""Every answer has the headers that tell browsers what not to use it for, whichever part of the server makes it."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Final

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from flowserver.api.security_headers import DATA_POLICY
from flowserver.base.limits import Limits
from flowserver.cli.one_process import QuietServer, server_config
from flowserver.hosting.http_app import Admission, build_app
from flowserver.server import Application, create_app
from flowserver.settings import Settings
from tests.api.fc.conftest import INVOKE
from tests.api.rest.conftest import PASS
from tests.invokers.wire_server import WireServer
from tests.support.server import PATIENCE_SECONDS, ServerProcess

LIMITS: Final = replace(Limits(), head_seconds_max=600, body_idle_seconds_max=600, body_seconds_max=600)

SAFE: Final = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
PAGE: Final = ("Accept: application/xhtml+xml",)
FORM: Final = ("Content-Type: application/x-www-form-urlencoded",)


def request(line: str, *headers: str, body: bytes = b"", host: str = "127.0.0.1") -> bytes:
    length = [f"Content-Length: {len(body)}"] if body else []
    lines = [f"{line} HTTP/1.1", f"Host: {host}", *headers, *length]
    return "\r\n".join([*lines, "", ""]).encode() + body


KINDS: Final[list[tuple[int, bytes]]] = [
    # the console, the documentation, and what watches the server
    (200, request("GET /", *PAGE)),
    (200, request("GET /console/main.js")),
    (200, request("HEAD /flows", *PAGE)),
    (400, request("GET /flows?a=%00", *PAGE)),
    (403, request("GET /flows", *PAGE, host="evil.example")),
    (200, request("GET /docs")),
    (200, request("GET /docs/assets/swagger-ui.css")),
    (200, request("GET /healthz")),
    (200, request("GET /readyz")),
    (200, request("GET /metrics")),
    (403, request("GET /metrics", host="evil.example")),
    (405, request("PUT /healthz")),
    # REST
    (200, request("GET /v1/flows")),
    (200, request("GET /v1/openapi.json")),
    (404, request("GET /v1/flows/none")),
    (404, request("GET /none")),
    (405, request("DELETE /v1/flows")),
    (400, request("POST /v1/flows", "Content-Type: application/json", body=b"{")),
    (400, request("POST /v1/flows", "Content-Type: text/plain", body=b"x")),
    (403, request("GET /v1/flows", "X-Forwarded-For: 192.0.2.1")),
    (403, request("GET /v1/flows", "Origin: https://evil.example")),
    (
        400,
        request("POST /v1/flows", "Content-Type: application/json", "Content-Length: 99999999", "Expect: 100-continue"),
    ),
    (204, request("DELETE /v1/flows/gone")),
    # RPC
    (200, request("POST /", *FORM, body=b"Action=ListFlows&Version=2019-03-15")),
    (404, request("POST /", *FORM, body=b"Action=DescribeFlow&Version=2019-03-15&Name=none")),
    (400, request("GET /")),
    (400, request("POST /", *FORM, "Content-Length: 99999999", "Expect: 100-continue")),
    # Function Compute
    (200, request(f"POST {INVOKE}", body=b"{}")),
    (202, request(f"POST {INVOKE}", "X-Fc-Invocation-Type: Async", body=b"{}")),
    (400, request("GET /2016-08-15/services/none")),
    (400, request("GET /2021-04-06/none")),
    (400, request(f"POST {INVOKE}", "Content-Length: 99999999", "Expect: 100-continue")),
    # the message service
    (201, request("PUT /queues/q", body=b"<Queue xmlns='http://mns.aliyuncs.com/doc/v1/'/>")),
    (200, request("GET /queues/q")),
    (404, request("GET /queues/q/messages?waitseconds=0")),
    (404, request("GET /queues/none")),
    (400, request("PUT /queues/q", body=b"<")),
    # below all of them
    (400, b"nonsense\r\n\r\n"),
    (400, b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n"),
    (414, request("GET /" + "u" * 99_000)),
    (431, request("GET /", "X: " + "v" * 99_000)),
]


async def answer_to(port: int, sent: bytes) -> tuple[int, list[tuple[str, str]]]:
    """Status and headers of the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    with suppress(ConnectionError):
        writer.write(sent)
        await writer.drain()
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE_SECONDS)
    writer.close()
    first, *lines = head.decode().rstrip().split("\r\n")
    headers = [(name.lower(), value) for name, _, value in (line.partition(": ") for line in lines)]
    return int(first.split()[1]), headers


def check(sent: bytes, headers: list[tuple[str, str]], *, policy: str | None = DATA_POLICY) -> None:
    """Each once: a browser would take several policies together, and then show no page."""
    found = [(name, value) for name, value in headers if name in SAFE or name == "content-security-policy"]
    assert len(found) == len(dict(found)), (sent[:80], headers)
    policy_found = dict(found).pop("content-security-policy", None)
    assert {name: value for name, value in found if name in SAFE} == SAFE, (sent[:80], headers)
    assert policy_found == policy or (policy_found or "").startswith("default-src 'none'; script-src"), sent[:80]


@asynccontextmanager
async def served(app: ASGIApp, limits: Limits = LIMITS) -> AsyncIterator[int]:
    """The application as `flowserver serve` serves it; yields its port."""
    begun = asyncio.Event()
    server = QuietServer(server_config(app, limits), limits, begun.set)
    listener = socket.create_server(("127.0.0.1", 0))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    await begun.wait()
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        await serving


@pytest.fixture
async def wire() -> AsyncIterator[WireServer]:
    server = WireServer()
    await server.start()
    yield server
    await server.stop()


async def prepare(app: Application, wire: WireServer) -> None:
    await app.state.operations.functions.put("shop", "pay", url=wire.url, headers={}, timeout_seconds=60)
    await app.state.operations.flows.create("gone", PASS)


async def test_every_kind_of_answer_has_them(sqlite_url: str, wire: WireServer) -> None:
    app = create_app(Settings(database_url=sqlite_url, drain_seconds=0))
    async with app.router.lifespan_context(app), served(app) as port:
        await prepare(app, wire)
        for status, sent in KINDS:
            answered, headers = await answer_to(port, sent)
            assert answered == status, (sent[:80], answered)
            check(sent, headers)
        etag = dict((await answer_to(port, request("GET /console/main.js")))[1])["etag"]
        answered, headers = await answer_to(port, request("GET /console/main.js", f"If-None-Match: {etag}"))
        assert answered == 304
        check(b"", headers)


async def test_so_have_answers_of_a_server_that_stops_or_fails(sqlite_url: str, wire: WireServer) -> None:
    """A call at the end (503), an error of ours (500), and one outside the frame, which uvicorn answers."""
    app = create_app(Settings(database_url=sqlite_url, drain_seconds=0))
    async with app.router.lifespan_context(app), served(app) as port:
        await prepare(app, wire)
        app.state.engine.interruptible.interrupt()
        answered, headers = await answer_to(port, request(f"POST {INVOKE}", body=b"{}"))
        assert answered == 503
        check(b"stopping", headers)
        app.state.rpc = None
        answered, headers = await answer_to(port, request("POST /", *FORM, body=b"Action=ListFlows"))
        assert answered == 500
        check(b"failed", headers)

    async def fail(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise ZeroDivisionError

    async with served(fail) as port:
        answered, headers = await answer_to(port, request("GET /"))
        assert answered == 500
        check(b"uvicorn", headers, policy=None)


async def test_so_have_answers_to_slow_clients(sqlite_url: str) -> None:
    async with served(create_app(Settings(database_url=sqlite_url)), replace(LIMITS, head_seconds_max=0.2)) as port:
        answered, headers = await answer_to(port, b"GET / HT")
        assert answered == 408
        check(b"slow", headers)


async def test_so_have_answers_of_the_front(sqlite_url: str) -> None:
    """With two processes, one answers some requests itself, and relays the others."""
    with ServerProcess(sqlite_url, "--processes", "2") as server:
        for status, sent in KINDS:
            if b"/services/shop/" in sent or b" /v1/flows/gone" in sent:
                continue
            answered, headers = await answer_to(server.port, sent)
            assert answered == status, (sent[:80], answered)
            check(sent, headers)


async def test_so_have_answers_of_hosted_functions() -> None:
    async with served(build_app({}, Admission())) as port:
        for status, sent in ((404, request("POST /s/f", body=b"{}")), (400, b"nonsense\r\n\r\n")):
            answered, headers = await answer_to(port, sent)
            assert answered == status
            check(sent, headers)
