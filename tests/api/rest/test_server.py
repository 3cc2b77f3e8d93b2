"""The server about itself: permissions, nodes, keys, and the health of functions."""

import httpx

from flowserver import __version__
from flowserver.operations.access import make_access_key
from flowserver.operations.permissions import PERMISSIONS
from flowserver.server import Application
from flowserver.store.access_keys import disable_access_key, insert_access_key
from tests.api.rest.conftest import assert_problem, put_callback_flow, submitted_token
from tests.invokers.wire_server import WireServer


async def test_an_open_server_permits_everything(client: httpx.AsyncClient) -> None:
    shown = (await client.get("/v1/permissions")).json()
    assert shown == {"key": None, "open": True, "role": "admin", "flows": "", "may": list(PERMISSIONS)}
    assert "executions.start" in shown["may"]


async def test_a_caller_learns_the_label_of_its_key(token: str, client: httpx.AsyncClient) -> None:
    assert_problem(await client.get("/v1/permissions"), 401, "AccessDenied")
    assert_problem(await client.get("/v1/keys"), 401, "AccessDenied")
    client.headers["Authorization"] = f"Bearer {token}"
    shown = (await client.get("/v1/permissions")).json()
    assert (shown["key"], shown["open"], shown["role"]) == ("tests", False, "admin")


async def test_keys_are_listed_without_secrets(token: str, client: httpx.AsyncClient, app: Application) -> None:
    client.headers["Authorization"] = f"Bearer {token}"
    made = [
        make_access_key("<b>deploy</b>", 1_000, role="deployer", flows="order-", expires_at=3_000),
        make_access_key("old", 1_001),
    ]
    with app.state.engine.database.write() as connection:
        for each in made:
            insert_access_key(connection, each.key)
        disable_access_key(connection, made[1].key.access_key_id, 2_000)
    found, path = [], "/v1/keys?limit=2"
    while True:
        page = (await client.get(path)).json()
        found += page["keys"]
        if page["nextToken"] is None:
            break
        path = f"/v1/keys?limit=2&nextToken={page['nextToken']}"
    assert found[0]["label"] == "tests"
    assert {each["label"]: each["disabledTime"] for each in found[1:]} == {
        "<b>deploy</b>": None,
        "old": "1970-01-01T00:00:02.000Z",
    }
    instants = {"createdTime", "expiresTime", "lastUsedTime", "disabledTime"}
    assert all(set(each) == {"id", "label", "role", "flows", *instants} for each in found)
    assert [(each["role"], each["flows"], each["expiresTime"]) for each in found] == [
        ("admin", "", None),
        ("deployer", "order-", "1970-01-01T00:00:03.000Z"),
        ("admin", "", None),
    ]
    assert_problem(await client.get("/v1/keys?nextToken=x/y"), 400, "InvalidArgument")


async def test_nodes_are_listed(client: httpx.AsyncClient) -> None:
    shown = (await client.get("/v1/nodes")).json()
    [node] = shown["nodes"]
    assert (shown["thisNode"], shown["version"], node["leaving"]) == (node["id"], __version__, False)
    assert node["startedTime"] <= node["heartbeatTime"]


async def test_the_health_of_functions(client: httpx.AsyncClient, app: Application, functions: WireServer) -> None:
    assert (await client.get("/v1/functions/health")).json()["functions"] == []
    await put_callback_flow(client, functions)
    await client.put("/v1/functions/-/other", json={"url": functions.url})
    await client.post("/v1/flows/ask/executions", json={"name": "run"})
    assert await submitted_token(app)
    page = (await client.get("/v1/functions/health")).json()
    [health] = page["functions"]
    assert (health["service"], health["function"], health["calls"], health["errors"]) == ("shop", "ask", 1, 0)
    assert health["p50Ms"] > 0
    one = (await client.get("/v1/functions/shop/ask/health")).json()
    assert one == {**health, **{each: page[each] for each in ("node", "sinceTime", "windowSeconds")}}
    unused = (await client.get("/v1/functions/-/other/health")).json()
    assert (unused["service"], unused["calls"], unused["p99Ms"]) == ("-", 0, None)
    assert_problem(await client.get("/v1/functions/shop/none/health"), 404, "FunctionNotExists")
