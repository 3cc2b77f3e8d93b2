"""One connection for many calls: when it is kept, when it ends, and that replies are never confused."""

import asyncio
import socket
from contextlib import ExitStack
from unittest.mock import ANY

import pytest

from flowserver.invokers.calls import Endpoint, Failed, Replied
from flowserver.invokers.http import HttpInvoker
from tests.invokers.wire_server import WireServer, head, reply_with

PATIENCE_SECONDS = 60

LENGTH = head(200, "content-length: 8") + b'{"a": 1}'
CHUNKS = head(200, "transfer-encoding: chunked") + b'3\r\n{"a\r\n5\r\n": 1}\r\n0\r\n\r\n'
INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n"
ANNOUNCED = b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" * 3 + LENGTH


def in_turn(*replies):
    """Each call gets the next of the replies, written in one piece."""
    left = list(replies)

    async def answer(_, __, writer):
        writer.write(left.pop(0))
        await writer.drain()

    return answer


async def test_connection_is_kept_and_reused(invoker, invocation, endpoint, server):
    for _ in range(3):
        assert await invoker.invoke(invocation(), endpoint) == Replied({}, ANY)
    assert (server.connections, len(server.requests)) == (1, 3)


async def test_connection_closed_between_calls(invoker, invocation, endpoint, server):
    polite = reply_with(b"{}")

    async def answer_and_close(request, reader, writer):
        await polite(request, reader, writer)
        writer.close()

    server.answer = answer_and_close
    assert await invoker.invoke(invocation(), endpoint) == Replied({}, ANY)
    await server.disconnected.wait()
    assert await invoker.invoke(invocation(), endpoint) == Replied({}, ANY)
    assert len(server.requests) == 2


async def test_every_way_to_end_a_reply_leaves_the_connection_usable(invoker, invocation, endpoint, server):
    server.answer = in_turn(*[LENGTH, CHUNKS, ANNOUNCED, head(204)] * 3)
    outcomes = [await invoker.invoke(invocation(), endpoint) for _ in range(12)]
    assert outcomes[:3] == [Replied({"a": 1}, ANY)] * 3
    assert outcomes[3].error == "FnF.InvalidLocal"
    assert outcomes == outcomes[:4] * 3
    assert server.connections == 1


async def test_endless_interim_replies(invoker, invocation, endpoint, server):
    async def never_answer(_, __, writer):
        while True:
            writer.write(INTERIM * 100)
            await writer.drain()

    server.answer = never_answer
    outcome = await invoker.invoke(invocation(), endpoint)
    assert isinstance(outcome, Failed)
    assert outcome.error == "FC.Unknown"
    assert "more than 10 interim replies (1xx), the limit interim_replies_max" in outcome.cause
    await server.disconnected.wait()
    server.answer = in_turn(INTERIM * 10 + LENGTH, INTERIM * 11 + LENGTH)
    assert await invoker.invoke(invocation(), endpoint) == Replied({"a": 1}, ANY)
    assert isinstance(await invoker.invoke(invocation(), endpoint), Failed)


async def test_interim_replies_between_calls_end_the_connection(invoker, invocation, endpoint, server):
    polite = reply_with(b"{}")

    async def answer_and_flood(request, reader, writer):
        await polite(request, reader, writer)
        while True:
            writer.write(INTERIM * 100)
            await writer.drain()

    server.answer = answer_and_flood
    assert await invoker.invoke(invocation(), endpoint) == Replied({}, ANY)
    await server.disconnected.wait()


