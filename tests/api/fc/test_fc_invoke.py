"""Synchronous invocations: the request that reaches the function, and the reply for each of its answers."""

import base64

import httpx
import pytest

from flowserver.server import Application
from tests.api.fc.conftest import INVOKE, refused
from tests.invokers.wire_server import WireServer, head, reply_with
from tests.support.ports import free_port

ERROR = b'{"errorMessage":"no money","errorType":"CardDeclined","stackTrace":[]}'


async def test_bytes_are_passed_both_ways(client: httpx.AsyncClient, pay: WireServer) -> None:
    pay.answer = reply_with(b"\xff\x00", 200)
    reply = await client.post(INVOKE, content=b"\x00\xfe", headers={"X-Fc-Invocation-Type": "Sync"})
    assert (reply.status_code, reply.content) == (200, b"\xff\x00")
    assert reply.headers["content-type"] == "application/octet-stream"
    assert reply.headers["x-fc-invocation-service-version"] == "LATEST"
    assert int(reply.headers["x-fc-invocation-duration"]) >= 0
    assert "x-fc-error-type" not in reply.headers
    [request] = pay.requests
    assert request.endswith(b"\r\n\r\n\x00\xfe")
    assert f"X-Fc-Request-Id: {reply.headers['x-fc-request-id']}\r\n".encode() in request
    assert b"X-Fc-Invocation-Type: Sync\r\n" in request
    assert b"X-Flowserver-Flow" not in request


async def test_an_empty_event_and_an_empty_result(client: httpx.AsyncClient, pay: WireServer) -> None:
    pay.answer = reply_with(b"")
    reply = await client.post(INVOKE)
    assert (reply.status_code, reply.content) == (200, b"")


async def test_a_qualifier_is_passed_on_and_answered(client: httpx.AsyncClient, pay: WireServer) -> None:
    for qualifier in ("LATEST", "prod", "3"):
        reply = await client.post(INVOKE.replace("shop", f"shop.{qualifier}"))
        assert (reply.status_code, reply.headers["x-fc-invocation-service-version"]) == (200, qualifier)
        assert f"X-Fc-Qualifier: {qualifier}\r\n".encode() in pay.requests[-1]


async def test_functions_without_a_service(client: httpx.AsyncClient, app: Application, wire: WireServer) -> None:
    await app.state.operations.functions.put("-", "pay", url=wire.url, headers={}, timeout_seconds=60)
    assert (await client.post(INVOKE.replace("shop", "-"))).content == b"{}"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (reply_with(ERROR, 200, "X-Fc-Error-Type: UnhandledInvocationError"), "UnhandledInvocationError"),
        (reply_with(ERROR, 200, "X-Fc-Error-Type: HandledInvocationError"), "HandledInvocationError"),
        (reply_with(ERROR, 200, "x-fc-status: 404"), "UnhandledInvocationError"),
        (reply_with(ERROR, 500), "UnhandledInvocationError"),
    ],
)
async def test_a_function_that_fails(client: httpx.AsyncClient, pay: WireServer, answer, kind: str) -> None:
    pay.answer = answer
    reply = await client.post(INVOKE)
    assert (reply.status_code, reply.headers["x-fc-error-type"], reply.content) == (200, kind, ERROR)
    assert reply.headers["content-type"] == "application/json"


async def test_a_failure_in_plain_text_is_not_labelled_json(client: httpx.AsyncClient, pay: WireServer) -> None:
    pay.answer = reply_with(b"out of luck", 200, "X-Fc-Error-Type: UnhandledInvocationError")
    reply = await client.post(INVOKE)
    assert (reply.content, reply.headers["content-type"]) == (b"out of luck", "application/octet-stream")


@pytest.mark.parametrize(
    ("answer", "status", "code", "message"),
    [
        (reply_with(b'{"ErrorCode":"X","ErrorMessage":"why"}', 418), 418, "X", "why"),
        (reply_with(b"", 429), 429, "ResourceExhausted", "429"),
        (reply_with(b"", 503), 503, "ResourceThrottled", "503"),
        (reply_with(b"", 500), 500, "InternalServerError", "500"),
        (reply_with(b"", 502), 502, "ServerError", "502"),
        (reply_with(b"", 404), 404, "FunctionNotFound", "404"),
        (reply_with(b"", 302, "Location: /"), 400, "InvalidArgument", "redirects"),
    ],
)
async def test_a_web_server_that_refuses(
    client: httpx.AsyncClient, pay: WireServer, answer, status: int, code: str, message: str
) -> None:
    pay.answer = answer
    assert message in refused(await client.post(INVOKE), status, code)


