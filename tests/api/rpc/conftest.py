"""The whole application over its own database, and its RPC API as a client sees it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from flowserver.base.json_values import load_json
from flowserver.server import Application
from tests.api.conftest import client_of
from tests.engine.called_functions import Functions
from tests.engine.nodes import definition

PASS = definition("- {type: pass, name: p}")
WAIT = definition("- {type: wait, name: w, duration: 3600}")
CALL = definition("- {type: task, name: t, resourceArn: 'acs:fc:::services/s/functions/f'}")
ASK = definition(
    """
    - type: task
      name: ask
      resourceArn: acs:fc:::services/s/functions/f
      pattern: waitForCallback
      inputMappings: [{target: token, source: $context.task.token}]
    """
)


class Rpc:
    """Calls actions over an HTTP client; parameters are sent as a form unless a test says otherwise."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http

    async def send(self, action: str, **parameters: Any) -> httpx.Response:
        return await self.http.post("/", data={"Action": action, "Version": "2019-03-15", **parameters})

    async def call(self, action: str, **parameters: Any) -> dict[str, Any]:
        """The body of a success."""
        return success(await self.send(action, **parameters))

    async def refused(self, action: str, status: int, code: str, **parameters: Any) -> str:
        """The message of a refusal, which must be of that status and code."""
        return fault(await self.send(action, **parameters), status, code)

    async def create_flow(self, name: str, text: str = PASS, **more: Any) -> dict[str, Any]:
        return await self.call("CreateFlow", Name=name, Definition=text, Type="FDL", Description="d", **more)

    async def end_of(self, flow: str, name: str) -> dict[str, Any]:
        """The execution, once it has ended."""
        body = await self.call("DescribeExecution", FlowName=flow, ExecutionName=name, WaitTimeSeconds=60)
        assert body["StoppedTime"] != "", body
        return body

    async def names(self, action: str, list_name: str, **parameters: Any) -> list[list[str]]:
        """The names on every page of a listing."""
        pages: list[list[str]] = []
        token: str | None = None
        while token is None or token:
            given = parameters if token is None else {**parameters, "NextToken": token}
            body = await self.call(action, **given)
            pages.append([item["Name"] for item in body[list_name]])
            token = body.get("NextToken", "")
        return pages


def success(response: httpx.Response) -> dict[str, Any]:
    """The body of a success, as every SDK generation can read it."""
    body = load_json(response.text)
    assert response.status_code == 200, body
    assert response.headers["content-type"] == "application/json"
    assert int(response.headers["content-length"]) == len(response.content)
    assert body["RequestId"]
    assert "Code" not in body
    return dict(body)


def fault(response: httpx.Response, status: int, code: str) -> str:
    """The message of an error, as every SDK generation can read it."""
    body = load_json(response.text)
    assert (response.status_code, body["Code"]) == (status, code), body
    assert response.headers["content-type"] == "application/json"
    assert int(response.headers["content-length"]) == len(response.content)
    assert body["RequestId"]
    assert body["Message"]
    assert all(isinstance(value, str) for value in body.values())
    return str(body["Message"])


@pytest.fixture
async def rpc(app: Application) -> AsyncIterator[Rpc]:
    """The RPC API of the running application."""
    async with running_rpc(app) as running:
        yield running


@asynccontextmanager
async def running_rpc(app: Application) -> AsyncIterator[Rpc]:
    async with app.router.lifespan_context(app), client_of(app) as http:
        yield Rpc(http)


@pytest.fixture
async def functions() -> AsyncIterator[Functions]:
    server = Functions()
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def function(rpc: Rpc, app: Application, functions: Functions) -> Functions:
    """Functions of which `s/f` is registered."""
    put = app.state.operations.functions.put
    await put("s", "f", url=functions.url("s/f"), headers={}, timeout_seconds=None)
    return functions
