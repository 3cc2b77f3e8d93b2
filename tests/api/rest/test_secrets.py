"""Secrets over REST: they are set, listed and deleted, and no reply shows a value."""

import httpx
import pytest

from flowserver.base.encryption import new_key
from flowserver.server import Application, create_app
from flowserver.settings import Settings
from tests.api.conftest import client_of
from tests.api.rest.conftest import assert_problem

URL = "http://127.0.0.1:9000/charge"
VALUE = "hunter2-hunter2"


@pytest.fixture
def app(sqlite_url: str) -> Application:
    """The application with a key; it is not running yet."""
    return create_app(Settings(database_url=sqlite_url, drain_seconds=0, secrets_key=[new_key()]))


async def test_set_list_replace_delete(client: httpx.AsyncClient) -> None:
    first = await client.put("/v1/secrets/SHOP", json={"value": VALUE})
    shown = first.json()
    assert (first.status_code, shown) == (201, {**shown, "name": "SHOP", "usedBy": []})
    assert (await client.put("/v1/secrets/SHOP", json={"value": f"{VALUE}2"})).status_code == 200
    await client.put("/v1/secrets/OTHER", json={"value": VALUE})
    listed = (await client.get("/v1/secrets", params={"limit": 1})).json()
    assert [each["name"] for each in listed["secrets"]] == ["OTHER"]
    rest = await client.get("/v1/secrets", params={"nextToken": listed["nextToken"]})
    assert [each["name"] for each in rest.json()["secrets"]] == ["SHOP"]
    one = await client.get("/v1/secrets/SHOP")
    assert one.json()["createdTime"] == shown["createdTime"]
    assert VALUE not in first.text + rest.text + one.text
    assert (await client.delete("/v1/secrets/SHOP")).status_code == 204
    for method in ("GET", "DELETE"):
        assert_problem(await client.request(method, "/v1/secrets/SHOP"), 404, "SecretNotExists")


@pytest.mark.parametrize("value", ["", " x", "x\n", "é", "x\x00", "x" * 8_193, 12, ["hunter2"]])
async def test_a_refused_value_is_not_repeated(client: httpx.AsyncClient, value: object) -> None:
    problem = assert_problem(await client.put("/v1/secrets/SHOP", json={"value": value}), 400, "InvalidArgument")
    assert "hunter2" not in str(problem)
    assert "value" in problem["detail"]


async def test_a_secret_in_use_is_deleted_by_force_alone(client: httpx.AsyncClient) -> None:
    await client.put("/v1/secrets/SHOP", json={"value": VALUE})
    await client.put("/v1/secrets/shop", json={"value": VALUE})
    wanted = {"url": f"{URL}?k=${{secret:SHOP}}", "headers": {"Authorization": "Bearer ${secret:SHOP}"}}
    put = await client.put("/v1/functions/shop/charge", json=wanted)
    assert (put.json()["url"], put.json()["headers"]) == (wanted["url"], wanted["headers"])
    assert put.json()["warnings"] == []
    await client.put("/v1/functions/-/hooked", json={"url": URL, "initializeUrl": f"{URL}/${{secret:SHOP}}"})
    users = [{"kind": "function", "name": "-/hooked"}, {"kind": "function", "name": "shop/charge"}]
    listed = (await client.get("/v1/secrets")).json()["secrets"]
    assert [(each["name"], each["usedBy"]) for each in listed] == [("SHOP", users), ("shop", [])]
    problem = assert_problem(await client.delete("/v1/secrets/SHOP"), 409, "SecretInUse")
    assert problem["detail"].startswith("the function -/hooked and 1 more refer to the secret SHOP")
    assert (await client.delete("/v1/secrets/SHOP", params={"force": "true"})).status_code == 204
    again = await client.put("/v1/functions/shop/charge", json=wanted)
    [warning] = again.json()["warnings"]
    assert (warning["id"], warning["severity"]) == ("unknown-secret", "warning")
    assert "the secret SHOP does not exist" in warning["message"]


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ({"url": "http://${secret:HOST}/"}, "url may refer to secrets in its path and query only"),
        ({"url": f"{URL}/${{secret:a b}}"}, "url refers to a secret in the wrong way"),
        ({"url": f"{URL}/${{secret:1}}"}, "url refers to a secret in the wrong way: write ${secret:NAME}"),
        ({"url": URL, "preStopUrl": f"{URL}/${{secret:"}, "preStopUrl refers to a secret in the wrong way"),
        ({"url": URL, "headers": {"X-Key": "${secret:"}}, "the value of header X-Key refers to a secret in the wrong"),
    ],
)
async def test_where_a_function_may_refer_to_secrets(
    client: httpx.AsyncClient, wanted: dict[str, object], reason: str
) -> None:
    problem = assert_problem(await client.put("/v1/functions/shop/charge", json=wanted), 400, "InvalidArgument")
    assert reason in problem["detail"]


async def test_without_a_key_no_secret_can_be_set(sqlite_url: str) -> None:
    app = create_app(Settings(database_url=sqlite_url, drain_seconds=0))
    async with app.router.lifespan_context(app), client_of(app) as client:
        refused = await client.put("/v1/secrets/SHOP", json={"value": VALUE})
        detail = assert_problem(refused, 409, "SecretsKeyMissing")["detail"]
        assert "flowserver secrets new-key" in detail
        assert (await client.get("/v1/secrets")).json() == {"secrets": [], "nextToken": None}


async def test_only_functions_refer_to_secrets(client: httpx.AsyncClient) -> None:
    await client.put("/v1/functions/shop/charge", json={"url": URL})
    configuration = {"destinationConfig": {"onSuccess": {"destination": f"{URL}?k=${{secret:SHOP}}"}}}
    path = "/2016-08-15/services/shop/functions/charge/async-invoke-config"
    refused = await client.put(path, json=configuration)
    assert (refused.status_code, "cannot refer to secrets" in refused.text) == (400, True)
