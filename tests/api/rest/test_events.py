"""Histories in pages."""

import httpx
import pytest

from tests.api.rest.conftest import PASS, assert_problem

HERE = "/v1/flows/order/executions/run/events"


@pytest.fixture(autouse=True)
async def execution(client: httpx.AsyncClient) -> None:
    await client.put("/v1/flows/order", json={"definition": PASS})
    await client.post("/v1/flows/order/executions?wait=60", json={"name": "run", "input": {"a": 1}})


async def test_the_whole_history(client: httpx.AsyncClient) -> None:
    page = (await client.get(HERE)).json()
    assert page["nextToken"] is None
    events = page["events"]
    assert [event["eventId"] for event in events] == list(range(1, len(events) + 1))
    assert [event["type"] for event in events] == [
        "ExecutionStarted",
        "StepEntered",
        "StepStarted",
        "StepSucceeded",
        "StepExited",
        "ExecutionSucceeded",
    ]
    assert events[0]["detail"]["input"] == {"a": 1}
    assert [event["scheduleEventId"] for event in events] == [0, 1, 2, 3, 4, 5]
    assert [event["stepName"] for event in events] == ["", "p", "p", "p", "p", ""]
    assert all(event["time"].endswith("Z") for event in events)


async def test_pages(client: httpx.AsyncClient) -> None:
    whole = (await client.get(HERE)).json()["events"]
    first = (await client.get(f"{HERE}?limit=4")).json()
    second = (await client.get(f"{HERE}?limit=4&nextToken={first['nextToken']}")).json()
    assert (first["nextToken"], second["nextToken"]) == ("5", None)
    assert first["events"] + second["events"] == whole


async def test_after(client: httpx.AsyncClient) -> None:
    for after, ids in ((0, [1, 2, 3, 4, 5, 6]), (4, [5, 6]), (6, []), (2_147_483_646, [])):
        page = (await client.get(f"{HERE}?after={after}")).json()
        assert ([event["eventId"] for event in page["events"]], page["nextToken"]) == (ids, None)


@pytest.mark.parametrize(
    "query",
    ["after=-1", "after=x", "after=2147483647", "limit=0", "limit=1001", "nextToken=x", "nextToken=0x1", "form=1"],
)
async def test_wrong_queries(client: httpx.AsyncClient, query: str) -> None:
    assert_problem(await client.get(f"{HERE}?{query}"), 400, "InvalidArgument")


async def test_executions_that_do_not_exist(client: httpx.AsyncClient) -> None:
    for suffix in ("", "/stream"):
        response = await client.get(f"/v1/flows/order/executions/none/events{suffix}")
        assert_problem(response, 404, "ExecutionNotExists")
        assert_problem(await client.get(f"/v1/flows/none/executions/run/events{suffix}"), 404, "FlowNotExists")


async def test_a_stream_of_the_past_ends_by_itself(client: httpx.AsyncClient) -> None:
    response = await client.get(f"{HERE}/stream?after=4")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.headers["cache-control"] == "no-store"
    assert [line for line in response.text.splitlines() if line.startswith("id:")] == ["id: 5", "id: 6"]


async def test_a_client_that_has_everything_gets_a_final_answer(client: httpx.AsyncClient) -> None:
    for query, headers in (("?after=6", {}), ("", {"Last-Event-ID": "6"}), ("?after=1", {"Last-Event-ID": "6"})):
        response = await client.get(f"{HERE}/stream{query}", headers=headers)
        assert (response.status_code, response.content) == (204, b"")


@pytest.mark.parametrize("last_event_id", ["", "x", "-1", "99999999999999999999"])
async def test_a_wrong_last_event_id(client: httpx.AsyncClient, last_event_id: str) -> None:
    response = await client.get(f"{HERE}/stream", headers={"Last-Event-ID": last_event_id})
    assert "last-event-id" in assert_problem(response, 400, "InvalidArgument")["detail"]


async def _ids(client: httpx.AsyncClient, query: str) -> list[int]:
    """All pages, one after the other."""
    found: list[int] = []
    token = ""
    while True:
        page = (await client.get(f"{HERE}?{query}{token}")).json()
        found += [event["eventId"] for event in page["events"]]
        if page["nextToken"] is None:
            return found
        token = f"&nextToken={page['nextToken']}"


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("order=desc", [6, 5, 4, 3, 2, 1]),
        ("order=desc&after=4", [6, 5]),
        ("order=desc&after=1&before=4", [3, 2]),
        ("after=1&before=4", [2, 3]),
        ("before=1", []),
        ("path=p&before=5", [2, 3, 4]),
        ("step=p", [2, 3, 4, 5]),
        ("step=p&order=desc", [5, 4, 3, 2]),
        ("step=q", []),
        ("type=StepEntered&type=StepExited", [2, 5]),
        ("type=ExecutionFailed", []),
    ],
)
@pytest.mark.parametrize("limit", [1, 2, 100])
async def test_backwards_and_filtered(client: httpx.AsyncClient, query: str, ids: list[int], limit: int) -> None:
    assert await _ids(client, f"{query}&limit={limit}") == ids


EACH = """\
version: v1
type: flow
steps:
- type: foreach
  name: each
  iterationMapping: {collection: $.items, item: item}
  steps: [{type: pass, name: charge}]
"""


@pytest.mark.parametrize("order", ["asc", "desc"])
async def test_the_events_of_one_iteration(client: httpx.AsyncClient, order: str) -> None:
    await client.put("/v1/flows/each", json={"definition": EACH})
    body = {"name": "run", "input": {"items": list(range(30))}}
    await client.post("/v1/flows/each/executions?wait=60", json=body)
    here = f"/v1/flows/each/executions/run/events?order={order}&paths=true"
    found = (await client.get(f"{here}&step=each[20].charge")).json()["events"]
    types = ["StepEntered", "StepStarted", "StepSucceeded", "StepExited"]
    assert [event["type"] for event in found] == (types if order == "asc" else types[::-1])
    assert {event["stepPath"] for event in found} == {"each[20].charge"}
    ids: list[int] = []
    token: str | None = ""
    while token is not None:
        page = (await client.get(f"{here}&step=each[20]&type=IterationEntered&type=StepExited&limit=1{token}")).json()
        ids += [event["eventId"] for event in page["events"]]
        token = page["nextToken"] and f"&nextToken={page['nextToken']}"
    assert len(ids) == 2
    alone = (await client.get(f"{here}&path=each[20]")).json()["events"]
    assert {event["type"] for event in alone} == {"IterationEntered", "IterationExited"}
    itself = (await client.get(f"{here}&path=each")).json()["events"]
    assert {event["type"] for event in itself} == set(types)
    assert_problem(await client.get(f"{here}&path=each&step=each"), 400, "InvalidArgument")
    assert (await client.get(f"{here}&step=each[30].charge")).json() == {"events": [], "nextToken": None}
    for wrong in ("each[x]", "a" + ".a[]" * 15_000):  # a search for the long one would compile for most of a second
        assert_problem(await client.get(f"{here}&step={wrong}"), 400, "InvalidArgument")
