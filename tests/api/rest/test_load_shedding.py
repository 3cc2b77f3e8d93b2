"""A server that is too busy refuses requests with 429 only before they have changed anything."""

from dataclasses import replace
from typing import Any

import httpx
import pytest

from flowserver.engine.engine import Engine
from flowserver.server import Application
from tests.api.rest.conftest import WAIT, assert_problem

HOUR = {"cronExpression": "@every 60m"}
URL = {"url": "http://127.0.0.1:1/"}


@pytest.fixture(autouse=True)
async def busy(client: httpx.AsyncClient, app: Application) -> None:
    """The server can serve no look-up and no list more, as if `pending_messages_max` of each waited."""
    await client.put("/v1/flows/parcel", json={"definition": WAIT})
    await client.post("/v1/flows/parcel/schedules", json={"name": "there", **HOUR})
    engine: Engine = app.state.engine
    engine.reader._limits = replace(engine.reader._limits, pending_messages_max=0)
    engine.slow_reads._threads._pending_max = 0


@pytest.mark.parametrize("path", ["/v1/functions/shop/f", "/v1/flows/parcel/schedules/there", "/v1/flows"])
async def test_reads_are_refused(client: httpx.AsyncClient, path: str) -> None:
    assert_problem(await client.get(path), 429, "ResourceThrottled")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/flows"),
        ("POST", "/?Action=DescribeFlow&Name=parcel&Version=2019-03-15"),
        ("GET", "/queues/none"),
    ],
)
async def test_several_apis_say_when_to_come_back(client: httpx.AsyncClient, method: str, path: str) -> None:
    answer = await client.request(method, path)
    assert (answer.status_code, answer.headers.get_list("retry-after")) == (429, ["1"]), answer.text


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "executions?wait=1", {}, 201),
        ("POST", "executions?wait=1", {"name": "run"}, 201),
        ("POST", "schedules", {"name": "new", **HOUR}, 201),
        ("PUT", "schedules/new", HOUR, 201),
        ("PUT", "schedules/there", HOUR, 200),
        ("PATCH", "schedules/there", {"note": "changed"}, 200),
        ("POST", "schedules/there/pause", {"note": "holiday"}, 200),
        ("POST", "schedules/there/resume", {"note": "back"}, 200),
        ("PUT", "/v1/functions/shop/f", URL, 201),
    ],
)
async def test_a_change_that_is_committed_is_answered(
    client: httpx.AsyncClient, method: str, path: str, body: dict[str, Any], status: int
) -> None:
    response = await client.request(method, f"/v1/flows/parcel/{path}" if path[0] != "/" else path, json=body)
    assert response.status_code == status, response.text


async def test_the_next_request_is_refused_again(client: httpx.AsyncClient) -> None:
    assert (await client.put("/v1/functions/shop/f", json=URL)).status_code == 201
    assert_problem(await client.get("/v1/functions/shop/f"), 429, "ResourceThrottled")
