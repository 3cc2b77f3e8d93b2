"""Flows: created, put, changed, listed, deleted; from JSON and from bare definitions."""

import asyncio
import json
from dataclasses import replace

import httpx
import pytest

from flowserver.base.names import NAME_RULE
from flowserver.server import Application
from tests.api.conftest import client_of
from tests.api.rest.conftest import PASS, WAIT, assert_problem

YAML = {"Content-Type": "application/yaml"}
AWKWARD = "version: v1\r\ntype: flow # ~*+/&=%中\U0001f600\nsteps:\n  - {type: pass, name: p}\t\n\n"


async def create(client: httpx.AsyncClient, name: str, definition: str = PASS) -> None:
    response = await client.post("/v1/flows", json={"name": name, "definition": definition})
    assert response.status_code == 201, response.text


async def test_create_from_json(client: httpx.AsyncClient) -> None:
    body = {"name": "order", "description": "sells", "definition": PASS}
    response = await client.post("/v1/flows", json=body)
    flow = response.json()
    assert response.status_code == 201
    assert response.headers["location"] == "/v1/flows/order"
    assert {name: flow[name] for name in body} == body
    assert flow["createdTime"] == flow["lastModifiedTime"]
    assert flow.pop("warnings") == []
    assert set(flow) == {"id", "createdTime", "lastModifiedTime", "retentionDays", "onRetriesExhausted", *body}
    assert (await client.get(response.headers["location"])).json() == flow


@pytest.mark.parametrize(
    "media_type",
    [
        "application/yaml",
        "text/yaml",
        "application/x-yaml",
        "text/plain",
        "text/plain; charset=UTF-8",
        'Application/YAML; charset="utf-8"',
    ],
)
async def test_create_from_a_bare_definition(client: httpx.AsyncClient, media_type: str) -> None:
    response = await client.post(
        "/v1/flows",
        params={"name": "order", "description": "sells ~*+/&=中"},
        content=AWKWARD.encode(),
        headers={"Content-Type": media_type},
    )
    assert response.status_code == 201
    flow = (await client.get("/v1/flows/order")).json()
    assert (flow["definition"], flow["description"]) == (AWKWARD, "sells ~*+/&=中")


async def test_a_bare_definition_may_be_json(client: httpx.AsyncClient) -> None:
    definition = '{"version": "v1", "type": "flow", "steps": [{"type": "pass", "name": "p"}]}'
    response = await client.post("/v1/flows?name=order", content=definition, headers=YAML)
    assert response.json()["definition"] == definition


DOCUMENT = {"version": "v1", "type": "flow", "steps": [{"type": "pass", "name": "p"}]}


async def test_a_definition_may_be_a_json_object(client: httpx.AsyncClient) -> None:
    created = await client.post("/v1/flows", json={"name": "order", "definition": DOCUMENT})
    assert created.status_code == 201
    text = '{"version":"v1","type":"flow","steps":[{"type":"pass","name":"p"}]}'
    assert created.json()["definition"] == text
    for method in ("PUT", "PATCH"):
        changed = await client.request(method, "/v1/flows/order", json={"definition": DOCUMENT})
        assert (changed.status_code, changed.json()["definition"]) == (200, text)


async def test_a_bare_definition_may_be_sent_as_json(client: httpx.AsyncClient) -> None:
    text = json.dumps(DOCUMENT, indent=2) + "\n"
    headers = {"Content-Type": "application/json"}
    created = await client.post("/v1/flows?name=order&description=sells", content=text, headers=headers)
    assert (created.status_code, created.json()["name"], created.json()["description"]) == (201, "order", "sells")
    put = await client.put("/v1/flows/order", content=text, headers=headers)
    checked = await client.post("/v1/definitions/validate", content=text, headers=headers)
    assert (created.json()["definition"], put.json()["definition"]) == (text, text)
    assert checked.json() == {"valid": True, "diagnostics": []}


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ({"definition": PASS}, "MissingRequiredParams", "`name` is required"),
        ({"name": "order"}, "MissingRequiredParams", "`definition` is required"),
        ({"name": "9order", "definition": PASS}, "InvalidArgument", "`name`"),
        ({"name": "a/b", "definition": PASS}, "InvalidArgument", "`name`"),
        ({"name": "a" * 129, "definition": PASS}, "InvalidArgument", "`name`"),
        ({"name": "order\n", "definition": PASS}, "InvalidArgument", "`name`"),
        ({"name": "order", "definition": {"version": "v1"}}, "InvalidArgument", "line 1, column 2: "),
        ({"name": "order", "definition": []}, "InvalidArgument", "`definition` must be a JSON string"),
        ({"version": "v1", "steps": []}, "MissingRequiredParams", "give it as ?name=…"),
        ({"name": "order", "definition": PASS, "descripton": ""}, "InvalidArgument", "`descripton` is not known here"),
        ({"name": "order", "definition": PASS, "description": "x" * 4097}, "InvalidArgument", "`description`"),
        ({"name": "order", "definition": PASS, "description": "\0"}, "InvalidArgument", "NUL"),
        ({"name": None, "definition": PASS}, "InvalidArgument", "`name`"),
    ],
)
async def test_errors_in_a_new_flow_are_reported(client: httpx.AsyncClient, body: dict, code: str, words: str) -> None:
    problem = assert_problem(await client.post("/v1/flows", json=body), 400, code)
    assert words in problem["detail"]
    assert (await client.get("/v1/flows")).json() == {"flows": [], "nextToken": None}


