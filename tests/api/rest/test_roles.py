"""Who may do what: every call of every API with every role, and keys that are for some flows only."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Final

import httpx
import pytest
from fastapi import APIRouter
from fastapi.routing import APIRoute

from flowserver.api.fc.router import ROUTES as FC_ROUTES
from flowserver.api.fc.router import VERSIONS as FC_VERSIONS
from flowserver.api.mns.router import CALLS as MNS_CALLS
from flowserver.api.rest import needs as rest_needs
from flowserver.api.rest.openapi import openapi_document
from flowserver.api.rest.route import RestRoute
from flowserver.api.rest.router import ROUTERS
from flowserver.api.rpc import needs as rpc_needs
from flowserver.api.rpc.actions import ACTIONS
from flowserver.api.rpc.router import READING
from flowserver.machine.events import EventType
from flowserver.operations import access
from flowserver.operations.callers import Flows, Need
from flowserver.operations.permissions import PERMISSIONS, ROLES, roles_with
from flowserver.server import Application, create_app
from flowserver.settings import Settings
from flowserver.store.access_keys import insert_access_key, list_access_keys
from tests.api.conftest import client_of
from tests.api.fc.signing import signed_headers
from tests.api.mns.test_mns_signed import signed
from tests.api.rest.conftest import CALLBACK, PASS, WAIT, assert_problem
from tests.api.rpc.signing import Signer
from tests.invokers.wire_server import WireServer
from tests.support.clock import ManualClock
from tests.support.following import follow

OF_LINKS: Final = "/v1/sign-ins"
"""The one call whose bearer token is no key's, but the code of a sign-in link (`test_sign_in_links`)."""

UNKNOWN: Final = "of-tomorrow"
"""A role that this version does not know."""


@dataclass(frozen=True)
class Request:
    """A request, and what it needs of its caller."""

    method: str
    path: str
    need: Need
    changes: bool


def rest_requests() -> Iterator[Request]:
    by_path = {
        (next(iter(route.methods)), route.path): rest_needs.NEEDS[route.name]
        for router in ROUTERS
        for route in router.routes
        if isinstance(route, APIRoute)
    }
    for path, operations in openapi_document(ROUTERS)["paths"].items():
        for method in operations:
            changes = method != "get" and "/definitions/" not in path
            real = re.sub(r"\{.*?\}", "order-1", path).replace("/versions/order-1", "/versions/1")
            yield Request(method.upper(), real, by_path[method.upper(), path], changes)


def rpc_requests() -> Iterator[Request]:
    for action in ACTIONS:
        path = f"/?Action={action}&FlowName=order-1&Name=order-1"
        yield Request("POST", path, rpc_needs.NEEDS[action], not action.startswith(READING))


def fc_requests() -> Iterator[Request]:
    for version in FC_VERSIONS.split("|"):
        for method, pattern, need, _ in FC_ROUTES:
            path = re.sub(r"\(\?P<\w+>\[.*?\]\+\)", "a", pattern).replace(r"(?:\.a)?", "")
            yield Request(method, f"{version}/{path}", need, method != "GET")


def mns_requests() -> Iterator[Request]:
    for (method, pattern), (_, need) in MNS_CALLS.items():
        path = "/?accountmeta=true" if pattern == "/" else pattern.replace("*", "a")
        receives = need.permission == "queues.receive"
        yield Request(method, path, need, method != "GET" or receives)
        if receives and method == "GET":
            yield Request(method, f"{path}?peekonly=true", Need("queues.read"), False)


APIS: Final = {"REST": rest_requests, "RPC": rpc_requests, "FC": fc_requests, "MNS": mns_requests}


class Keys:
    """A server with access keys; a client for each role and each prefix of flows."""

    def __init__(self, app: Application, client: httpx.AsyncClient) -> None:
        self.app = app
        self.client = client
        self._made: dict[tuple[str, str], access.NewAccessKey] = {}

    def of(self, role: str, flows: str = "") -> access.NewAccessKey:
        """A key with that role, for those flows."""
        if (role, flows) not in self._made:
            made = self._made[role, flows] = access.make_access_key(role, 0, role=role, flows=flows)
            with self.app.state.engine.database.write() as connection:
                insert_access_key(connection, made.key)
        return self._made[role, flows]

    async def send(self, role: str, method: str, path: str, *, flows: str = "", **more: object) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.of(role, flows).token}"}
        return await self.client.request(method, path, headers=headers, **more)  # type: ignore[arg-type]


