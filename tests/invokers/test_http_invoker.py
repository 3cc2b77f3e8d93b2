"""Calls over real connections to 127.0.0.1: the request, and the result for every misbehaviour of a server."""

import asyncio
import errno
import gzip
import json
import os
import resource
import socket
import threading
from unittest.mock import ANY
from uuid import UUID

import pytest
from aiohttp import ClientConnectorError
from aiohttp.client_reqrep import ConnectionKey

from flowserver.invokers.calls import Endpoint, Failed, Replied
from flowserver.invokers.dns_resolver import THREADS_MAX, OwnThreadsResolver
from flowserver.invokers.http import HttpInvoker
from flowserver.invokers.transport_failures import is_own_trouble
from flowserver.invokers.web_requests import WebRequest
from tests.invokers.wire_server import FixedResolver, head, reply_with
from tests.support.ports import free_port


def headers_of(request):
    lines = request.split(b"\r\n\r\n")[0].decode().split("\r\n")[1:]
    return {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}


async def test_event_and_headers_arrive(invoker, invocation, endpoint, server):
    call = invocation(event='{"名": 12345678901234567890}', qualifier="prod", attempt=2)
    assert await invoker.invoke(call, endpoint) == Replied({}, ANY)
    [request] = server.requests
    assert request.startswith(b"POST /function HTTP/1.1\r\n")
    assert request.split(b"\r\n\r\n", 1)[1].decode() == '{"名": 12345678901234567890}'
    headers = headers_of(request)
    request_id = headers.pop("x-fc-request-id")
    assert str(UUID(request_id)) == request_id
    assert headers == {
        "host": f"127.0.0.1:{server.port}",
        "content-type": "application/json",
        "content-length": str(len(request.split(b"\r\n\r\n", 1)[1])),
        "accept": "*/*",
        "accept-encoding": "identity",
        "user-agent": "flowserver",
        "authorization": "Bearer s3cret",
        "idempotency-key": "key-1",
        "x-flowserver-attempt": "2",
        "x-flowserver-flow": "order",
        "x-flowserver-execution": "run-1",
        "x-flowserver-step": "Charge",
        "x-fc-invocation-type": "Sync",
        "x-fc-service-name": "shop",
        "x-fc-function-name": "charge",
        "x-fc-qualifier": "prod",
    }


async def test_bytes_are_sent_and_returned_unchanged(invoker, invocation, endpoint, server):
    server.answer = reply_with(b"\xff\x00", 418, "X-Fc-Error-Type: UnhandledInvocationError")
    no_step = dict.fromkeys(("flow_name", "execution_name", "step_name"), "")
    call = invocation(event=b"\x00\xfe", request_id="id-1", wants_log=True, **no_step)
    reply = await invoker.exchange(call, endpoint)
    assert (reply.status, reply.body) == (418, b"\xff\x00")
    assert reply.headers["x-fc-error-type"] == "UnhandledInvocationError"
    [request] = server.requests
    assert request.endswith(b"\r\n\r\n\x00\xfe")
    headers = headers_of(request.removesuffix(b"\x00\xfe"))
    assert not any(name.startswith("x-flowserver-f") for name in headers)
    sent = [headers[name] for name in ("content-type", "x-fc-request-id", "x-fc-log-type")]
    assert sent == ["application/octet-stream", "id-1", "Tail"]


async def test_an_exchange_without_a_reply_gives_the_reason(invoker, invocation, endpoint, server):
    server.answer = reply_with(b"x" * 1001)
    assert (await invoker.exchange(invocation(event=b""), endpoint)).error == "FnF.InvalidLocal"
    endpoint = Endpoint(f"http://127.0.0.1:{free_port()}/", {}, 10)
    assert (await invoker.exchange(invocation(event=b""), endpoint)).error == "FC.ServerError"


async def test_same_attempt_has_the_same_request_id(invoker, invocation, endpoint, server):
    for attempt in (0, 0, 1):
        await invoker.invoke(invocation(attempt=attempt), endpoint)
    first, again, other = (headers_of(request)["x-fc-request-id"] for request in server.requests)
    assert first == again != other


async def test_call_of_an_asynchronous_invocation(invoker, invocation, endpoint, server):
    await invoker.invoke(invocation(invocation_id="task-1"), endpoint)
    headers = headers_of(server.requests[0])
    assert headers["x-fc-invocation-type"] == "Sync"
    assert headers["x-fc-stateful-async-invocation-id"] == "task-1"


