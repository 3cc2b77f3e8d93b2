"""Asynchronous invocations over the wire: submitted, read, listed, stopped, and their results."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from flowserver.server import Application
from tests.api.fc.conftest import INVOKE, refused
from tests.engine.called_functions import PATIENCE_SECONDS, Functions

ASYNC = {"X-Fc-Invocation-Type": "Async"}
TASKS = INVOKE.replace("/invocations", "/stateful-async-invocations")
CONFIG = INVOKE.replace("/invocations", "/async-invoke-config")
FUNCTIONS = "/2016-08-15/stateful-async-invocation-functions"


@pytest.fixture
async def functions(client: httpx.AsyncClient, app: Application) -> AsyncIterator[Functions]:
    """The functions' server, where `shop/pay` is registered; calls wait until a test answers."""
    server = Functions()
    await server.start()
    await app.state.operations.functions.put("shop", "pay", url=server.url("shop/pay"), headers={}, timeout_seconds=60)
    yield server
    await server.stop()


async def submit(client: httpx.AsyncClient, name: str | None = None, event: str = "{}", path: str = INVOKE) -> str:
    """The id of a new invocation."""
    headers = ASYNC if name is None else ASYNC | {"X-Fc-Stateful-Async-Invocation-Id": name}
    reply = await client.post(path, content=event, headers=headers)
    assert (reply.status_code, reply.content) == (202, b""), reply.text
    return reply.headers["x-fc-stateful-async-invocation-id"]


async def shown(client: httpx.AsyncClient, name: str) -> dict:
    reply = await client.get(f"{TASKS}/{name}")
    assert reply.status_code == 200, reply.text
    return reply.json()


async def ended(client: httpx.AsyncClient, name: str) -> dict:
    """The invocation once it has ended, found by polling."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (found := await shown(client, name))["endTime"] == 0:
            pass
        return found


def statuses(found: dict) -> list[str]:
    return [event["status"] for event in found["events"]]


async def test_from_submission_to_success(client: httpx.AsyncClient, functions: Functions) -> None:
    reply = await client.post(INVOKE, content='{"n": 1}', headers=ASYNC)
    assert (reply.status_code, reply.content) == (202, b"")
    request_id = reply.headers["x-fc-request-id"]
    name = reply.headers["x-fc-stateful-async-invocation-id"]
    assert name == request_id
    call = await functions.next_call("shop/pay")
    assert (call.event, call.headers["X-Fc-Request-Id"]) == ({"n": 1}, request_id)
    running = await shown(client, name)
    assert (running["status"], running["endTime"]) == ("Running", 0)
    assert statuses(running) == ["Enqueued", "Dequeued", "Running"]
    call.reply({"paid": True})
    done = await ended(client, name)
    assert done["returnPayload"] == '{"paid": true}'
    assert done["events"][3] == {
        "eventId": 4,
        "status": "Succeeded",
        "timestamp": done["endTime"],
        "eventDetail": "",
    }
    assert [event["timestamp"] for event in done["events"]] == sorted(event["timestamp"] for event in done["events"])
    assert (
        done.items()
        >= {
            "serviceName": "shop",
            "functionName": "pay",
            "qualifier": "LATEST",
            "invocationId": name,
            "status": "Succeeded",
            "startedTime": done["events"][0]["timestamp"],
            "requestId": request_id,
            "alreadyRetriedTimes": 0,
            "invocationErrorMessage": "",
            "invocationPayload": '{"n": 1}',
        }.items()
    )


async def reached(client: httpx.AsyncClient, name: str, status: str) -> dict:
    """The invocation once a poll shows this state."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (found := await shown(client, name))["status"] != status:
            pass
        return found


async def register(app: Application, functions: Functions, **bounds: Any) -> None:
    url = functions.url("shop/pay")
    await app.state.operations.functions.put("shop", "pay", url=url, headers={}, timeout_seconds=60, **bounds)