async def test_a_connection_that_breaks(client: httpx.AsyncClient, pay: WireServer) -> None:
    async def half(_: bytes, __: object, writer) -> None:
        writer.write(head(200, "content-length: 9"))
        writer.close()

    pay.answer = half
    reply = await client.post(INVOKE)
    assert (reply.status_code, reply.headers["x-fc-error-type"]) == (200, "UnhandledInvocationError")
    assert reply.json().keys() == {"errorMessage"}


async def test_a_function_that_cannot_be_reached(client: httpx.AsyncClient, app: Application) -> None:
    url = f"http://127.0.0.1:{free_port()}/"
    await app.state.operations.functions.put("shop", "pay", url=url, headers={}, timeout_seconds=60)
    assert "refused" in refused(await client.post(INVOKE), 412, "FunctionNotStarted")


async def test_the_end_of_the_log_is_passed_on(client: httpx.AsyncClient, pay: WireServer) -> None:
    log = base64.b64encode(b"FC Invoke Start").decode()
    pay.answer = reply_with(b"{}", 200, f"X-Fc-Log-Result: {log}")
    reply = await client.post(INVOKE, headers={"X-Fc-Log-Type": "Tail"})
    assert reply.headers["x-fc-log-result"] == log
    assert b"X-Fc-Log-Type: Tail\r\n" in pay.requests[0]


@pytest.mark.parametrize(
    ("path", "code", "message"),
    [
        ("none/functions/pay", "ServiceNotFound", "service 'none' does not exist"),
        ("shop/functions/none", "FunctionNotFound", "function 'none' does not exist in service 'shop'"),
    ],
)
async def test_functions_that_are_not_registered(
    client: httpx.AsyncClient, pay: WireServer, path: str, code: str, message: str
) -> None:
    assert refused(await client.post(f"/2016-08-15/services/{path}/invocations"), 404, code) == message


@pytest.mark.parametrize("title", ["9/f", "s/9", "s.a.b/f", "s/f%00", "%20/f", "中/f", "--/f", "s.a b/f"])
async def test_invalid_names(client: httpx.AsyncClient, title: str) -> None:
    service, _, function = title.partition("/")
    path = f"/2016-08-15/services/{service}/functions/{function}/invocations"
    refused(await client.post(path), 400, "InvalidArgument")


@pytest.mark.parametrize("header", ["X-Fc-Invocation-Type", "X-Fc-Log-Type"])
async def test_invalid_headers(client: httpx.AsyncClient, pay: WireServer, header: str) -> None:
    assert header.lower() in refused(await client.post(INVOKE, headers={header: "Odd"}), 400, "InvalidArgument")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", INVOKE),
        ("POST", "/2016-08-15/services/shop"),
        ("GET", "/2016-08-15/proxy/shop/pay/"),
        ("GET", "/2016-08-15/"),
    ],
)
async def test_paths_that_are_not_served(client: httpx.AsyncClient, method: str, path: str) -> None:
    assert path in refused(await client.request(method, path), 400, "PathNotSupported")


async def test_a_payload_may_have_six_mebibytes(client: httpx.AsyncClient, pay: WireServer) -> None:
    assert (await client.post(INVOKE, content=b"x" * 6_291_456)).status_code == 200
    assert "6291456" in refused(await client.post(INVOKE, content=b"x" * 6_291_457), 400, "EntityTooLarge")


async def test_pages_of_other_sites_are_refused(client: httpx.AsyncClient, pay: WireServer) -> None:
    for foreign in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Host": "evil.example"}):
        refused(await client.post(INVOKE, headers=foreign), 403, "AccessDenied")
    service = {"Host": "1234567890.cn-hangzhou-internal.fc.aliyuncs.com"}
    assert (await client.post(INVOKE, headers=service)).status_code == 200
    assert len(pay.requests) == 1