@pytest.mark.parametrize("invocation_id", ["", "1task", "a b", "x" * 129, "a\r\nX-Evil: 1"])
async def test_bad_invocation_id_is_not_sent(invoker, invocation, endpoint, server, invocation_id):
    result = await invoker.invoke(invocation(invocation_id=invocation_id), endpoint)
    assert result.error == "FC.InvalidArgument"
    assert not server.requests


@pytest.mark.parametrize("changes", [{"flow_name": "a\r\nX-Evil: 1"}, {"step_name": "a\nb"}, {"event": '"\ud800"'}])
async def test_unsendable_request_is_not_sent(invoker, invocation, endpoint, server, changes):
    result = await invoker.invoke(invocation(**changes), endpoint)
    assert result.error == "FC.InvalidArgument"
    assert not server.requests


@pytest.mark.parametrize("url", ["http://127.0.0.1:99999/", "ftp://127.0.0.1/", "http://", "nonsense"])
async def test_url_that_cannot_be_called(invoker, invocation, url):
    result = await invoker.invoke(invocation(), Endpoint(url, {}, 5))
    assert result.error == "FC.InvalidArgument"


async def test_percent_encoding_of_the_url_is_kept(invoker, invocation, server):
    await invoker.invoke(invocation(), Endpoint(f"{server.url}/a%2Fb?code=x%26y", {}, 5))
    assert server.requests[0].startswith(b"POST /function/a%2Fb?code=x%26y HTTP/1.1\r\n")


async def test_function_error(invoker, invocation, endpoint, server):
    document = {"errorMessage": "m", "errorType": "CardDeclined", "stackTrace": []}
    server.answer = reply_with(json.dumps(document).encode(), 200, "X-Fc-Error-Type: UnhandledInvocationError")
    result = await invoker.invoke(invocation(), endpoint)
    assert (result.error, json.loads(result.cause)) == ("CardDeclined", document)


async def test_cookies_are_not_kept(invoker, invocation, endpoint, server):
    server.answer = reply_with(b"{}", 200, "Set-Cookie: session=1; Path=/")
    await invoker.invoke(invocation(), endpoint)
    await invoker.invoke(invocation(), endpoint)
    assert "cookie" not in headers_of(server.requests[1])


async def test_redirect_is_not_followed(invoker, invocation, endpoint, server):
    server.answer = reply_with(b"", 307, f"Location: {server.url}/elsewhere")
    result = await invoker.invoke(invocation(), endpoint)
    assert result.error == "FC.InvalidArgument"
    assert len(server.requests) == 1


async def test_proxy_environment_is_ignored(monkeypatch, limits, invocation, endpoint):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    invoker = HttpInvoker(limits)
    assert await invoker.invoke(invocation(), endpoint) == Replied({}, ANY)
    await invoker.close()


async def test_refused_connection(invoker, invocation):
    result = await invoker.invoke(invocation(), Endpoint(f"http://127.0.0.1:{free_port()}/?code=s3cret", {}, 5))
    assert result == Failed("FC.ServerError", "shop/charge could not be reached: Connection refused.")


async def test_unknown_host(limits, invocation):
    invoker = HttpInvoker(limits, FixedResolver())
    result = await invoker.invoke(invocation(), Endpoint("http://nowhere.example/", {}, 5))
    await invoker.close()
    assert result.error == "FC.ServerError"


async def test_tls_to_a_server_without_it(invoker, invocation, server):
    async def hang_up(_, __, writer):
        writer.close()

    server.answer = hang_up
    result = await invoker.invoke(invocation(), Endpoint(server.url.replace("http:", "https:"), {}, 5))
    assert result.error == "FC.ServerError"


def close_at_once(writer):
    writer.close()


def reset(writer):
    writer.transport.abort()


def truncate_body(writer):
    writer.write(head(200, "content-length: 100") + b'{"a": 1')
    writer.close()


def truncate_chunks(writer):
    writer.write(head(200, "transfer-encoding: chunked") + b"8\r\n" + b'{"a": 1}\r\n')
    writer.close()


def break_chunks(writer):
    writer.write(head(200, "transfer-encoding: chunked") + b"zz\r\nnonsense\r\n")
    writer.close()


def odd_length(writer):
    writer.write(head(200, "content-length: ten") + b"0123456789")
    writer.close()


def truncate_head(writer):
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-le")
    writer.close()


