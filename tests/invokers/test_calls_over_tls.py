"""Calls of functions over TLS: the same connections, and none without a certificate that is trusted."""

import ssl
from unittest.mock import ANY

import pytest
from aiohttp import connector

from flowserver.base.limits import Limits
from flowserver.invokers.calls import Endpoint, Failed, Replied
from flowserver.invokers.http import HttpInvoker
from tests.invokers.wire_server import WireServer, head, reply_with
from tests.support.certificate import make_certificate


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return make_certificate(tmp_path_factory.mktemp("tls") / "server.pem")


@pytest.fixture
async def server(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    made = WireServer()
    await made.start(context)
    yield made
    await made.stop()


@pytest.fixture
def is_trusted(monkeypatch, certificate):
    """aiohttp makes its context when it is imported, so SSL_CERT_FILE would come too late."""
    monkeypatch.setattr(connector, "_SSL_CONTEXT_VERIFIED", ssl.create_default_context(cafile=certificate))


@pytest.fixture
async def invoker():
    made = HttpInvoker(Limits(), stale_seconds=60)
    yield made
    await made.close()


@pytest.mark.usefixtures("is_trusted")
async def test_a_connection_with_tls_is_kept_and_reused(invoker, invocation, server):
    text = "x" * 1_000_000
    endpoint = Endpoint(server.url, {}, 60)
    for answered in ("", text, ""):
        server.answer = reply_with(b'{"a": "%s"}' % answered.encode())
        result = await invoker.invoke(invocation(event=f'"{answered}"'), endpoint)
        assert result == Replied({"a": answered}, ANY)
    assert (server.connections, len(server.requests)) == (1, 3)


@pytest.mark.usefixtures("is_trusted")
async def test_a_reply_over_tls_ends_with_its_connection(invoker, invocation, server):
    async def answer(_, __, writer):
        writer.write(head(200) + b'{"a": 1}')
        writer.close()

    server.answer = answer
    assert await invoker.invoke(invocation(), Endpoint(server.url, {}, 60)) == Replied({"a": 1}, ANY)


@pytest.mark.usefixtures("is_trusted")
async def test_a_request_lost_on_a_stale_connection_with_tls_is_sent_again(invoker, invocation, server):
    polite = reply_with(b"{}")

    async def answer(request, reader, writer):
        if len(server.requests) == 2:
            writer.transport.abort()
        else:
            await polite(request, reader, writer)

    server.answer = answer
    for _ in range(2):
        assert await invoker.invoke(invocation(), Endpoint(server.url, {}, 60)) == Replied({}, ANY)
    assert (server.connections, len(server.requests)) == (2, 3)


async def test_a_certificate_that_is_not_trusted_is_refused(invoker, invocation, server):
    result = await invoker.invoke(invocation(), Endpoint(server.url, {}, 60))
    assert result == Failed("FC.ServerError", "shop/charge could not be reached: no secure connection came about.")
    assert server.requests == []