@pytest.fixture
async def keys(token: str, app: Application) -> AsyncIterator[Keys]:
    async with app.router.lifespan_context(app), client_of(app) as client:
        yield Keys(app, client)


@pytest.mark.parametrize("api", APIS)
async def test_every_call_with_every_role(api: str, keys: Keys) -> None:
    for role in (*ROLES, UNKNOWN):
        for request in APIS[api]():
            answer = await keys.send(role, request.method, request.path)
            permission = request.need.permission
            shown = (role, request.method, request.path, answer.status_code, answer.text[:300])
            if request.path == OF_LINKS:
                assert answer.status_code == 401, shown
            elif permission is None or permission in ROLES.get(role, ()):
                assert answer.status_code not in (401, 403), shown
                if permission != "audit.read":  # which shows refusals
                    assert "AccessDenied" not in answer.text, shown
            else:
                assert answer.status_code == 403, shown
                assert "AccessDenied" in answer.text, shown
                assert permission in answer.text, shown
                assert all(each in answer.text for each in roles_with(permission)), shown


@pytest.mark.parametrize("api", APIS)
async def test_without_a_key_nothing_is_done(api: str, keys: Keys) -> None:
    for request in APIS[api]():
        answer = await keys.client.request(request.method, request.path)
        assert answer.status_code in (400, 401, 403), request
        assert any(code in answer.text for code in ("AccessDenied", "Missing")), answer.text


@pytest.mark.parametrize("api", APIS)
def test_who_only_reads_changes_nothing(api: str) -> None:
    """By the kinds of the requests, not by the table of needs."""
    for request in APIS[api]():
        if request.changes and request.path != OF_LINKS:
            assert request.need.permission is not None, request
            assert request.need.permission not in ROLES["viewer"], request


def test_every_call_has_a_need_and_every_permission_a_use() -> None:
    assert set(rpc_needs.NEEDS) == set(ACTIONS)
    routes = [route for router in ROUTERS for route in router.routes]
    assert all(isinstance(route, RestRoute) for route in routes)
    assert {route.name for route in routes if isinstance(route, APIRoute)} == set(rest_needs.NEEDS)
    used = {request.need.permission for requests in APIS.values() for request in requests()}
    assert used - {None} == set(PERMISSIONS)
    assert set().union(*ROLES.values()) == set(PERMISSIONS)


def test_a_route_must_say_what_it_needs() -> None:
    async def do_something_new() -> None:
        """Do it."""

    with pytest.raises(AssertionError, match="do_something_new"):
        APIRouter(route_class=RestRoute).get("/v1/new")(do_something_new)


async def test_a_key_for_some_flows_reaches_no_other(keys: Keys) -> None:
    for name in ("order-1", "other", "other-2"):
        put = await keys.send("admin", "PUT", f"/v1/flows/{name}", json={"definition": WAIT})
        assert put.status_code == 201
    texts: dict[str, set[str]] = {}
    for request in (*rest_requests(), *rpc_requests()):
        mine = await keys.send("admin", request.method, request.path, flows="order-")
        if isinstance(request.need.flow, str):
            assert mine.status_code != 403, (request, mine.text)
            for name in ("other", "none", "order", "Order-1"):
                foreign = request.path.replace("/flows/order-1", f"/flows/{name}").replace("=order-1", f"={name}")
                answer = await keys.send("admin", request.method, foreign, flows="order-")
                assert answer.status_code == 403, (request, answer.text)
                shown = answer.json()
                texts.setdefault(name, set()).add(shown.get("detail") or shown["Message"])
        elif request.need.flow is Flows.ALL:
            assert mine.status_code == 403, request
    assert texts["other"] == texts["none"], "whether a flow exists is not told"
    assert texts["none"] == {"the key is for flows whose names begin with order- alone: not this one"}
    left = (await keys.send("admin", "GET", "/v1/flows")).json()["flows"]
    assert {flow["name"] for flow in left} >= {"other", "other-2"}


