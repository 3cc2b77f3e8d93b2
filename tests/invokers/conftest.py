from collections.abc import AsyncIterator, Callable

import pytest

from flowserver.base.limits import Limits
from flowserver.invokers.http import HttpInvoker
from flowserver.invokers.invocation import Endpoint, Invocation
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
        "timeout_ms": 10_000,
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
    return Limits(function_response_bytes_max=1000)


@pytest.fixture
async def server() -> AsyncIterator[WireServer]:
    wire_server = WireServer()
    await wire_server.start()
    yield wire_server
    await wire_server.stop()


@pytest.fixture
def endpoint(server: WireServer) -> Endpoint:
    return Endpoint(server.url, {"Authorization": "Bearer s3cret"}, 10)


@pytest.fixture
async def invoker(limits: Limits) -> AsyncIterator[HttpInvoker]:
    http_invoker = HttpInvoker(limits, stale_seconds=60)  # however busy the machine
    yield http_invoker
    await http_invoker.close()