async def test_a_bare_definition_needs_a_name(client: httpx.AsyncClient) -> None:
    response = await client.post("/v1/flows", content=PASS, headers=YAML)
    problem = assert_problem(response, 400, "MissingRequiredParams")
    assert problem["detail"] == "`name` is required: give it as ?name=… when the body is the bare definition"


async def test_a_rejected_definition_is_answered_with_its_diagnostics(client: httpx.AsyncClient) -> None:
    definition = "version: v1\ntype: flow\nsteps:\n  - type: pas\n    name: p\n"
    response = await client.post("/v1/flows?name=order", content=definition, headers=YAML)
    problem = assert_problem(response, 400, "InvalidArgument")
    assert problem["detail"].startswith("line 4, column 11: ")
    [found] = problem["diagnostics"]
    assert {name: found[name] for name in found if name not in {"message", "hint"}} == {
        "id": "unknown-step-type",
        "severity": "error",
        "line": 4,
        "column": 11,
        "target": None,
        "endLine": 4,
        "endColumn": 14,
        "page": "docs/reference/diagnostics.md",
        "path": [],
    }
    assert found["message"]
    assert "pass" in found["hint"]
    assert_problem(await client.get("/v1/flows/order"), 404, "FlowNotExists")


async def test_a_name_is_unique(client: httpx.AsyncClient) -> None:
    bodies = [{"name": "order", "definition": PASS}] * 5
    responses = await asyncio.gather(*(client.post("/v1/flows", json=body) for body in bodies))
    assert sorted(response.status_code for response in responses) == [201, 409, 409, 409, 409]
    refused = next(response for response in responses if response.status_code == 409)
    assert_problem(refused, 409, "FlowAlreadyExists")


async def test_the_number_of_flows_is_limited(app: Application) -> None:
    app.state.limits = replace(app.state.limits, flows_max=1)
    async with app.router.lifespan_context(app), client_of(app) as client:
        await create(client, "order")
        response = await client.post("/v1/flows", json={"name": "parcel", "definition": PASS})
        assert_problem(response, 429, "ResourceThrottled")
        assert response.headers["retry-after"] == "1"


class TestPut:
    async def test_creates_and_can_be_repeated(self, client: httpx.AsyncClient) -> None:
        first = await client.put("/v1/flows/order?description=sells", content=PASS, headers=YAML)
        again = await client.put("/v1/flows/order", content=PASS, headers=YAML)
        assert (first.status_code, again.status_code) == (201, 200)
        assert first.json()["id"] == again.json()["id"]
        assert again.json()["description"] == "sells"

    async def test_replaces_the_definition(self, client: httpx.AsyncClient) -> None:
        await create(client, "order")
        response = await client.put("/v1/flows/order", json={"definition": WAIT, "description": "waits"})
        assert response.status_code == 200
        flow = (await client.get("/v1/flows/order")).json()
        assert (flow["definition"], flow["description"]) == (WAIT, "waits")

    async def test_one_of_many_concurrent_requests_creates(self, client: httpx.AsyncClient) -> None:
        puts = (client.put("/v1/flows/order", content=PASS, headers=YAML) for _ in range(6))
        statuses = [response.status_code for response in await asyncio.gather(*puts)]
        assert sorted(statuses) == [200, 200, 200, 200, 200, 201]

    async def test_needs_a_definition(self, client: httpx.AsyncClient) -> None:
        assert_problem(await client.put("/v1/flows/order", json={}), 400, "MissingRequiredParams")
        response = await client.put("/v1/flows/order", content="nonsense", headers=YAML)
        assert assert_problem(response, 400, "InvalidArgument")["diagnostics"]
        assert_problem(await client.get("/v1/flows/order"), 404, "FlowNotExists")


