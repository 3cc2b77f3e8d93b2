"""A key's permission ends with the key, also for waiting requests; and no web page makes a browser change anything."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
from sqlalchemy import update

from flowserver.api import permission_recheck
from flowserver.operations import access
from flowserver.operations.access import NewAccessKey, make_access_key
from flowserver.server import Application
from flowserver.store.access_keys import disable_access_key, insert_access_key
from flowserver.store.schema.tables import access_keys
from tests.api.rest.conftest import WAIT, LiveServer

PATIENCE_SECONDS = 60


@pytest.fixture
async def live(app: Application, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[httpx.AsyncClient]:
    """A client over a socket of a server that checks keys all the time; flow `f` has an execution that waits."""
    monkeypatch.setattr(permission_recheck, "RECHECK_SECONDS", 0.05)
    monkeypatch.setattr(access, "REMEMBER_SECONDS", 0.01)
    server = LiveServer(app)
    serving = asyncio.create_task(server.serve())
    await server.listens.wait()
    async with httpx.AsyncClient(base_url=server.url, trust_env=False, timeout=PATIENCE_SECONDS) as opened:
        await opened.put("/v1/flows/f", json={"definition": WAIT})
        await opened.post("/v1/flows/f/executions", json={"name": "e"})
        await opened.put("/queues/q", content=b"")
        yield opened
    server.should_exit = True
    await serving


async def closed(live: httpx.AsyncClient, app: Application) -> NewAccessKey:
    """A key, once the server knows that it exists."""
    made = make_access_key("tests", 0)
    with app.state.engine.database.write() as connection:
        insert_access_key(connection, made.key)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (await live.get("/v1/flows")).status_code == 200:  # it has not checked yet
            pass
    return made


WAITING = [
    "/v1/flows/f/executions/e?wait=60",
    "/?Action=DescribeExecution&FlowName=f&ExecutionName=e&WaitTimeSeconds=60",
    "/queues/q/messages?waitseconds=30",
]


@pytest.mark.parametrize("url", WAITING)
async def test_a_poll_ends_with_its_key(live: httpx.AsyncClient, app: Application, url: str) -> None:
    made = await closed(live, app)
    poll = asyncio.create_task(live.get(url, headers={"Authorization": f"Bearer {made.token}"}))
    done, _ = await asyncio.wait([poll], timeout=0.3)
    assert not done
    with app.state.engine.database.write() as connection:
        disable_access_key(connection, made.key.access_key_id, 1)
    assert (await poll).status_code == 403
    assert "disabled" in poll.result().text


@pytest.mark.parametrize(
    ("url", "change", "reason"),
    [
        (WAITING[0], {"expires_at": 1}, "expired"),
        (WAITING[0], {"flows": "order-"}, "begin with order-"),
        (WAITING[1], {"role": "worker"}, "executions.read"),
        (WAITING[2], {"role": "viewer"}, "queues.receive"),
    ],
)
async def test_a_poll_ends_with_what_its_key_may_do(
    live: httpx.AsyncClient, app: Application, url: str, change: dict[str, object], reason: str
) -> None:
    made = await closed(live, app)
    poll = asyncio.create_task(live.get(url, headers={"Authorization": f"Bearer {made.token}"}))
    done, _ = await asyncio.wait([poll], timeout=0.3)
    assert not done
    with app.state.engine.database.write() as connection:
        connection.execute(update(access_keys).values(change))
    assert (await poll).status_code == 403
    assert reason in poll.result().text


@pytest.mark.parametrize("url", WAITING)
async def test_a_poll_without_a_key_ends_when_one_is_needed(
    live: httpx.AsyncClient, app: Application, url: str
) -> None:
    poll = asyncio.create_task(live.get(url))
    done, _ = await asyncio.wait([poll], timeout=0.3)
    assert not done
    with app.state.engine.database.write() as connection:
        insert_access_key(connection, make_access_key("tests", 0).key)
    assert (await poll).status_code == 403


async def test_a_stream_ends_with_its_key(
    live: httpx.AsyncClient, app: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flowserver.operations.live_histories.LOOK_AGAIN_SECONDS", 0.05)
    made = await closed(live, app)
    headers = {"Authorization": f"Bearer {made.token}"}
    async with live.stream("GET", "/v1/flows/f/executions/e/events/stream", headers=headers) as response:
        lines = response.aiter_lines()
        assert await anext(lines) == "id: 1"
        with app.state.engine.database.write() as connection:
            disable_access_key(connection, made.key.access_key_id, 1)
        async for _ in lines:
            pass


IMAGE = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/140.0", "Accept": "image/avif,*/*"}
"""The headers of a browser for an image whose page suppresses the Referer, over HTTP to a host that is not this
machine.
"""

BROWSERS = [IMAGE, {"Referer": "http://evil.example/"}, {"Sec-Fetch-Site": "same-site"}]
CHANGES = [
    "/?Action=DeleteFlow&Name=f",
    "/?Action=StopExecution&FlowName=f&ExecutionName=e",
    "/?Action=StartExecution&FlowName=f",
    "/queues/q/messages",
]


@pytest.mark.parametrize("browser", BROWSERS)
@pytest.mark.parametrize("url", CHANGES)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_no_page_changes_anything_by_an_image(
    client: httpx.AsyncClient, app: Application, method: str, url: str, browser: dict[str, str]
) -> None:
    app.state.settings.allowed_hosts.append("flows.example")
    await client.put("/v1/flows/f", json={"definition": WAIT})
    await client.put("/queues/q", content=b"")
    refused = await client.request(method, url, headers={**browser, "Host": "flows.example:8080"})
    assert refused.status_code == (403 if method == "GET" or "Action" in url else 400)  # queues have no HEAD
    assert (await client.get("/v1/flows/f")).status_code == 200


async def test_sdks_may_change_by_get_and_browsers_may_read(client: httpx.AsyncClient) -> None:
    await client.put("/v1/flows/f", json={"definition": WAIT})
    seen = await client.get("/?Action=DescribeFlow&Name=f", headers=IMAGE)
    assert seen.json()["Name"] == "f"
    sdk = {"User-Agent": "AlibabaCloud (Linux; x86_64) Python/3.11 Core/2.16 python-requests/2.32"}
    assert (await client.get("/?Action=DeleteFlow&Name=f", headers=sdk)).status_code == 200
    assert (await client.get("/v1/flows/f")).status_code == 404
