"""Parked invocations: listed, shown, restarted, stopped."""

import httpx
import pytest

from flowserver.store.invocations.parking import park_invocation
from flowserver.store.invocations.rows import insert_invocations
from flowserver.store.sql.database import Database
from tests.api.rest.conftest import assert_problem
from tests.store.rows import invocation_row

OF = "/v1/functions/s/f/invocations"


@pytest.fixture
def parked(sqlite_url: str) -> None:
    """Three parked invocations of s/f; the server does not know the function."""
    database = Database(sqlite_url)
    with database.write() as connection:
        for key in ("a", "b", "c"):
            insert_invocations(connection, [invocation_row(key, invocation_id=f"id-{key}", step_name="pay")])
            park_invocation(connection, key, "node-1", "a bug")
    database.close()


@pytest.mark.usefixtures("parked")
async def test_they_are_listed_in_pages(client: httpx.AsyncClient) -> None:
    first = (await client.get("/v1/invocations/parked", params={"limit": 2})).json()
    assert [each["invocationId"] for each in first["invocations"]] == ["id-a", "id-b"]
    rest = (await client.get("/v1/invocations/parked", params={"nextToken": first["nextToken"]})).json()
    assert [each["invocationId"] for each in rest["invocations"]] == ["id-c"]
    assert rest["nextToken"] is None


@pytest.mark.usefixtures("parked")
async def test_one_is_shown_restarted_and_stopped(client: httpx.AsyncClient) -> None:
    shown = (await client.get(f"{OF}/id-a")).json()
    assert shown == {
        "service": "s",
        "qualifier": "",
        "function": "f",
        "invocationId": "id-a",
        "status": "Enqueued",
        "parkedError": "a bug",
        "createdTime": shown["createdTime"],
        "flow": None,
        "execution": None,
        "step": "pay",
    }
    fc = await client.get("/2016-08-15/services/s/functions/f/stateful-async-invocations/id-a")
    assert fc.json()["invocationErrorMessage"] == "parked: a bug"
    restarted = await client.post(f"{OF}/id-a/restart")
    assert (restarted.status_code, restarted.json()["parkedError"]) == (200, None)
    assert_problem(await client.post(f"{OF}/id-a/restart"), 409, "InvocationNotParked")
    stopped = await client.post(f"{OF}/id-b/stop")
    assert (stopped.json()["status"], stopped.json()["parkedError"]) == ("Stopped", None)
    assert_problem(await client.post(f"{OF}/id-b/stop"), 400, "InvalidArgument")


async def test_invocations_that_do_not_exist(client: httpx.AsyncClient) -> None:
    assert (await client.get("/v1/invocations/parked")).json() == {"invocations": [], "nextToken": None}
    for method, path in (("GET", f"{OF}/x"), ("POST", f"{OF}/x/stop"), ("POST", f"{OF}/x/restart")):
        assert_problem(await client.request(method, path), 404, "StatefulAsyncInvocationNotFound")
    assert_problem(await client.get("/v1/invocations/parked", params={"nextToken": "\0"}), 400, "InvalidArgument")


async def test_an_impossible_id_is_refused(client: httpx.AsyncClient) -> None:
    problem = assert_problem(await client.get(f"{OF}/%C2%84"), 400, "InvalidArgument")
    assert "must be 1-128 letters, digits, '_' or '-'" in problem["detail"]