async def test_lists_show_a_key_its_flows_alone(keys: Keys) -> None:
    hourly = {"cronExpression": "@every 60m"}
    for name in ("alpha", "order-1", "order-2", "zeta"):
        await keys.send("admin", "PUT", f"/v1/flows/{name}", json={"definition": PASS})
        made = await keys.send("admin", "PUT", f"/v1/flows/{name}/schedules/s", json=hourly)
        assert made.status_code == 201, made.text
        for run in ("e1", "e2"):
            await keys.send("admin", "POST", f"/v1/flows/{name}/executions?wait=60", json={"name": run})

    async def listed(path: str, list_name: str, field: str) -> list[str]:
        found, token = [], ""
        while True:
            page = (await keys.send("viewer", "GET", f"{path}{token}", flows="order-")).json()
            found += [row[field] for row in page[list_name]]
            token = page.get("nextToken") or page.get("NextToken")
            if not token:
                return found
            token = f"&nextToken={token}" if path.startswith("/v1") else f"&NextToken={token}"

    mine = ["order-1", "order-2"]
    assert await listed("/v1/flows?limit=1", "flows", "name") == mine
    assert await listed("/v1/flows?namePrefix=o", "flows", "name") == mine
    assert await listed("/v1/flows?namePrefix=order-2", "flows", "name") == ["order-2"]
    assert await listed("/?Action=ListFlows&Limit=1", "Flows", "Name") == mine
    assert await listed("/v1/schedules?limit=1", "schedules", "flowName") == mine
    assert sorted(await listed("/v1/executions?limit=3", "executions", "flowName")) == sorted(mine * 2)
    assert await listed("/v1/executions?limit=3&namePrefix=e1&status=Succeeded", "executions", "flowName") == mine[::-1]
    for path in (
        "/v1/flows?namePrefix=z",
        "/v1/executions?flow=zeta",
        "/v1/executions?flow=order-1&flow=zeta",
        "/v1/tasks?flow=zeta",
    ):
        assert_problem(await keys.send("viewer", "GET", path, flows="order-"), 403, "AccessDenied")
    for path in ("/v1/executions?flow=order-1", "/v1/tasks?flow=order-1"):
        assert (await keys.send("viewer", "GET", path, flows="order-")).status_code == 200
    created = await keys.send("deployer", "POST", "/v1/flows", flows="order-", json={"name": "x", "definition": PASS})
    assert_problem(created, 403, "AccessDenied")
    shown = (await keys.send("viewer", "GET", "/v1/permissions", flows="order-")).json()
    assert (shown["role"], shown["flows"], shown["open"]) == ("viewer", "order-", False)
    assert set(shown["may"]) == ROLES["viewer"]


async def test_waiting_tasks_show_a_key_those_of_its_flows_alone(keys: Keys, functions: WireServer) -> None:
    await keys.send("admin", "PUT", "/v1/functions/shop/ask", json={"url": functions.url})
    for flow in ("order-1", "zeta"):
        await keys.send("admin", "PUT", f"/v1/flows/{flow}", json={"definition": CALLBACK})
        await keys.send("admin", "POST", f"/v1/flows/{flow}/executions", json={"name": "run"})
        async for event in follow(keys.app.state.operations, flow, "run"):
            if event.type is EventType.TASK_SUBMITTED:
                break
    seen = {}
    for flows in ("", "order-", "none"):
        page = (await keys.send("worker", "GET", "/v1/tasks", flows=flows)).json()
        seen[flows] = [task["flowName"] for task in page["tasks"]]
    assert seen == {"": ["order-1", "zeta"], "order-": ["order-1"], "none": []}


