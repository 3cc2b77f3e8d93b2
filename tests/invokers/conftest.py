import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from flowserver.api.internal_faults import as_fault
from flowserver.base.limits import Limits
from flowserver.front.function_calls import Calling, DistantInvoker
from flowserver.front.link import Link
from flowserver.invokers.calls import Endpoint, Invocation, Invoker
from flowserver.invokers.http import HttpInvoker
from tests.invokers.wire_server import WireServer


def make_invocation(**changes: object) -> Invocation:
    values: dict[str, object] = {
        "service": "shop",
        "qualifier": "",
        "function": "charge",
        "event": "{}",
        "invocation_id": None,
        "idempotency_key": "key-1",
        "attempt": 0,
        "timeout_ms": 60_000,
        "flow_name": "order",
        "execution_name": "run-1",
        "step_name": "Charge",
    }
    return Invocation(**{**values, **changes})


@pytest.fixture
def invocation() -> Callable[..., Invocation]:
    return make_invocation


@pytest.fixture
def limits() -> Limits:
    return Limits(function_response_bytes_max=1000, interim_replies_max=10)


@pytest.fixture
async def server() -> AsyncIterator[WireServer]:
    wire_server = WireServer()
    await wire_server.start()
    yield wire_server
    await wire_server.stop()


@pytest.fixture
def endpoint(server: WireServer) -> Endpoint:
    return Endpoint(server.url, {"Authorization": "Bearer s3cret"}, 60)


@pytest.fixture(params=["direct", "distant"])
async def invoker(request: pytest.FixtureRequest, limits: Limits) -> AsyncIterator[Invoker]:
    """The invoker itself, and an invoker in another process that is called over a link."""
    http_invoker = HttpInvoker(limits, stale_seconds=60)  # however busy the machine
    if request.param == "direct":
        yield http_invoker
    else:
        async with distant(http_invoker, limits) as invoker:
            yield invoker
    await http_invoker.close()


@asynccontextmanager
async def distant(invoker: HttpInvoker, limits: Limits) -> AsyncIterator[DistantInvoker]:
    """The caller at the other end of a link."""
    ours, theirs = socket.socketpair()
    far = await Link.connected(theirs, Calling(invoker).handlers, as_fault)
    near = await Link.connected(ours, {}, as_fault)
    yield DistantInvoker(near, limits)
    near.close()
    await far.lost
