"""The registry of functions."""

import httpx
import pytest

from flowserver.server import Application, create_app
from flowserver.settings import Settings
from tests.api.conftest import client_of
from tests.api.rest.conftest import assert_problem

URL = "http://127.0.0.1:9000/charge"
MORE = {
    "initializeUrl": f"{URL}/initialize",
    "preStopUrl": f"{URL}/pre-stop",
    "hookSeconds": 90,
    "concurrencyMax": 1,
    "waitingMax": 0,
}
NO_MORE = dict.fromkeys(MORE)


async def test_put_get_delete(client: httpx.AsyncClient) -> None:
    wanted = {"url": URL, "timeoutSeconds": 30, "headers": {"Authorization": "Bearer x"}}
    first = await client.put("/v1/functions/shop/charge", json=wanted)
    assert first.status_code == 201
    shown = first.json()
    assert shown.pop("warnings") == []
    assert shown == {
        "service": "shop",
        "function": "charge",
        **wanted,
        "headers": {"Authorization": "(hidden)"},
        **NO_MORE,
        "createdTime": shown["createdTime"],
        "lastModifiedTime": shown["createdTime"],
    }
    assert (await client.get("/v1/functions/shop/charge")).json() == shown

    again = await client.put("/v1/functions/shop/charge", json={"url": f"{URL}2"})
    assert again.status_code == 200
    assert (again.json()["url"], again.json()["timeoutSeconds"], again.json()["headers"]) == (f"{URL}2", 600, {})
    assert again.json()["createdTime"] == shown["createdTime"]

    gone = await client.delete("/v1/functions/shop/charge")
    assert (gone.status_code, gone.content) == (204, b"")
    for method in ("GET", "DELETE"):
        assert_problem(await client.request(method, "/v1/functions/shop/charge"), 404, "FunctionNotExists")


SECRET = {"Authorization": "Bearer x", "X-Shop": "main"}


async def test_what_the_settings_refuse_is_a_warning(sqlite_url: str) -> None:
    """The registration is kept: another node, or the next start, may have other settings."""
    settings = Settings(
        database_url=sqlite_url,
        drain_seconds=0,
        private_functions=False,
        function_networks_allowed=["10.1.0.0/16"],
        function_networks_denied="8.8.0.0/16,*.test",
    )
    app = create_app(settings)
    urls = ("http://2130706433/", "http://[::ffff:10.0.0.1]/", "http://8.8.8.8/", "http://pay.test/")
    async with app.router.lifespan_context(app), client_of(app) as client:
        for url in urls:
            answer = await client.put("/v1/functions/shop/charge", json={"url": url})
            (found,) = answer.json()["warnings"]
            assert (found["id"], found["severity"]) == ("refused-address", "warning")
            assert found["message"].startswith("calls of this url will fail: the server does not call")
        good = {"url": "http://10.1.2.3/", "initializeUrl": "http://1.1.1.1/", "preStopUrl": "http://pay.example/"}
        assert (await client.put("/v1/functions/shop/charge", json=good)).json()["warnings"] == []
        hooks = good | {"initializeUrl": "http://10.2.3.4/", "preStopUrl": "http://127.0.0.1/"}
        query = {"dryRun": "true"}
        warned = (await client.put("/v1/functions/shop/charge", params=query, json=hooks)).json()["warnings"]
        assert [each["message"].split()[3] for each in warned] == ["initializeUrl", "preStopUrl"]

        # The calls themselves are refused, too, as the settings say.
        await client.put("/v1/functions/shop/charge", json={"url": "http://127.0.0.1:9/"})
        answer = await client.post("/2016-08-15/services/shop/functions/charge/invocations", content=b"{}")
        assert "the server does not call addresses of some networks" in answer.text


