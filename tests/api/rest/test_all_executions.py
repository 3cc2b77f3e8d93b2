"""Executions of all flows in one list."""

import httpx
import pytest

from tests.api.rest.conftest import PASS, WAIT, assert_problem


@pytest.fixture(autouse=True)
async def started(client: httpx.AsyncClient) -> None:
    """Two executions of `order`, which have ended, and one of `parcel`, which runs."""
    await client.put("/v1/flows/order", json={"definition": PASS})
    await client.put("/v1/flows/parcel", json={"definition": WAIT})
    for name in ("a1", "b2"):
        await client.post("/v1/flows/order/executions?wait=60", json={"name": name})
    await client.post("/v1/flows/parcel/executions", json={"name": "a3"})


async def _paths(client: httpx.AsyncClient, query: str = "") -> list[str]:
    """All pages, of two executions each."""
    found: list[str] = []
    token = ""
    while True:
        page = (await client.get(f"/v1/executions?limit=2{query}{token}")).json()
        found += [f"{each['flowName']}/{each['name']}" for each in page["executions"]]
        if page["nextToken"] is None:
            return found
        token = f"&nextToken={page['nextToken']}"


async def test_the_list_covers_all_flows(client: httpx.AsyncClient) -> None:
    assert sorted(await _paths(client)) == ["order/a1", "order/b2", "parcel/a3"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("&status=Succeeded", ["order/a1", "order/b2"]),
        ("&status=Running", ["parcel/a3"]),
        ("&status=Failed", []),
        ("&namePrefix=a", ["order/a1", "parcel/a3"]),
        ("&flow=parcel", ["parcel/a3"]),
        ("&flow=order&namePrefix=b", ["order/b2"]),
        ("&startedTo=2020-01-01T00:00:00Z", []),
    ],
)
async def test_filters(client: httpx.AsyncClient, query: str, expected: list[str]) -> None:
    assert sorted(await _paths(client, query)) == expected


async def test_those_that_ended_within_some_time_come_by_their_end(client: httpx.AsyncClient) -> None:
    await client.post("/v1/flows/parcel/executions", json={"name": "a4"})
    ends = [
        (await client.post(f"/v1/flows/parcel/executions/{name}/stop", json={})).json()["stoppedTime"]
        for name in ("a4", "a3")
    ]
    paths = await _paths(client, f"&status=Stopped&endedFrom={ends[0]}")
    assert paths == (["parcel/a3", "parcel/a4"])
    assert await _paths(client, f"&status=Stopped&flow=parcel&endedTo={ends[1]}") == paths
    assert await _paths(client, f"&status=Stopped&flow=order&endedTo={ends[1]}") == []
    assert await _paths(client, "&status=Stopped&endedTo=2020-01-01T00:00:00Z") == []
    assert await _paths(client, "&status=Failed&endedFrom=2020-01-01T00:00:00Z") == []
    listed = (await client.get(f"/v1/flows/parcel/executions?status=Stopped&endedFrom={ends[0]}")).json()
    assert [each["name"] for each in listed["executions"]] == ["a3", "a4"]


async def test_a_time_of_the_end_needs_a_status_of_executions_without_success(client: httpx.AsyncClient) -> None:
    for status in ("", "&status=Succeeded", "&status=Running"):
        refused = await client.get(f"/v1/executions?endedFrom=2020-01-01T00:00:00Z{status}")
        assert_problem(refused, 400, "InvalidArgument")
        assert "Failed, Stopped, TimedOut" in refused.json()["detail"]


async def test_wrong_queries(client: httpx.AsyncClient) -> None:
    for query in ("nextToken=x", "nextToken=1", "limit=101", "form=1", "status=Odd", "startedFrom=now"):
        assert_problem(await client.get(f"/v1/executions?{query}"), 400, "InvalidArgument")
    assert_problem(await client.get("/v1/executions?flow=none"), 404, "FlowNotExists")
