"""Configurations of asynchronous invocations, over the wire."""

import httpx
import pytest

from flowserver.server import Application
from tests.api.fc.conftest import refused
from tests.invokers.wire_server import WireServer

CONFIG = "/2016-08-15/services/shop/functions/pay/async-invoke-config"
QUEUE = "acs:mns:cn-hangzhou:123:/queues/done/messages"
FUNCTION = "acs:fc:cn-hangzhou:123:services/shop.prod/functions/failed"
WHOLE = {
    "destinationConfig": {"onSuccess": {"destination": QUEUE}, "onFailure": {"destination": FUNCTION}},
    "maxAsyncEventAgeInSeconds": 604_800,
    "maxAsyncRetryAttempts": 8,
    "statefulInvocation": True,
}


async def test_put_get_replace_delete(client: httpx.AsyncClient, pay: WireServer) -> None:
    put = await client.put(CONFIG, json=WHOLE)
    shown = put.json()
    assert put.status_code == 200
    times = {name: shown[name] for name in ("createdTime", "lastModifiedTime")}
    assert shown == {"service": "shop", "function": "pay", "qualifier": "", **times, **WHOLE}
    assert (await client.get(CONFIG)).json() == shown
    assert (await client.put(CONFIG, json=shown | {"statefulInvocation": None})).json().keys() == (
        shown.keys() - {"statefulInvocation"}
    )
    assert (await client.put(CONFIG, json={})).json().keys() == {"service", "function", "qualifier", *times}
    gone = await client.delete(CONFIG)
    assert (gone.status_code, gone.content) == (204, b"")
    for method in ("GET", "DELETE"):
        message = refused(await client.request(method, CONFIG), 404, "AsyncConfigNotExists")
        assert "function 'pay' in service 'shop'" in message


async def test_each_qualifier_has_its_own(client: httpx.AsyncClient, pay: WireServer) -> None:
    for number, qualifier in enumerate((".LATEST", "", ".prod", ".2")):
        path = CONFIG.replace("shop", f"shop{qualifier}")
        put = await client.put(path, json={"maxAsyncRetryAttempts": number})
        assert put.json()["qualifier"] == qualifier.removeprefix(".")
        assert (await client.get(path)).json()["maxAsyncRetryAttempts"] == number
    seen: list[str] = []
    query: dict[str, object] = {"limit": 3}
    while True:
        page = (await client.get(f"{CONFIG}s", params=query)).json()
        seen += [config["qualifier"] for config in page["configs"]]
        if "nextToken" not in page:
            break
        assert page["nextToken"] == "prod"
        query["nextToken"] = page["nextToken"]
    assert seen == ["", "2", "LATEST", "prod"]


async def test_a_function_without_any_has_an_empty_list(client: httpx.AsyncClient) -> None:
    assert (await client.get(f"{CONFIG}s")).json() == {"configs": []}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ([], "a JSON object"),
        ({"maxAsyncRetryAttempts": 9}, "maxAsyncRetryAttempts must be a whole number from 0 to 8"),
        ({"maxAsyncRetryAttempts": True}, "maxAsyncRetryAttempts"),
        ({"maxAsyncRetryAttempts": "1"}, "maxAsyncRetryAttempts"),
        ({"maxAsyncEventAgeInSeconds": 0}, "maxAsyncEventAgeInSeconds"),
        ({"maxAsyncEventAgeInSeconds": 604_801}, "maxAsyncEventAgeInSeconds"),
        ({"statefulInvocation": "yes"}, "statefulInvocation"),
        ({"maxRetries": 1}, "maxRetries is not known"),
        ({"destinationConfig": []}, "destinationConfig"),
        ({"destinationConfig": {"onEnd": {}}}, "destinationConfig"),
        ({"destinationConfig": {"onSuccess": QUEUE}}, "onSuccess"),
        ({"destinationConfig": {"onSuccess": {"destination": 1}}}, "onSuccess"),
        ({"destinationConfig": {"onSuccess": {"destination": "acs:eventbridge:::bus"}}}, "onSuccess"),
        ({"destinationConfig": {"onFailure": {"destination": "http://169.254.169.254/"}}}, "onFailure is refused"),
    ],
)
async def test_invalid_configurations(client: httpx.AsyncClient, pay: WireServer, body: object, words: str) -> None:
    assert words in refused(await client.put(CONFIG, json=body), 400, "InvalidArgument")
    refused(await client.get(CONFIG), 404, "AsyncConfigNotExists")


@pytest.mark.parametrize("destination", [{}, None, {"destination": ""}])
async def test_no_destination(client: httpx.AsyncClient, pay: WireServer, destination: object) -> None:
    shown = (await client.put(CONFIG, json={"destinationConfig": {"onSuccess": destination}})).json()
    assert shown["destinationConfig"] == {}


@pytest.mark.parametrize("query", ["limit=0", "limit=101", "limit=x", "nextToken=%00", "a=1&" * 60])
async def test_invalid_pages(client: httpx.AsyncClient, query: str) -> None:
    refused(await client.get(f"{CONFIG}s?{query}"), 400, "InvalidArgument")


async def test_configurations_of_functions_that_are_not_registered(client: httpx.AsyncClient, app: Application) -> None:
    refused(await client.put(CONFIG, json={}), 404, "ServiceNotFound")
    refused(await client.get(f"{CONFIG.replace('shop', 'shop.prod')}s"), 400, "PathNotSupported")
