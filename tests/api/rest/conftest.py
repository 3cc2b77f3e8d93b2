"""The whole application over its own database, and clients for it: in-process, or over a socket."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
import uvicorn

from flowserver.machine.events import EventType
from flowserver.operations.access import make_access_key
from flowserver.server import Application
from flowserver.store.access_keys import insert_access_key
from flowserver.store.sql.database import Database
from tests.invokers.wire_server import WireServer
from tests.support.following import follow

PASS = "version: v1\ntype: flow\nsteps:\n  - type: pass\n    name: p\n"
WAIT = "version: v1\ntype: flow\nsteps:\n  - type: wait\n    name: w\n    duration: 3600\n"
CALLBACK = """\
version: v1
type: flow
steps:
  - type: task
    name: ask
    resourceArn: acs:fc:::services/shop/functions/ask
    pattern: waitForCallback
    inputMappings:
      - {target: token, source: $context.task.token}
    outputMappings:
      - {target: answer, source: $local}
"""


@pytest.fixture
def token(sqlite_url: str) -> str:
    """The bearer token of the server's only key; must be requested before the application runs."""
    made = make_access_key("tests", 0)
    database = Database(sqlite_url)
    with database.write() as connection:
        insert_access_key(connection, made.key)
    database.close()
    return made.token


@pytest.fixture
async def functions() -> AsyncIterator[WireServer]:
    """A server whose functions answer `{}`."""
    server = WireServer()
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def waiting(client: httpx.AsyncClient, app: Application, functions: WireServer) -> str:
    """The token of a task that waits for its report, in execution `run` of flow `ask`."""
    await put_callback_flow(client, functions)
    assert (await client.post("/v1/flows/ask/executions", json={"name": "run"})).status_code == 201
    return await submitted_token(app)


async def put_callback_flow(client: httpx.AsyncClient, functions: WireServer) -> None:
    await client.put("/v1/functions/shop/ask", json={"url": functions.url})
    await client.put("/v1/flows/ask", content=CALLBACK, headers={"Content-Type": "application/yaml"})


async def submitted_token(app: Application) -> str:
    """Wait until the step of execution `run` of flow `ask` waits for its report."""
    token = ""
    async for event in follow(app.state.operations, "ask", "run"):
        if event.type is EventType.STEP_STARTED:
            token = httpx.Response(200, text=event.detail).json()["input"]["token"]
        if event.type is EventType.TASK_SUBMITTED:
            return token
    raise AssertionError("the execution ended")


class LiveServer(uvicorn.Server):
    """A server that signals when it listens."""

    def __init__(self, app: Application) -> None:
        super().__init__(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning", ws="none"))
        self.listens = asyncio.Event()

    async def startup(self, sockets=None) -> None:
        await super().startup(sockets)
        self.listens.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.servers[0].sockets[0].getsockname()[1]}"


@pytest.fixture
async def live(app: Application) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the application on a real socket."""
    server = LiveServer(app)
    serving = asyncio.create_task(server.serve())
    await server.listens.wait()
    async with httpx.AsyncClient(base_url=server.url, trust_env=False, timeout=30) as opened:
        yield opened
    server.should_exit = True
    await serving


def assert_problem(response: httpx.Response, status: int, code: str) -> dict:
    """Check that the response is a problem of that status and code; returns it."""
    assert response.headers["content-type"] == "application/problem+json", response.text
    problem = response.json()
    assert (response.status_code, problem["code"]) == (status, code), problem
    assert problem["status"] == status
    assert problem["type"] == f"urn:flowserver:problem:{code}"
    assert problem["title"]
    assert problem["detail"]
    assert problem["requestId"] == response.headers["x-request-id"]
    return problem