async def test_every_state_is_visible_to_polls(
    client: httpx.AsyncClient, app: Application, functions: Functions
) -> None:
    hooks = {"initialize_url": functions.url("init"), "pre_stop_url": functions.url("pre-stop")}
    await register(app, functions, concurrency_max=1, **hooks)
    first, second = await submit(client, "first"), await submit(client, "second")
    await reached(client, first, "Dequeued")  # its turn has come, and the initializer runs
    assert (await shown(client, second))["status"] == "Enqueued"
    (await functions.next_call("init")).reply()
    await reached(client, first, "Running")
    (await functions.next_call("shop/pay")).fail("KeyError")
    retrying = await reached(client, first, "Retrying")
    assert (retrying["alreadyRetriedTimes"], retrying["endTime"]) == (0, 0)
    await reached(client, second, "Running")
    assert (await client.put(f"{TASKS}/{second}")).status_code == 200
    await reached(client, second, "Stopping")
    (await functions.next_call("pre-stop")).reply()
    stopped = await reached(client, second, "Stopped")
    assert statuses(stopped) == ["Enqueued", "Dequeued", "Running", "Stopping", "Stopped"]
    assert 0 <= stopped["durationMs"] <= stopped["endTime"] - stopped["startedTime"]
    while (call := await functions.next_call("shop/pay")).headers["X-Fc-Stateful-Async-Invocation-Id"] != first:
        pass
    call.reply({"paid": True})
    succeeded = await reached(client, first, "Succeeded")
    assert (succeeded["alreadyRetriedTimes"], statuses(succeeded)[-3:]) == (1, ["Retrying", "Running", "Succeeded"])


async def test_states_without_a_call_are_visible_as_well(
    client: httpx.AsyncClient, app: Application, functions: Functions
) -> None:
    await client.put(CONFIG, json={"maxAsyncRetryAttempts": 0, "maxAsyncEventAgeInSeconds": 1})
    await register(app, functions, concurrency_max=1)
    failed = await submit(client, "failed")
    call = await functions.next_call("shop/pay")
    late = await submit(client, "late")
    submitted_at = (await shown(client, late))["startedTime"]
    while app.state.clock.now_ms() <= submitted_at + 1_000:  # the age at which it expires
        await shown(client, late)
    call.fail("KeyError")
    assert (await reached(client, failed, "Failed"))["durationMs"] > 0
    assert statuses(await reached(client, late, "Expired")) == ["Enqueued", "Dequeued", "Expired"]
    running = await submit(client, "running")
    call = await functions.next_call("shop/pay")
    orphan = await submit(client, "orphan")
    await app.state.operations.functions.delete("shop", "pay")
    call.reply()
    await reached(client, running, "Succeeded")
    assert statuses(await reached(client, orphan, "Invalid")) == ["Enqueued", "Dequeued", "Invalid"]


async def test_an_id_names_one_invocation_of_a_function(client: httpx.AsyncClient, functions: Functions) -> None:
    functions.echo("shop/pay")
    assert await submit(client, "task-1") == "task-1"
    await ended(client, "task-1")
    again = await client.post(INVOKE, headers=ASYNC | {"X-Fc-Stateful-Async-Invocation-Id": "task-1"})
    refused(again, 409, "StatefulAsyncInvocationAlreadyExists")
    assert len(functions.calls) == 1


async def test_a_function_that_fails(client: httpx.AsyncClient, functions: Functions) -> None:
    functions.scripts["shop/pay"] = lambda call: call.fail("CardDeclined")
    await client.put(CONFIG, json={"maxAsyncRetryAttempts": 1})
    failed = await ended(client, await submit(client))
    assert statuses(failed) == ["Enqueued", "Dequeued", "Running", "Retrying", "Running", "Failed"]
    assert (failed["status"], failed["alreadyRetriedTimes"]) == ("Failed", 1)
    assert failed["invocationErrorMessage"] == "UnhandledInvocationError"
    assert json.loads(failed["returnPayload"])["errorType"] == "CardDeclined"
    assert json.loads(failed["events"][-1]["eventDetail"]) == {"Error": "UnhandledInvocationError"}