def talk_nonsense(writer):
    writer.write(b"220 mail.example ESMTP\r\n\r\n")
    writer.close()


@pytest.mark.parametrize(
    "misbehave",
    [close_at_once, reset, truncate_body, truncate_chunks, break_chunks, odd_length, truncate_head, talk_nonsense],
)
async def test_broken_reply_is_unknown_and_not_sent_again(invoker, invocation, endpoint, server, misbehave):
    async def answer(_, __, writer):
        misbehave(writer)

    server.answer = answer
    result = await invoker.invoke(invocation(), endpoint)
    assert result.error == "FC.Unknown"
    assert result.cause.startswith("shop/charge was called, but")
    assert "s3cret" not in result.cause
    assert len(server.requests) == 1


async def never(_, reader, __):
    await reader.read()  # until the client gives up


async def trickle(_, __, writer):
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n{")
    await writer.drain()


@pytest.mark.parametrize("answer", [never, trickle])
async def test_function_slower_than_its_own_timeout(invoker, invocation, endpoint, server, answer):
    await invoker.invoke(invocation(), endpoint)  # so that connecting takes none of the time
    server.answer = answer
    result = await invoker.invoke(invocation(), Endpoint(server.url, {}, 0.05))
    assert result == Failed("FC.Unknown", "shop/charge did not reply within its time-out of 0.05 s.")
    await server.disconnected.wait()


@pytest.mark.parametrize("answer", [never, trickle])
async def test_function_slower_than_the_step(invoker, invocation, endpoint, server, answer):
    server.answer = answer
    result = await invoker.invoke(invocation(timeout_ms=50), endpoint)
    assert result.error == "FnF.TaskTimeout"
    assert "50 ms" in result.cause
    await server.disconnected.wait()


# Shortages of the server itself


@pytest.fixture
def descriptors():
    """Takes all descriptors that this process may still open, and releases them."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)

    class Descriptors:
        def take(self):
            free = os.dup(0)
            os.close(free)
            resource.setrlimit(resource.RLIMIT_NOFILE, (free, before[1]))

        def give_back(self):
            resource.setrlimit(resource.RLIMIT_NOFILE, before)

    descriptors = Descriptors()
    yield descriptors
    descriptors.give_back()


def resting(descriptors, pauses, *, give_back_after):
    """Records the pauses instead of waiting; after this many there are descriptors again."""

    async def rest(seconds):
        pauses.append(seconds)
        if len(pauses) == give_back_after:
            descriptors.give_back()

    return rest


async def test_running_out_of_descriptors_fails_no_call(limits, invocation, endpoint, server, descriptors):
    pauses = []
    invoker = HttpInvoker(limits, rest=resting(descriptors, pauses, give_back_after=7))
    descriptors.take()
    assert await invoker.invoke(invocation(), endpoint) == Replied({}, ANY)
    assert pauses == [0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    assert len(server.requests) == 1
    await invoker.close()


async def test_a_request_that_found_no_descriptor_in_time_was_not_made(limits, server, descriptors):
    loop, pauses = asyncio.get_running_loop(), []

    async def rest(seconds):
        pauses.append(seconds)
        await asyncio.sleep(0)

    invoker = HttpInvoker(limits, rest=rest)
    descriptors.take()
    failed = await invoker.send(WebRequest("POST", server.url, 0.01, {}))
    descriptors.give_back()
    assert (failed.is_own, server.requests) == (True, [])
    assert pauses
    assert loop.is_running()
    await invoker.close()


@pytest.mark.parametrize(
    ("host", "number", "is_own"),
    [
        ("127.0.0.1", errno.EMFILE, True),
        ("127.0.0.1", errno.ENFILE, True),
        ("127.0.0.1", errno.EADDRNOTAVAIL, True),
        ("name.example", errno.EADDRNOTAVAIL, True),
        ("203.0.113.1.", errno.ECONNREFUSED, False),
        ("127.0.0.1", errno.ECONNREFUSED, False),
    ],
)
def test_shortages_are_distinguished_from_failures_of_the_function(host, number, is_own):
    key = ConnectionKey(host, 80, False, True, None, None, None)
    assert is_own_trouble(ClientConnectorError(key, OSError(number, "as the test wants it"))) is is_own


def test_an_address_that_this_machine_cannot_call_is_no_lack_of_ports():
    """Such as ::1 without IPv6; a multicast address of no link represents it here."""
    key = ConnectionKey("ff02::1", 80, False, True, None, None, None)
    error = ClientConnectorError(key, OSError(errno.EADDRNOTAVAIL, "as the test wants it"))
    assert not is_own_trouble(error)


async def test_a_name_that_cannot_be_resolved_for_lack_of_descriptors(limits, invocation, server, descriptors):
    class ResolverWithoutDescriptors(FixedResolver):
        async def resolve(self, host, port=0, family=0):
            if not pauses:
                raise OSError(socket.EAI_SYSTEM, "System error")
            return await super().resolve(host, port, family)

    pauses = []
    invoker = HttpInvoker(
        limits, ResolverWithoutDescriptors(["127.0.0.1"]), rest=resting(descriptors, pauses, give_back_after=1)
    )
    descriptors.take()
    url = f"http://name.example:{server.port}/"
    assert await invoker.invoke(invocation(), Endpoint(url, {}, 5)) == Replied({}, ANY)
    assert pauses == [0.05]
    await invoker.close()


async def test_step_without_time_left(invoker, invocation, endpoint):
    assert (await invoker.invoke(invocation(timeout_ms=0), endpoint)).error == "FnF.TaskTimeout"


async def test_name_that_is_never_resolved(limits, invocation):
    class HangingResolver(FixedResolver):
        async def resolve(self, host, port=0, family=0):
            await asyncio.Event().wait()

    invoker = HttpInvoker(limits, HangingResolver())
    result = await invoker.invoke(invocation(), Endpoint("http://slow.example/", {}, 0.05))
    await invoker.close()
    assert result == Failed("FC.ServerError", "shop/charge accepted no connection within 0.05 s.")


async def test_slow_name_resolution_delays_nothing_else(limits, invocation):
    """Database reads run on the event loop's own threads."""
    asked, answered = threading.Semaphore(0), threading.Event()

    def look_up(*_):
        asked.release()
        answered.wait()
        raise OSError("no such name")

    invoker = HttpInvoker(limits, OwnThreadsResolver(look_up))
    urls = [f"http://slow-{number}.example/" for number in range(100)]
    calls = [asyncio.create_task(invoker.invoke(invocation(), Endpoint(url, {}, 30))) for url in urls]
    for _ in range(THREADS_MAX):
        await asyncio.to_thread(asked.acquire)
    assert not any(call.done() for call in calls)
    answered.set()
    assert {result.error for result in await asyncio.gather(*calls)} == {"FC.ServerError"}
    await invoker.close()


async def test_a_name_is_resolved_by_the_system(limits, invocation, server):
    invoker = HttpInvoker(limits)
    url = server.url.replace("127.0.0.1", "localhost")
    assert await invoker.invoke(invocation(), Endpoint(url, {}, 30)) == Replied({}, ANY)
    await invoker.close()


async def test_largest_body(invoker, invocation, endpoint, server, limits):
    body = json.dumps({"a": "x" * (limits.function_response_bytes_max - 9)}).encode()
    server.answer = reply_with(body)
    assert len(body) == limits.function_response_bytes_max
    assert isinstance(await invoker.invoke(invocation(), endpoint), Replied)


async def test_body_announced_too_large_is_not_read(invoker, invocation, endpoint, server):
    async def answer(_, reader, writer):
        writer.write(head(200, "content-length: 1001"))
        await reader.read()

    server.answer = answer
    result = await invoker.invoke(invocation(), endpoint)
    assert result == Failed("FnF.InvalidLocal", "shop/charge answered with more than 1000 bytes.")
    await server.disconnected.wait()


async def test_endless_body_is_cut_off(invoker, invocation, endpoint, server):
    async def answer(_, __, writer):
        writer.write(head(200, "transfer-encoding: chunked"))
        while True:
            writer.write(b"400\r\n" + b"x" * 1024 + b"\r\n")
            await writer.drain()

    server.answer = answer
    result = await invoker.invoke(invocation(), endpoint)
    assert result.error == "FnF.InvalidLocal"
    await server.disconnected.wait()


async def test_packed_body_is_not_unpacked(invoker, invocation, endpoint, server):
    server.answer = reply_with(gzip.compress(b'{"a": "' + b"x" * 100_000 + b'"}'), 200, "Content-Encoding: gzip")
    assert (await invoker.invoke(invocation(), endpoint)).error == "FnF.InvalidLocal"


def lose_second_request(server):
    """A kept connection that ends just as the next request is written to it."""
    polite = reply_with(b"{}")

    async def answer(request, reader, writer):
        if len(server.requests) == 2:
            writer.transport.abort()
        else:
            await polite(request, reader, writer)

    return answer


async def test_request_lost_on_a_stale_connection_is_sent_again(invoker, invocation, endpoint, server):
    server.answer = lose_second_request(server)
    await invoker.invoke(invocation(), endpoint)
    assert await invoker.invoke(invocation(idempotency_key="key-2"), endpoint) == Replied({}, ANY)
    assert server.connections == 2
    assert [headers_of(request)["idempotency-key"] for request in server.requests] == ["key-1", "key-2", "key-2"]


async def test_request_lost_late_is_not_sent_again(limits, invocation, endpoint, server):
    invoker = HttpInvoker(limits, stale_seconds=0)
    server.answer = lose_second_request(server)
    await invoker.invoke(invocation(), endpoint)
    assert (await invoker.invoke(invocation(), endpoint)).error == "FC.Unknown"
    await invoker.close()
    assert len(server.requests) == 2


async def test_server_that_dies_during_a_call_leaves_the_outcome_unknown(invoker, invocation, endpoint, server):
    await invoker.invoke(invocation(), endpoint)

    async def die(_, __, writer):
        server.stop_listening()
        writer.transport.abort()

    server.answer = die
    assert (await invoker.invoke(invocation(), endpoint)).error == "FC.Unknown"


async def test_cancelled_call_ends_its_connection(invoker, invocation, endpoint, server):
    arrived = asyncio.Event()

    async def answer(_, reader, __):
        arrived.set()
        await reader.read()

    server.answer = answer
    call = asyncio.create_task(invoker.invoke(invocation(), endpoint))
    await arrived.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await server.disconnected.wait()


async def test_closing_ends_calls_under_way(limits, invocation, endpoint, server):
    invoker = HttpInvoker(limits)
    arrived = asyncio.Event()

    async def answer(_, reader, __):
        arrived.set()
        await reader.read()

    server.answer = answer
    call = asyncio.create_task(invoker.invoke(invocation(), endpoint))
    await arrived.wait()
    await invoker.close()
    assert (await call).error == "FC.Unknown"
    assert (await invoker.invoke(invocation(), endpoint)).error == "FC.Unknown"


async def test_another_request_is_sent_unchanged(invoker, server):
    server.answer = reply_with(b"thanks", 201)
    headers = {"Content-Type": "text/xml", "x-mns-tag": "值"}
    url = f"http://127.0.0.1:{server.port}/hook?a=b"
    for _ in range(2):
        reply = await invoker.send(WebRequest("POST", url, 10, headers, "<值/>".encode()))
        assert (reply.status, reply.body) == (201, b"thanks")
    assert server.connections == 1
    request = server.requests[0]
    assert request.startswith(b"POST /hook?a=b HTTP/1.1\r\n")
    assert request.endswith("\r\n\r\n<值/>".encode())
    assert headers_of(request) == {
        "host": f"127.0.0.1:{server.port}",
        "content-type": "text/xml",
        "content-length": "6",
        "accept": "*/*",
        "accept-encoding": "identity",
        "user-agent": "flowserver",
        "x-mns-tag": "值",
    }
    await invoker.send(WebRequest("GET", url, 10))
    assert server.requests[-1].startswith(b"GET /hook?a=b HTTP/1.1\r\n")


@pytest.mark.parametrize(
    ("url", "headers", "cause"),
    [
        ("http://127.0.0.1:{free}/", {}, "could not be reached"),
        ("http://169.254.1.1/", {}, "does not call link-local"),
        ("http://127.0.0.1:{port}/", {"x-tag": "a\r\nx-more: b"}, "was not called"),
        ("http://127.0.0.1:{port}/", {}, "more than 65536 bytes"),
    ],
)
async def test_another_request_without_a_reply_gives_the_reason(invoker, server, url, headers, cause):
    server.answer = reply_with(b"x" * 65_537)
    failed = await invoker.send(WebRequest("POST", url.format(free=free_port(), port=server.port), 10, headers))
    assert isinstance(failed, Failed)
    assert cause in failed.cause


async def test_another_request_keeps_its_time_limit(invoker, server):
    async def say_nothing(*_):
        await asyncio.Event().wait()

    server.answer = say_nothing
    failed = await invoker.send(WebRequest("POST", f"{server.url}?key=secret", 0.05))
    assert failed.cause == f"127.0.0.1:{server.port} did not reply within 0.05 s."
