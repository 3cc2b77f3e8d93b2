"""What an attacker tries on every route of every API: pages of other sites, wrong credentials, SQL in texts."""

import re
from urllib.parse import quote

import httpx
import pytest

from flowserver.api.console import FOLDER, TYPES
from flowserver.api.fc.router import ROUTES as FC_ROUTES
from flowserver.api.mns.router import CALLS as MNS_CALLS
from flowserver.api.rpc.actions import ACTIONS
from flowserver.server import Application
from tests.api.rest.conftest import PASS
from tests.api.rest.conftest import token as token  # noqa: PLC0414  # a fixture
from tests.api.rest.test_access import PUBLIC, routes_of
from tests.fuzz.requests import PARAMETERS

BROWSER = {"Accept": "text/html,application/xhtml+xml"}
CREDENTIALS = (
    {},
    {"Authorization": "Bearer nothing"},
    {"Authorization": "Basic YTpi"},
    {"Authorization": "MNS nobody:x", "Date": "Tue, 24 Nov 2026 00:00:00 GMT"},
    {"Authorization": "FC nobody:x", "Date": "Tue, 24 Nov 2026 00:00:00 GMT"},
    {"Cookie": "token=x"},
)
SUFFIXES = ("", "/", "/healthz", "/readyz", "/configs", "?x=/healthz")
"""What has opened doors elsewhere: a check that looks at the end of a path."""

SQL = ("' OR '1'='1", "'; DROP TABLE flows; --", '") UNION SELECT secret FROM access_keys --')


def compatible_calls() -> list[tuple[str, str]]:
    """Method and path of every call of Function Compute's API and of the message service's."""
    calls = [(method, path.replace("*", "x")) for method, path in MNS_CALLS]
    for version in ("2016-08-15", "2021-04-06"):
        for method, pattern, *_ in FC_ROUTES:
            path = re.sub(r"\(\?P<\w+>.*?\)", "x", pattern)
            path = path if version == "2016-08-15" else path.replace("services/x/", "")
            calls.append((method, f"/{version}/{path}"))
    return calls


async def test_no_compatible_call_is_served_without_a_key(
    app: Application, token: str, client: httpx.AsyncClient
) -> None:
    for method, path in compatible_calls():
        for headers in CREDENTIALS:
            for suffix in SUFFIXES:
                answer = await client.request(method, path + suffix, headers=headers)
                assert 400 <= answer.status_code < 500, (method, path, suffix, headers, answer.text)
                assert token not in answer.text
    for action in ACTIONS:
        for headers in CREDENTIALS:
            answer = await client.post("/", data={"Action": action, "Version": "2019-03-15"}, headers=headers)
            assert 400 <= answer.status_code < 500, (action, headers, answer.text)
    signed = {"Authorization": f"Bearer {token}"}
    assert (await client.get("/queues", headers=signed)).status_code == 200, "the key itself opens the server"


async def test_no_end_of_a_path_opens_a_route(app: Application, token: str, client: httpx.AsyncClient) -> None:
    for method, path in routes_of(await app.rest()):
        if path in PUBLIC or path == "/":
            continue
        for suffix in SUFFIXES:
            answer = await client.request(method, path + suffix)
            assert answer.status_code >= 400, (method, path, suffix)


async def test_every_page_allows_no_script_of_others(app: Application, client: httpx.AsyncClient) -> None:
    """Answers that are pages have a strict policy, those of errors too; no answer lets other sites read it."""
    files = [path for path in FOLDER.rglob("*") if path.is_file() and path.suffix in TYPES]
    paths = ["/", "/docs", "/flows/x", "/nothing", "/console/none.js", "/docs/assets/none.js"]
    paths += [f"/console/{path.relative_to(FOLDER).as_posix()}" for path in files]
    paths += [path for method, path in routes_of(await app.rest()) if method == "GET" and not path.endswith("/stream")]
    pages = 0
    for path in paths:
        for headers in (BROWSER, BROWSER | {"Origin": "https://evil.example", "Host": "evil.example"}):
            answer = await client.get(path, headers=headers)
            assert "access-control-allow-origin" not in answer.headers, path
            assert "access-control-allow-credentials" not in answer.headers, path
            is_page = answer.headers.get("content-type", "").startswith("text/html")
            if is_page or path.startswith(("/console/", "/flows")):
                if path == "/console/none.js":
                    continue
                pages += is_page
                policy = answer.headers["content-security-policy"]
                assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy, path
                assert "unsafe-inline" not in policy.split("script-src")[1].split(";")[0], path
                assert "unsafe-eval" not in policy, path
    assert pages >= 3


async def test_inline_scripts_of_the_page_are_those_of_its_policy(client: httpx.AsyncClient) -> None:
    page = await client.get("/docs")
    inline = re.findall(r"<script>", page.text)
    assert page.headers["content-security-policy"].count("'sha256-") == len(inline) == 1
    assert not re.search(r"<[^>]+\son\w+=", page.text)


@pytest.mark.parametrize("field", ["definition", "url", "headers", "role", "limits", "version", "functions"])
async def test_a_start_has_no_options_for_policy(client: httpx.AsyncClient, field: str) -> None:
    await client.put("/v1/flows/order", json={"definition": PASS})
    answer = await client.post("/v1/flows/order/executions", json={"name": "e", "input": {}, field: "x"})
    assert answer.status_code == 400
    assert f"`{field}` is not known" in answer.json()["detail"]
    assert (await client.get("/v1/flows/order/executions/e")).status_code == 404


@pytest.mark.parametrize("text", SQL)
async def test_sql_in_any_text_is_a_text(app: Application, client: httpx.AsyncClient, text: str) -> None:
    """Every query parameter and path of a read, and every parameter of every action."""
    await client.put("/v1/flows/order", json={"definition": PASS})
    await client.post("/v1/flows/order/executions", json={"name": "order"})
    keys = (await client.get("/v1/keys")).text
    document = (await client.get("/v1/openapi.json")).json()
    tried = 0
    for path, calls in document["paths"].items():
        if "get" not in calls or path.endswith("/stream"):
            continue
        spoilt = re.sub(r"\{.*?\}", quote(text, safe=""), path)
        assert (await client.get(spoilt)).status_code < 500, spoilt
        whole = re.sub(r"\{.*?\}", "order", path)
        names = [each["name"] for each in calls["get"].get("parameters", ()) if each.get("in") == "query"]
        for name in names:
            answer = await client.get(whole, params={name: text})
            assert answer.status_code < 500, (whole, name, answer.text)
            tried += 1
    assert tried > 50
    for action in ACTIONS:
        for name in PARAMETERS:
            data = {"Action": action, "Version": "2019-03-15", "FlowName": "order", name: text}
            assert (await client.post("/", data=data)).status_code < 500, (action, name)
    for method, path in compatible_calls():
        query = dict.fromkeys(("limit", "nextToken", "status", "invocationIdPrefix", "receiptHandle"), text)
        assert (await client.request(method, path.replace("x", quote(text, safe="")), params=query)).status_code < 500
    assert (await client.get("/v1/flows/order")).status_code == 200
    assert (await client.get("/v1/keys")).text == keys