@pytest.mark.parametrize(
    "last",
    [head(200, "content-length: 2", "connection: close") + b"{}", b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\n{}"],
)
async def test_connection_that_the_server_wants_closed(invoker, invocation, endpoint, server, last):
    server.answer = in_turn(last, LENGTH)
    assert await invoker.invoke(invocation(), endpoint) == Replied({}, ANY)
    await server.disconnected.wait()
    assert await invoker.invoke(invocation(), endpoint) == Replied({"a": 1}, ANY)
    assert (server.connections, len(server.requests)) == (2, 2)


async def test_two_replies_to_one_request(invoker, invocation, endpoint, server):
    server.answer = in_turn(LENGTH + reply_of('{"a": 2}'), reply_of('{"a": 3}'))
    assert await invoker.invoke(invocation(), endpoint) == Replied({"a": 1}, ANY)
    assert await invoker.invoke(invocation(), endpoint) == Replied({"a": 3}, ANY)
    assert server.connections == 2


async def test_reply_without_a_request(invoker, invocation, endpoint, server):
    server.answer = in_turn(LENGTH, reply_of('{"a": 3}'))
    await invoker.invoke(invocation(), endpoint)
    [writer] = server.open_connections
    writer.write(reply_of('{"a": 2}'))
    await writer.drain()
    await one_other_call(invoker, invocation)  # the event loop has read everything by then
    assert await invoker.invoke(invocation(), endpoint) == Replied({"a": 3}, ANY)
    assert server.connections == 2


def reply_of(body):
    return head(200, f"content-length: {len(body)}") + body.encode()


async def one_other_call(invoker, invocation):
    other = WireServer()
    await other.start()
    assert await invoker.invoke(invocation(), Endpoint(other.url, {}, 60)) == Replied({}, ANY)
    await other.stop()


@pytest.mark.parametrize(
    "beginning",
    [b"HTTP/1.1 200 OK\r\ncontent-le", b"HTTP/1.1 103 Early Hints\r\n\r\n", head(200, "content-length: 100") + b"{"],
)
async def test_reply_broken_on_a_kept_connection_is_not_sent_again(invoker, invocation, endpoint, server, beginning):
    await invoker.invoke(invocation(), endpoint)

    async def answer(_, __, writer):
        writer.write(beginning)
        writer.close()

    server.answer = answer
    assert (await invoker.invoke(invocation(), endpoint)).error == "FC.Unknown"
    assert len(server.requests) == 2


async def test_server_that_takes_no_second_connection_leaves_the_outcome_unknown(invoker, invocation, endpoint, server):
    await invoker.invoke(invocation(), endpoint)
    with ExitStack() as sockets:

        async def lose_the_request_and_hang(_, __, writer):
            server.stop_listening()
            full = sockets.enter_context(socket.create_server(("127.0.0.1", server.port), backlog=0))
            sockets.enter_context(socket.create_connection(full.getsockname()))
            writer.transport.abort()

        server.answer = lose_the_request_and_hang
        result = await invoker.invoke(invocation(), Endpoint(server.url, {}, 0.3))
    assert result == Failed("FC.Unknown", "shop/charge did not reply within its time-out of 0.3 s.")


async def test_functions_of_one_host_share_a_connection(invoker, invocation, server):
    for path, headers in (("/a", {}), ("/b", {"Authorization": "x"}), ("/b", {"Authorization": "y"})):
        await invoker.invoke(invocation(), Endpoint(server.url + path, headers, 60))
    assert server.connections == 1
    starts = [request.split(b" HTTP")[0] for request in server.requests]
    assert starts == [b"POST /function/a", b"POST /function/b", b"POST /function/b"]
    assert b"authorization: y\r\n" in server.requests[2].lower()


async def test_concurrent_calls_have_a_connection_each(invoker, invocation, endpoint, server):
    arrived, all_arrived, polite = [], asyncio.Event(), reply_with(b"{}")

    async def answer(request, reader, writer):
        arrived.append(request)
        if len(arrived) == 20:
            all_arrived.set()
        await all_arrived.wait()
        await polite(request, reader, writer)

    server.answer = answer
    assert await asyncio.gather(*(invoker.invoke(invocation(), endpoint) for _ in range(20))) == [Replied({}, ANY)] * 20
    assert server.connections == 20
    await asyncio.gather(*(invoker.invoke(invocation(), endpoint) for _ in range(20)))
    assert server.connections == 20


async def test_idle_connection_is_closed(limits, invocation, endpoint, server):
    invoker = HttpInvoker(limits, idle_seconds=0.01)
    assert await invoker.invoke(invocation(), endpoint) == Replied({}, ANY)
    await server.disconnected.wait()
    assert await invoker.invoke(invocation(), endpoint) == Replied({}, ANY)
    assert server.connections == 2
    await invoker.close()


async def test_closing_ends_idle_connections(limits, invocation, endpoint, server):
    invoker = HttpInvoker(limits, idle_seconds=86_400)
    await invoker.invoke(invocation(), endpoint)
    await invoker.close()
    async with asyncio.timeout(PATIENCE_SECONDS):
        await server.disconnected.wait()


async def test_body_without_a_length_is_incomplete_at_the_time_limit(invoker, invocation, endpoint, server):
    async def answer(_, reader, writer):
        writer.write(head(200) + b'{"a": 1}')
        await reader.read()  # until the client gives up

    server.answer = answer
    result = await invoker.invoke(invocation(), Endpoint(server.url, {}, 0.05))
    assert result == Failed("FC.Unknown", "shop/charge did not reply within its time-out of 0.05 s.")


async def test_body_without_a_length_ends_with_the_connection(invoker, invocation, endpoint, server):
    async def answer(_, __, writer):
        writer.write(head(200) + b'{"a": ')
        await writer.drain()
        writer.write(b"1}")
        writer.close()

    server.answer = answer
    assert await invoker.invoke(invocation(), endpoint) == Replied({"a": 1}, ANY)


async def test_large_body_is_received_whole(limits, invocation, endpoint, server):
    invoker = HttpInvoker(type(limits)())
    text = "x" * 3_000_000
    server.answer = reply_with(b'{"a": "' + text.encode() + b'"}')
    assert await invoker.invoke(invocation(), endpoint) == Replied({"a": text}, ANY)
    await invoker.close()


async def test_large_event_is_sent_whole(invoker, invocation, endpoint, server):
    event = '{"a": "' + "x" * 250_000 + '"}'
    await invoker.invoke(invocation(event=event), endpoint)
    assert server.requests[0].endswith(event.encode())


async def test_endpoints_own_headers_come_before_the_usual_ones(invoker, invocation, server):
    await invoker.invoke(invocation(), Endpoint(server.url, {"user-agent": "mine", "Accept": "text/x"}, 60))
    sent = server.requests[0].lower()
    assert sent.count(b"user-agent: mine\r\n") == sent.count(b"user-agent:") == 1
    assert sent.count(b"accept: text/x\r\n") == sent.count(b"accept:") == 1


async def test_header_of_a_damaged_registration_cannot_begin_another(invoker, invocation, server):
    result = await invoker.invoke(invocation(), Endpoint(server.url, {"X-Key": "s3cret\r\nX-Evil: 1"}, 10))
    assert result.error == "FC.InvalidArgument"
    assert "s3cret" not in result.cause
    assert not server.requests
