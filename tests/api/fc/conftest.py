"""Function Compute's API of a running application, and a function that answers in bytes."""

from collections.abc import AsyncIterator

import httpx
import pytest

from flowserver.server import Application
from tests.invokers.wire_server import WireServer

INVOKE = "/2016-08-15/services/shop/functions/pay/invocations"


@pytest.fixture
async def wire() -> AsyncIterator[WireServer]:
    """The server of the functions; it answers `{}` unless a test sets another answer."""
    server = WireServer()
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def pay(client: httpx.AsyncClient, app: Application, wire: WireServer) -> WireServer:
    """The server of `shop/pay`, which is registered."""
    await app.state.operations.functions.put("shop", "pay", url=wire.url, headers={}, timeout_seconds=60)
    return wire


def refused(response: httpx.Response, status: int, code: str) -> str:
    """The message of a refusal, as the SDKs read it."""
    assert response.headers["content-type"] == "application/json", response.text
    document = response.json()
    assert (response.status_code, document["ErrorCode"]) == (status, code), document
    if response.request.url.path.startswith("/2021-04-06/"):
        assert (document["Code"], document["Message"]) == (code, document["ErrorMessage"])
        assert document["RequestId"] == response.headers["x-fc-request-id"]
    else:
        assert document.keys() == {"ErrorCode", "ErrorMessage"}
    assert response.headers["x-fc-request-id"] == response.headers["x-request-id"]
    return str(document["ErrorMessage"])