async def test_no_reply_shows_the_value_of_a_header(client: httpx.AsyncClient) -> None:
    wanted = {"url": URL, "headers": SECRET}
    replies = [
        await client.put("/v1/functions/shop/charge", params=query, json=wanted)
        for query in ({"dryRun": "true"}, {}, {"dryRun": "true"}, {})
    ]
    replies.append(await client.get("/v1/functions/shop/charge"))
    assert [reply.status_code for reply in replies] == [200, 201, 200, 200, 200]
    assert all(reply.json()["headers"] == {"Authorization": "(hidden)", "X-Shop": "(hidden)"} for reply in replies)
    replies.append(await client.get("/v1/functions"))
    assert not any("Bearer" in reply.text or "main" in reply.text for reply in replies)


async def test_a_hidden_value_that_is_sent_back_is_kept(client: httpx.AsyncClient, app: Application) -> None:
    """Also under a differently written name. A value that is not sent is removed."""
    await client.put("/v1/functions/shop/charge", json={"url": URL, "headers": SECRET})
    for headers, stored in (
        ({"Authorization": "(hidden)", "X-Shop": "other"}, {"Authorization": "Bearer x", "X-Shop": "other"}),
        ({"authorization": "(hidden)"}, {"authorization": "Bearer x"}),
    ):
        changed = {"url": f"{URL}/v2", "timeoutSeconds": 9, "headers": headers, "preStopUrl": f"{URL}/stop"}
        assert (await client.put("/v1/functions/shop/charge", json=changed)).status_code == 200
        row = await app.state.operations.functions.describe("shop", "charge")
        assert (row.headers, row.timeout_seconds) == (stored, 9)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"headers": {"X-New": "(hidden)"}}, "the value of header X-New is (hidden), but none is stored"),
        ({"url": "http://127.0.0.1:9001/charge"}, "kept only for the same scheme, host and port"),
        ({"url": "https://127.0.0.1:9000/charge"}, "kept only for the same scheme, host and port"),
        ({"initializeUrl": "http://elsewhere.example/"}, "kept only for the same scheme, host and port"),
        ({"preStopUrl": "http://elsewhere.example/"}, "kept only for the same scheme, host and port"),
    ],
)
async def test_a_hidden_value_is_not_sent_to_another_server(
    client: httpx.AsyncClient, changed: dict[str, object], reason: str
) -> None:
    await client.put("/v1/functions/shop/charge", json={"url": URL, "headers": SECRET})
    wanted = {"url": URL, "headers": {"Authorization": "(hidden)"}, **changed}
    for query in ({"dryRun": "true"}, {}):
        refused = await client.put("/v1/functions/shop/charge", params=query, json=wanted)
        assert_problem(refused, 400, "InvalidArgument")
        assert reason in refused.text
    new = await client.put("/v1/functions/shop/new", json={"url": URL, "headers": {"A": "(hidden)"}})
    assert_problem(new, 400, "InvalidArgument")


async def test_a_dry_run_reports_whether_anything_would_change(client: httpx.AsyncClient) -> None:
    stored = (await client.put("/v1/functions/shop/charge", json={"url": URL, "headers": SECRET})).json()
    for changed, is_same in (
        ({}, True),
        ({"headers": dict.fromkeys(SECRET, "(hidden)")}, True),
        ({"headers": SECRET | {"X-Shop": "side"}}, False),
        ({"headers": {}}, False),
        ({"timeoutSeconds": 5}, False),
    ):
        wanted = {"url": URL, "headers": SECRET, **changed}
        reply = await client.put("/v1/functions/shop/charge", params={"dryRun": "true"}, json=wanted)
        assert (reply.json()["lastModifiedTime"] == stored["lastModifiedTime"]) == is_same
        assert reply.json()["createdTime"] == stored["createdTime"]
    assert (await client.get("/v1/functions/shop/charge")).json() | {"warnings": []} == stored


async def test_hooks_and_limits_are_stored_and_removed(client: httpx.AsyncClient) -> None:
    for more in (MORE, {"concurrencyMax": 7}, {}):
        await client.put("/v1/functions/shop/charge", json={"url": URL, **more})
        shown = (await client.get("/v1/functions/shop/charge")).json()
        assert {name: shown[name] for name in MORE} == NO_MORE | more


