"""Functions with a concurrency limit and an initializer, as invocations see them."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest

from flowserver.server import Application
from tests.api.fc.conftest import INVOKE, refused
from tests.engine.called_functions import Functions

ASYNC = {"X-Fc-Invocation-Type": "Async"}


@pytest.fixture
async def functions(client: httpx.AsyncClient) -> AsyncIterator[Functions]:
    server = Functions()
    await server.start()
    yield server
    await server.stop()


async def register(app: Application, functions: Functions, **more: object) -> None:
    url = functions.url("shop/pay")
    await app.state.operations.functions.put("shop", "pay", url=url, headers={}, timeout_seconds=60, **more)


async def test_a_full_function_refuses(client: httpx.AsyncClient, app: Application, functions: Functions) -> None:
    await register(app, functions, concurrency_max=1, waiting_max=0)
    first = asyncio.create_task(client.post(INVOKE, content="1"))
    call = await functions.next_call("shop/pay")
    refused(await client.post(INVOKE, content="2"), 429, "ResourceExhausted")
    call.reply(1)
    assert (await first).json() == 1
    functions.echo("shop/pay")
    assert (await client.post(INVOKE, content="3")).json() == 3


async def test_a_full_queue_refuses(client: httpx.AsyncClient, app: Application, functions: Functions) -> None:
    await register(app, functions, concurrency_max=1, waiting_max=1)
    assert (await client.post(INVOKE, content="1", headers=ASYNC)).status_code == 202
    call = await functions.next_call("shop/pay")
    assert (await client.post(INVOKE, content="2", headers=ASYNC)).status_code == 202
    refused(await client.post(INVOKE, content="3", headers=ASYNC), 503, "ResourceThrottled")
    call.reply(1)
    (await functions.next_call("shop/pay")).reply(2)


async def test_an_initializer_runs_before_the_first_call(
    client: httpx.AsyncClient, app: Application, functions: Functions
) -> None:
    functions.scripts["init"] = lambda call: call.reply(status=500)
    functions.echo("shop/pay")
    await register(app, functions, initialize_url=functions.url("init"))
    assert "500" in refused(await client.post(INVOKE, content="1"), 412, "FunctionNotStarted")
    functions.scripts["init"] = lambda call: call.reply()
    for _ in range(2):
        assert (await client.post(INVOKE, content="1")).status_code == 200
    assert [call.function for call in functions.calls] == ["init", "init", "shop/pay", "shop/pay"]