async def test_stopped_while_the_function_works(client: httpx.AsyncClient, functions: Functions) -> None:
    name = await submit(client, "task-1")
    call = await functions.next_call("shop/pay")
    stopped = await client.put(f"{TASKS}/{name}")
    assert (stopped.status_code, stopped.json()) == (200, {})
    async with asyncio.timeout(PATIENCE_SECONDS):
        await call.gone.wait()
    found = await ended(client, name)
    assert statuses(found) == ["Enqueued", "Dequeued", "Running", "Stopping", "Stopped"]
    assert found["invocationErrorMessage"] == "the invocation was stopped"
    assert "ended" in refused(await client.put(f"{TASKS}/{name}"), 400, "InvalidArgument")


async def test_invocations_that_do_not_exist(client: httpx.AsyncClient, functions: Functions) -> None:
    for method in ("GET", "PUT"):
        refused(await client.request(method, f"{TASKS}/none"), 404, "StatefulAsyncInvocationNotFound")
    for path, code in (("none/functions/pay", "ServiceNotFound"), ("shop/functions/none", "FunctionNotFound")):
        reply = await client.post(f"/2016-08-15/services/{path}/invocations", headers=ASYNC)
        refused(reply, 404, code)


@pytest.mark.parametrize("name", ["1task", "a b", "a/b", "x" * 129])
async def test_invalid_ids(client: httpx.AsyncClient, functions: Functions, name: str) -> None:
    reply = await client.post(INVOKE, headers=ASYNC | {"X-Fc-Stateful-Async-Invocation-Id": name})
    refused(reply, 400, "InvalidArgument")


async def test_a_payload_has_at_most_128_kibibytes(client: httpx.AsyncClient, functions: Functions) -> None:
    functions.echo("shop/pay")
    event = json.dumps("x" * (131_072 - 2))
    name = await submit(client, event=event)
    assert (await shown(client, name))["invocationPayload"] == event
    assert "131072" in refused(await client.post(INVOKE, content=f"{event} ", headers=ASYNC), 400, "EntityTooLarge")
    await ended(client, name)


async def test_lists(client: httpx.AsyncClient, functions: Functions) -> None:
    functions.echo("shop/pay")
    for name in ("a-1", "b-1", "a-2"):
        await ended(client, await submit(client, name, event=json.dumps(name)))
    functions.scripts.clear()
    await submit(client, "a-3", path=INVOKE.replace("shop", "shop.prod"))
    await functions.next_call("shop/pay")

    async def listed(base: str = TASKS, **query: object) -> list[str]:
        reply = await client.get(base, params=query)
        assert reply.status_code == 200, reply.text
        return [item["invocationId"] for item in reply.json()["invocations"]]

    everything = await listed()
    assert sorted(everything) == ["a-1", "a-2", "a-3", "b-1"]
    assert await listed(sortOrderByTime="asc") == everything[::-1]
    assert await listed(status="Running") == ["a-3"]
    assert sorted(await listed(status="Succeeded")) == ["a-1", "a-2", "b-1"]
    assert sorted(await listed(invocationIdPrefix="a-")) == ["a-1", "a-2", "a-3"]
    assert await listed(TASKS.replace("shop", "shop.prod")) == ["a-3"]
    assert sorted(await listed(TASKS.replace("shop", "shop.LATEST"))) == ["a-1", "a-2", "b-1"]
    assert await listed(TASKS.replace("pay", "other")) == []
    first = await shown(client, "a-1")
    last = await shown(client, "a-3")
    assert "a-3" not in await listed(startedTimeEnd=last["startedTime"] - 1)
    assert "a-1" not in await listed(startedTimeBegin=first["startedTime"] + 1)
    assert await listed(startedTimeBegin=first["startedTime"], startedTimeEnd=last["startedTime"]) == everything