async def test_a_service_may_have_a_qualifier_or_be_absent(client: httpx.AsyncClient) -> None:
    for service in ("-", "shop.prod", "shop.2"):
        response = await client.put(f"/v1/functions/{service}/charge", json={"url": URL})
        assert (response.status_code, response.json()["service"]) == (201, service)
        assert (await client.get(f"/v1/functions/{service}/charge")).json() | {"warnings": []} == response.json()


async def test_listing_is_by_service_and_name_in_pages(client: httpx.AsyncClient) -> None:
    titles = ["-/z", "a/a", "a/b", "a.prod/a", "b/a"]
    for title in reversed(titles):
        await client.put(f"/v1/functions/{title}", json={"url": URL})
    seen: list[str] = []
    query: dict[str, object] = {"limit": 2}
    while True:
        page = (await client.get("/v1/functions", params=query)).json()
        seen += [f"{function['service']}/{function['function']}" for function in page["functions"]]
        if page["nextToken"] is None:
            break
        query["nextToken"] = page["nextToken"]
    assert seen == titles


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "MissingRequiredParams"),
        ({"url": "ftp://127.0.0.1/"}, "InvalidArgument"),
        ({"url": "http://user:secret@127.0.0.1/"}, "InvalidArgument"),
        ({"url": "http://127.0.0.1/\r\nHost: x"}, "InvalidArgument"),
        ({"url": URL, "headers": {"Host": "x"}}, "InvalidArgument"),
        ({"url": URL, "headers": {"X-A": "a\r\nb"}}, "InvalidArgument"),
        ({"url": URL, "headers": {"X-A": 1}}, "InvalidArgument"),
        ({"url": URL, "timeoutSeconds": 0}, "InvalidArgument"),
        ({"url": URL, "method": "GET"}, "InvalidArgument"),
        ({"url": "http://169.254.169.254/latest"}, "InvalidArgument"),
        ({"url": "http://[::ffff:169.254.169.254]:80/"}, "InvalidArgument"),
        ({"url": "http://[fe80::1]/"}, "InvalidArgument"),
        ({"url": "http://0.0.0.0:9000/f"}, "InvalidArgument"),
        ({"url": URL, "initializeUrl": "ftp://127.0.0.1/"}, "InvalidArgument"),
        ({"url": URL, "preStopUrl": "http://user:secret@127.0.0.1/"}, "InvalidArgument"),
        ({"url": URL, "preStopUrl": "http://169.254.169.254/latest"}, "InvalidArgument"),
        ({"url": URL, "hookSeconds": 0}, "InvalidArgument"),
        ({"url": URL, "hookSeconds": 91}, "InvalidArgument"),
        ({"url": URL, "concurrencyMax": 0}, "InvalidArgument"),
        ({"url": URL, "waitingMax": -1}, "InvalidArgument"),
    ],
)
async def test_wrong_registrations(client: httpx.AsyncClient, body: dict, code: str) -> None:
    problem = assert_problem(await client.put("/v1/functions/shop/charge", json=body), 400, code)
    assert "secret" not in problem["detail"]
    assert (await client.get("/v1/functions")).json()["functions"] == []


@pytest.mark.parametrize("title", ["9/f", "s/9", "s./f", "s.a.b/f", "s/f%00", "%20/f", "中/f", "--/f"])
async def test_impossible_names(client: httpx.AsyncClient, title: str) -> None:
    for method in ("PUT", "GET", "DELETE"):
        response = await client.request(method, f"/v1/functions/{title}", json={"url": URL})
        assert_problem(response, 400, "InvalidArgument")


async def test_calls_go_where_the_registration_says(client: httpx.AsyncClient, waiting: str, functions) -> None:
    [request] = functions.requests
    assert request.startswith(b"POST /function HTTP/1.1")
    assert waiting.encode() in request
