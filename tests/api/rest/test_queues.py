"""Queues and topics over REST: lists, counts, peeking, sending, publishing, purging."""

import httpx
import pytest

from flowserver.operations.queues import QueueAttributes
from flowserver.operations.topics import TopicAttributes
from flowserver.server import Application
from tests.api.rest.conftest import assert_problem


@pytest.fixture
async def work(client: httpx.AsyncClient, app: Application) -> str:
    """The path of a queue."""
    await app.state.operations.queues.create("work", QueueAttributes(visibility_seconds=60))
    return "/v1/queues/work"


async def test_messages_are_sent_shown_counted_and_purged(
    client: httpx.AsyncClient, app: Application, work: str
) -> None:
    assert (await client.get(f"{work}/messages")).json() == {"messages": []}
    bodies = ("first", "second", "later")
    for body, more in zip(bodies, ({}, {"priority": 1}, {"delaySeconds": 60}), strict=True):
        sent = await client.post(f"{work}/messages", json={"body": body, **more})
        assert sent.status_code == 201
    shown = (await client.get(f"{work}/messages?limit=10")).json()["messages"]
    assert [each["body"] for each in shown] == ["second", "first"]
    assert "receipt" not in str(shown)
    await app.state.operations.queues.receive("work")
    queue = (await client.get(work)).json()
    assert (queue["ready"], queue["received"], queue["delayed"], queue["visibilitySeconds"]) == (1, 1, 1, 60)
    assert (await client.post(f"{work}/purge")).json() == {"deleted": 3}
    assert (await client.post(f"{work}/purge")).json() == {"deleted": 0}
    assert (await client.get(f"{work}/messages")).json() == {"messages": []}


async def test_queues_are_listed_in_pages(client: httpx.AsyncClient, app: Application) -> None:
    for name in ("a", "b-1", "b-2"):
        await app.state.operations.queues.create(name, QueueAttributes())
    first = (await client.get("/v1/queues?limit=2")).json()
    assert [each["name"] for each in first["queues"]] == ["a", "b-1"]
    rest = (await client.get("/v1/queues", params={"limit": 2, "nextToken": first["nextToken"]})).json()
    assert ([each["name"] for each in rest["queues"]], rest["nextToken"]) == (["b-2"], None)
    found = (await client.get("/v1/queues?prefix=b-")).json()
    assert [each["name"] for each in found["queues"]] == ["b-1", "b-2"]


async def test_lists_show_depths_if_asked(client: httpx.AsyncClient, app: Application, work: str) -> None:
    await app.state.operations.queues.create("empty", QueueAttributes())
    await app.state.operations.topics.create("news", TopicAttributes())
    for body in ("a", "b"):
        await client.post(f"{work}/messages", json={"body": body, "delaySeconds": 60})
    empty, deep = (await client.get("/v1/queues?depth=true&limit=100")).json()["queues"]
    assert (empty["depth"], empty["oldestTime"]) == ({"count": 0, "atLeast": False}, None)
    assert (deep["depth"], bool(deep["oldestTime"])) == ({"count": 2, "atLeast": False}, True)
    assert (await client.get("/v1/queues")).json()["queues"][1]["depth"] is None
    assert (await client.get("/v1/topics?depth=true")).json()["topics"][0]["depth"]["count"] == 0
    for number in range(101):
        await app.state.operations.queues.create(f"q{number}", QueueAttributes())
    assert_problem(await client.get("/v1/queues?depth=true&limit=101"), 400, "InvalidArgument")


async def test_topics_are_listed_and_published_to(client: httpx.AsyncClient, app: Application) -> None:
    await app.state.operations.topics.create("orders", TopicAttributes())
    assert [each["name"] for each in (await client.get("/v1/topics")).json()["topics"]] == ["orders"]
    assert (await client.post("/v1/topics/orders/messages", json={"body": "hello", "tag": "paid"})).status_code == 201
    shown = (await client.get("/v1/topics/orders")).json()
    assert (shown["subscriptions"], shown["undelivered"]) == ([], 0)


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("GET", "/v1/queues/none", None, 404, "QueueNotExist"),
        ("GET", "/v1/queues/none/messages", None, 404, "QueueNotExist"),
        ("POST", "/v1/queues/none/messages", {"body": "x"}, 404, "QueueNotExist"),
        ("POST", "/v1/queues/none/purge", None, 404, "QueueNotExist"),
        ("GET", "/v1/queues/a_b", None, 400, "InvalidArgument"),
        ("GET", "/v1/queues/work/messages?limit=17", None, 400, "InvalidArgument"),
        ("POST", "/v1/queues/work/messages", {}, 400, "MissingRequiredParams"),
        ("POST", "/v1/queues/work/messages", {"body": ""}, 400, "InvalidArgument"),
        ("POST", "/v1/queues/work/messages", {"body": "x", "delaySeconds": 10**9}, 400, "InvalidArgument"),
        ("GET", "/v1/topics/none", None, 404, "TopicNotExist"),
        ("POST", "/v1/topics/none/messages", {"body": "x"}, 404, "TopicNotExist"),
    ],
)
@pytest.mark.usefixtures("work")
async def test_refusals(
    client: httpx.AsyncClient, method: str, path: str, body: dict | None, status: int, code: str
) -> None:
    assert_problem(await client.request(method, path, json=body), status, code)
