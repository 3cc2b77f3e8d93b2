"""The character NUL, which PostgreSQL cannot store, is refused with a clear error on both databases."""

from collections.abc import AsyncIterator

import httpx
import pytest

from flowserver.server import create_app
from flowserver.settings import Settings
from tests.api.conftest import client_of


@pytest.fixture
async def client(database_url: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an application over either database."""
    app = create_app(Settings(database_url=database_url, drain_seconds=0))
    async with app.router.lifespan_context(app), client_of(app) as opened:
        yield opened


FUNCTIONS = "/2016-08-15/services/a%00b/functions/f"


@pytest.mark.parametrize(
    ("method", "url"),
    [
        ("GET", "/?Action=DescribeFlow&Name=a%00b"),
        ("GET", "/?Action=DescribeFlow&Name=f&More=%00"),
        ("POST", f"{FUNCTIONS}/invocations"),
        ("GET", f"{FUNCTIONS}/stateful-async-invocations/x"),
        ("GET", "/2016-08-15/services/s/functions/f/stateful-async-invocations/%00"),
        ("GET", "/2016-08-15/stateful-async-invocation-functions?nextToken=%00"),
        ("GET", "/2016-08-15/services/s/functions/%00/async-invoke-configs"),
        ("GET", "/queues/a%00b"),
        ("GET", "/queues/a/messages?%00=1"),
        ("GET", "/topics/a/subscriptions/%00"),
        ("GET", "/v1/flows/a%00b"),
        ("GET", "/v1/flows/f/executions/%00"),
        ("GET", "/v1/flows?nextToken=%00"),
        ("PUT", "/v1/functions/%00/f"),
    ],
)
async def test_nul_in_a_url(client: httpx.AsyncClient, method: str, url: str) -> None:
    reply = await client.request(method, url, content=b"")
    assert reply.status_code == 400
    assert url.startswith("/v1/") or "NUL" in reply.text  # REST names the parameter instead
    assert "%00" not in reply.headers["x-request-id"]


@pytest.mark.parametrize(
    ("method", "url", "body"),
    [
        ("PUT", "/v1/flows/a", {"definition": "version: v1", "description": "\0"}),
        ("POST", "/v1/flows", {"name": "\0", "definition": "version: v1"}),
        ("POST", "/v1/flows/a/executions", {"name": "\0"}),
        ("POST", "/v1/flows/a/executions", {"name": "e", "callbackTaskToken": "\0"}),
        ("PUT", "/v1/functions/s/f", {"url": "http://127.0.0.1/\0"}),
        ("PUT", "/v1/functions/s/f", {"url": "http://127.0.0.1/", "headers": {"x": "\0"}}),
        ("PUT", "/v1/functions/s/f", {"url": "http://127.0.0.1/", "preStopUrl": "http://127.0.0.1/\0"}),
        ("POST", "/v1/tasks/succeed", {"taskToken": "\0", "output": {}}),
        ("POST", "/v1/tasks/fail", {"taskToken": "t", "error": "\0", "cause": "\0"}),
        ("PUT", "/2016-08-15/services/s/functions/f/async-invoke-config", {"destinationConfig": {"\0": "\0"}}),
    ],
)
async def test_nul_in_a_body(client: httpx.AsyncClient, method: str, url: str, body: dict[str, object]) -> None:
    flow = "version: v1\ntype: flow\nsteps: [{type: pass, name: p}]\n"
    await client.put("/v1/flows/a", json={"definition": flow})
    reply = await client.request(method, url, json=body)
    assert 400 <= reply.status_code < 500, reply.text


async def test_documents_may_hold_it(client: httpx.AsyncClient) -> None:
    flow = "version: v1\ntype: flow\nsteps: [{type: pass, name: p, outputMappings: [{target: a, source: $input.a}]}]\n"
    await client.put("/v1/flows/a", json={"definition": flow})
    ended = await client.post("/v1/flows/a/executions?wait=30", json={"name": "e", "input": {"a": "\0"}})
    assert ended.json()["output"] == {"a": "\0"}