async def test_pages(client: httpx.AsyncClient, functions: Functions) -> None:
    functions.echo("shop/pay")
    names = [await submit(client, f"t-{number}") for number in range(5)]
    for more in ({}, {"sortOrderByTime": "asc"}, {"invocationIdPrefix": "t-"}):
        seen: list[str] = []
        query: dict[str, object] = {"limit": 2, **more}
        sizes = []
        while True:
            page = (await client.get(TASKS, params=query)).json()
            sizes.append(len(page["invocations"]))
            seen += [item["invocationId"] for item in page["invocations"]]
            if "nextToken" not in page:
                break
            query["nextToken"] = page["nextToken"]
        assert (sorted(seen), sizes) == (names, [2, 2, 1])


async def test_payloads_are_listed_on_request(client: httpx.AsyncClient, functions: Functions) -> None:
    functions.echo("shop/pay")
    await ended(client, await submit(client, event='"e"'))
    for query, payload in ({}, None), ({"includePayload": "false"}, None), ({"includePayload": "true"}, '"e"'):
        [item] = (await client.get(TASKS, params=query)).json()["invocations"]
        assert (item.get("invocationPayload"), "returnPayload" in item) == (payload, False)


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=101",
        "status=Odd",
        "sortOrderByTime=up",
        "includePayload=maybe",
        "startedTimeBegin=soon",
        "nextToken=x",
        "nextToken=" + quote("WzEsMl0="),
        "nextToken=%FF",
    ],
)
async def test_invalid_lists(client: httpx.AsyncClient, query: str) -> None:
    refused(await client.get(f"{TASKS}?{query}"), 400, "InvalidArgument")


async def test_functions_that_have_invocations(
    client: httpx.AsyncClient, app: Application, functions: Functions
) -> None:
    functions.echo("pay")
    for service, function in (("shop", "refund"), ("-", "pay"), ("bank", "pay")):
        await app.state.operations.functions.put(
            service, function, url=functions.url("pay"), headers={}, timeout_seconds=60
        )
        await submit(client, path=f"/2016-08-15/services/{service}/functions/{function}/invocations")
    seen: list[str] = []
    query: dict[str, object] = {"limit": 2}
    while True:
        page = (await client.get(FUNCTIONS, params=query)).json()
        seen += [f"{item['serviceName']}/{item['functionName']}" for item in page["data"]]
        if "nextToken" not in page:
            break
        query["nextToken"] = page["nextToken"]
    assert seen == ["-/pay", "bank/pay", "shop/refund"]


async def test_a_configured_destination_receives_the_end(
    client: httpx.AsyncClient, app: Application, functions: Functions
) -> None:
    functions.echo("shop/pay")
    put = app.state.operations.functions.put
    await put("shop", "told", url=functions.url("shop/told"), headers={}, timeout_seconds=60)
    target = "acs:fc:::services/shop/functions/told"
    await client.put(CONFIG, json={"destinationConfig": {"onSuccess": {"destination": target}}})
    name = await submit(client, event='{"n": 1}')
    told = await functions.next_call("shop/told")
    told.reply()
    assert told.event["requestContext"]["requestId"] == name
    assert told.event["requestContext"]["functionArn"] == "acs:fc:::services/shop.LATEST/functions/pay"
    assert (told.event["requestPayload"], told.event["responsePayload"]) == ({"n": 1}, {"n": 1})


async def test_a_function_without_a_service_has_one_spelling(client: httpx.AsyncClient, functions: Functions) -> None:
    url = functions.url("echo")
    registered = await client.put("/v1/functions/-/echo", json={"url": url})
    assert registered.json()["service"] == "-"
    invocations = "/2016-08-15/services/-/functions/echo"
    headers = {"x-fc-invocation-type": "Async", "x-fc-stateful-async-invocation-id": "one"}
    assert (await client.post(f"{invocations}/invocations", headers=headers)).status_code == 202
    shown = (await client.get(f"{invocations}/stateful-async-invocations/one")).json()
    assert shown["serviceName"] == "-"
    listed = (await client.get("/2016-08-15/stateful-async-invocation-functions")).json()
    assert [each["serviceName"] for each in listed["data"]] == ["-"]
