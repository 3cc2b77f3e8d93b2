"""One access key holds a part of the waiting requests only: others still find a place."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import httpx
import pytest

from flowserver.operations.access import make_access_key
from flowserver.operations.held_requests import HeldRequests
from flowserver.server import Application, create_app
from flowserver.settings import Settings
from flowserver.store.access_keys import insert_access_key
from tests.api.conftest import client_of
from tests.api.rest.conftest import WAIT

PLACES = 2


@pytest.fixture
async def keyed(sqlite_url: str) -> AsyncIterator[tuple[Application, httpx.AsyncClient, list[dict[str, str]]]]:
    """A server on which a key has PLACES, with a running execution `w/e` and an empty queue; headers of two keys."""
    app = create_app(Settings(database_url=sqlite_url, drain_seconds=0))
    keys = [make_access_key(name, 0) for name in ("first", "second")]
    async with app.router.lifespan_context(app), client_of(app) as client:
        for each in keys:
            await app.state.engine.committer.write(lambda connection, key=each.key: insert_access_key(connection, key))
        headers = [{"Authorization": f"Bearer {each.token}"} for each in keys]
        await client.put("/v1/flows/w", json={"definition": WAIT}, headers=headers[0])
        await client.post("/v1/flows/w/executions", json={"name": "e"}, headers=headers[0])
        await client.put("/queues/q", headers=headers[0])
        app.state.operations.live_histories.held._per_key_max = PLACES
        yield app, client, headers


async def waiting(held: HeldRequests, count: int) -> None:
    """Return once so many requests wait."""
    async with asyncio.timeout(60):
        while held._held.total() != count:  # noqa: ASYNC110 - the server tells its callers nothing of this
            await asyncio.sleep(0)


async def test_a_key_that_holds_its_places_is_refused_and_another_is_served(
    keyed: tuple[Application, httpx.AsyncClient, list[dict[str, str]]],
) -> None:
    app, client, (first, second) = keyed
    held: HeldRequests = app.state.operations.live_histories.held
    poll = "/queues/q/messages?waitseconds=30"
    async with AsyncExitStack() as stack:
        polls = [asyncio.create_task(client.get(poll, headers=first)) for _ in range(PLACES)]
        stack.callback(lambda: [each.cancel() for each in polls])
        await waiting(held, PLACES)
        for path in (poll, "/v1/flows/w/executions/e/events/stream"):
            refused = await client.get(path, headers=first)
            assert (refused.status_code, refused.headers["Retry-After"]) == (429, "1"), refused.text
            assert f"{PLACES} requests of this access key wait" in refused.text
        shown = await client.get("/v1/flows/w/executions/e?wait=60", headers=first)
        assert shown.json()["status"] == "Running"  # answered at once
        other = asyncio.create_task(client.get(poll, headers=second))
        await waiting(held, PLACES + 1)
        await client.post(
            "/queues/q/messages", content="<Message><MessageBody>x</MessageBody></Message>", headers=second
        )
        assert (await next(asyncio.as_completed([*polls, other]))).status_code == 200
    await asyncio.gather(*polls, return_exceptions=True)
    other.cancel()
    await asyncio.gather(other, return_exceptions=True)
    await waiting(held, 0)


async def test_a_stream_gives_its_place_back(
    keyed: tuple[Application, httpx.AsyncClient, list[dict[str, str]]],
) -> None:
    app, client, (first, _) = keyed
    held: HeldRequests = app.state.operations.live_histories.held
    path = "/v1/flows/w/executions/e/events/stream"
    for _ in range(PLACES + 1):
        stream = asyncio.create_task(client.get(path, headers=first))
        await waiting(held, 1)
        stream.cancel()
        await asyncio.gather(stream, return_exceptions=True)
        await waiting(held, 0)
    stream = asyncio.create_task(client.get(path, headers=first))
    await waiting(held, 1)
    await client.post("/v1/flows/w/executions/e/stop", headers=first)
    assert (await stream).status_code == 200
    await waiting(held, 0)


def test_callers_without_a_key_are_not_counted_against_each_other() -> None:
    held = HeldRequests(1)
    places = [held.take() for _ in range(3)]
    for place in places:
        place.release()
    assert not held._held