@pytest.mark.parametrize("way", ["succeed", "fail", "ReportTaskSucceeded", "ReportTaskFailed", "StartExecution"])
async def test_a_report_is_for_a_flow_of_its_key(keys: Keys, functions: WireServer, way: str) -> None:
    await keys.send("admin", "PUT", "/v1/flows/order-1", json={"definition": CALLBACK})
    await keys.send("admin", "PUT", "/v1/functions/shop/ask", json={"url": functions.url})
    await keys.send("admin", "POST", "/v1/flows/order-1/executions", json={"name": "run"})
    async for event in follow(keys.app.state.operations, "order-1", "run"):
        if event.type is EventType.TASK_SUBMITTED:
            break
    [task] = (await keys.send("worker", "GET", "/v1/tasks?flow=order-1", flows="order-")).json()["tasks"]
    task_token = task["taskToken"]
    statuses = []
    for flows in ("other-", "order-"):
        if way == "StartExecution":
            # A start with the token reports with the execution's end; a starter may read the token in a history.
            await keys.send("admin", "PUT", f"/v1/flows/{flows}2", json={"definition": PASS})
            start = {"FlowName": f"{flows}2", "CallbackFnFTaskToken": task_token, "Action": way}
            body = {"callbackTaskToken": task_token}
            path = f"/v1/flows/{flows}2/executions"
            assert (await keys.send("starter", "POST", "/", flows=flows, data=start)).status_code == 403
            assert (await keys.send("starter", "POST", path, flows=flows, json=body)).status_code == 403
            assert (await keys.send("starter", "POST", path, flows=flows, json={})).status_code == 201
            answer = await keys.send("admin", "POST", "/", flows=flows, data=start)
        elif way in ("succeed", "fail"):
            body = {"taskToken": task_token} | ({"error": "No"} if way == "fail" else {})
            answer = await keys.send("worker", "POST", f"/v1/tasks/{way}", flows=flows, json=body)
        else:
            form = {"Action": way, "TaskToken": task_token, "Output": "{}", "Error": "No"}
            answer = await keys.send("worker", "POST", "/", flows=flows, data=form)
        statuses.append(answer.status_code)
    assert statuses == [403, 200]


async def test_signed_requests_have_the_role_of_their_key(token: str, sqlite_url: str, clock: ManualClock) -> None:
    app = create_app(Settings(database_url=sqlite_url, drain_seconds=0), clock)
    async with app.router.lifespan_context(app), client_of(app) as client:
        made = Keys(app, client).of("viewer").key
        signer = Signer(clock, made.access_key_id, made.secret)
        for action, status in (("ListFlows", 200), ("StartExecution", 403)):
            parameters = signer.v1("POST", {"Action": action, "FlowName": "f"})
            assert (await client.post("/", data=parameters)).status_code == status
        begin = "/2016-08-15/services/s/functions/f"
        credentials = {"access_key_id": made.access_key_id, "secret": made.secret}
        for method, path, status in (
            ("GET", f"{begin}/stateful-async-invocations", 200),
            ("POST", f"{begin}/invocations", 403),
        ):
            headers = signed_headers(method, path, clock.now_ms(), **credentials)
            assert (await client.request(method, path, headers=headers)).status_code == status
        for method, path, status in (("GET", "/queues", 200), ("DELETE", "/queues/q", 403)):
            headers = signed(method, path, clock.now_ms(), key=made.access_key_id, secret=made.secret)
            assert (await client.request(method, path, headers=headers)).status_code == status


async def test_the_last_use_is_recorded_seldom(keys: Keys) -> None:
    database = keys.app.state.engine.database
    made = keys.of("viewer").key

    def last_used() -> int | None:
        [mine] = [key for key in database.run_read(list_access_keys) if key.access_key_id == made.access_key_id]
        return mine.last_used_at

    async with asyncio.timeout(60):
        while (first := last_used()) is None:
            assert (await keys.send("viewer", "GET", "/v1/flows")).status_code == 200
    for _ in range(20):
        assert (await keys.send("viewer", "GET", "/v1/flows")).status_code == 200
    assert last_used() == first
    [shown] = [
        key for key in (await keys.send("admin", "GET", "/v1/keys")).json()["keys"] if key["id"] == made.access_key_id
    ]
    assert shown["lastUsedTime"] is not None