class TestRetention:
    async def test_is_the_servers_unless_the_flow_sets_it(self, client: httpx.AsyncClient) -> None:
        response = await client.post("/v1/flows", json={"name": "order", "definition": PASS})
        assert response.json()["retentionDays"] is None
        for days in (7, 0, None):
            response = await client.patch("/v1/flows/order", json={"retentionDays": days})
            assert (response.status_code, response.json()["retentionDays"]) == (200, days)
            assert (await client.get("/v1/flows")).json()["flows"][0]["retentionDays"] == days

    async def test_stays_when_something_else_is_changed(self, client: httpx.AsyncClient) -> None:
        put = {"definition": PASS, "retentionDays": 7}
        assert (await client.put("/v1/flows/order", json=put)).json()["retentionDays"] == 7
        assert (await client.patch("/v1/flows/order", json={"description": "x"})).json()["retentionDays"] == 7
        assert (await client.put("/v1/flows/order", content=WAIT, headers=YAML)).json()["retentionDays"] == 7

    @pytest.mark.parametrize("days", [-1, 36_501, 1.5, "7", True])
    async def test_is_a_number_of_days(self, client: httpx.AsyncClient, days: object) -> None:
        await create(client, "order")
        response = await client.patch("/v1/flows/order", json={"retentionDays": days})
        assert_problem(response, 400, "InvalidArgument")


class TestPatch:
    async def test_keeps_absent_fields(self, client: httpx.AsyncClient) -> None:
        await create(client, "order")
        response = await client.patch("/v1/flows/order", json={"description": "sells", "definition": None})
        assert response.status_code == 200
        assert (response.json()["description"], response.json()["definition"]) == ("sells", PASS)
        response = await client.patch("/v1/flows/order", json={"definition": WAIT})
        assert (response.json()["description"], response.json()["definition"]) == ("sells", WAIT)

    async def test_refuses(self, client: httpx.AsyncClient) -> None:
        assert_problem(await client.patch("/v1/flows/order", json={"description": ""}), 404, "FlowNotExists")
        await create(client, "order")
        for nothing in ({}, {"description": None, "definition": None}):
            problem = assert_problem(await client.patch("/v1/flows/order", json=nothing), 400, "InvalidArgument")
            assert "nothing to change" in problem["detail"]
        response = await client.patch("/v1/flows/order", json={"definition": "a: 1"})
        assert assert_problem(response, 400, "InvalidArgument")["diagnostics"]
        assert_problem(await client.patch("/v1/flows/order", json={"name": "x"}), 400, "InvalidArgument")


async def test_delete_frees_the_name(client: httpx.AsyncClient) -> None:
    await create(client, "order")
    response = await client.delete("/v1/flows/order")
    assert (response.status_code, response.content) == (204, b"")
    assert_problem(await client.delete("/v1/flows/order"), 404, "FlowNotExists")
    assert_problem(await client.get("/v1/flows/order/executions"), 404, "FlowNotExists")
    await create(client, "order")


async def test_listing_is_by_name_in_pages(client: httpx.AsyncClient) -> None:
    for name in ("c", "a", "e", "b", "d"):
        await create(client, name)
    seen: list[str] = []
    token: dict[str, str] = {}
    for size in (2, 2, 1):
        page = (await client.get("/v1/flows", params={"limit": 2, **token})).json()
        assert len(page["flows"]) == size
        seen += [flow["name"] for flow in page["flows"]]
        token = {"nextToken": page["nextToken"]}
    assert (seen, token) == (["a", "b", "c", "d", "e"], {"nextToken": None})
    assert "definition" not in page["flows"][0]


async def test_listing_by_prefix(client: httpx.AsyncClient) -> None:
    for name in ("order", "ordeR", "order-2", "orders", "ordez", "zorder"):
        await create(client, name)
    first = (await client.get("/v1/flows?namePrefix=order&limit=2")).json()
    rest = (await client.get("/v1/flows", params={"namePrefix": "order", "nextToken": first["nextToken"]})).json()
    names = [flow["name"] for page in (first, rest) for flow in page["flows"]]
    assert (names, rest["nextToken"]) == (["order", "order-2", "orders"], None)
    assert (await client.get("/v1/flows?namePrefix=none")).json()["flows"] == []


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=1001",
        "limit=x",
        "limit=",
        "nextToken=",
        "nextToken=%00",
        "lmit=3",
        "namePrefix=",
        "namePrefix=a%25",
    ],
)
async def test_a_listing_refuses_a_wrong_query(client: httpx.AsyncClient, query: str) -> None:
    problem = assert_problem(await client.get(f"/v1/flows?{query}"), 400, "InvalidArgument")
    assert f"`{query.partition('=')[0]}`" in problem["detail"]


@pytest.mark.parametrize("name", ["9", "a%20b", "%00", "a" * 129, "%ff", "a%0a", "中"])
async def test_an_impossible_name_is_refused_before_any_lookup(client: httpx.AsyncClient, name: str) -> None:
    for method in ("GET", "PUT", "DELETE"):
        response = await client.request(method, f"/v1/flows/{name}", content=PASS, headers=YAML)
        assert assert_problem(response, 400, "InvalidArgument")["detail"] == f"`flow` {NAME_RULE}"
