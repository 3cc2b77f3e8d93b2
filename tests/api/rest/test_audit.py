"""The audit: changes and refusals of every API, in the order of time, for administrators."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from flowserver.base.errors import AccessDenied
from flowserver.base.request_context import RequestContext
from flowserver.operations.access import make_access_key
from flowserver.operations.audited import AUDITED
from flowserver.operations.refusals import RefusalLog
from flowserver.server import Application, create_app
from flowserver.settings import Settings
from flowserver.store.access_keys import insert_access_key
from flowserver.store.audit import OBJECT_CHARACTERS_MAX, AuditFilter, AuditRecord
from tests.api.conftest import client_of
from tests.api.rest.conftest import PASS, WAIT, assert_problem, put_callback_flow, submitted_token
from tests.invokers.wire_server import WireServer
from tests.support.clock import ManualClock

YAML = {"Content-Type": "application/yaml"}


async def records_of(client: httpx.AsyncClient, **wanted: object) -> list[dict[str, Any]]:
    """What the audit shows, the oldest first."""
    answer = await client.get("/v1/audit", params={name: str(value) for name, value in wanted.items()})
    assert answer.status_code == 200, answer.text
    return list(reversed(answer.json()["records"]))


def told(records: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [(each["operation"], each["object"], each["result"]) for each in records]


async def test_changes_are_recorded_with_who_and_from_where(
    token: str, client: httpx.AsyncClient, app: Application
) -> None:
    client.headers["Authorization"] = f"Bearer {token}"
    for method in ("PUT", "DELETE", "DELETE"):
        last = await client.request(method, "/v1/flows/order", content=PASS, headers=YAML)
    assert (
        await client.post("/", data={"Action": "CreateFlow", "Name": "two", "Definition": PASS, "Type": "FDL"})
    ).is_success
    assert (await client.put("/queues/work", content='<?xml version="1.0"?><Queue/>')).is_success
    config = "/2016-08-15/services/shop/functions/pay/async-invoke-config"
    assert (await client.delete(config)).status_code == 404
    await client.get("/v1/flows/two")

    records = await records_of(client)
    assert told(records) == [
        ("flows.put", "flows/order", "ok"),
        ("flows.delete", "flows/order", "ok"),
        ("flows.delete", "flows/order", "FlowNotExists"),
        ("flows.create", "flows/two", "ok"),
        ("queues.create", "queues/work", "ok"),
        ("async-configs.delete", "functions/shop/pay/async-config", "AsyncConfigNotExists"),
    ]
    assert [each["api"] for each in records] == ["REST", "REST", "REST", "RPC", "MNS", "FC"]
    assert {(each["caller"], each["address"], each["count"]) for each in records} == {("tests", "127.0.0.1", 1)}
    [key] = (await client.get("/v1/keys")).json()["keys"]
    assert {each["key"] for each in records} == {key["id"]}
    assert records[2]["requestId"] == last.headers["x-request-id"]


async def test_the_audit_is_filtered_and_read_by_pages(client: httpx.AsyncClient) -> None:
    before = datetime.now(UTC) - timedelta(seconds=1)
    for name in ("order", "order-2"):
        await client.put(f"/v1/flows/{name}", content=WAIT, headers=YAML)
        await client.put(f"/v1/flows/{name}/schedules/s", json={"cronExpression": "@every 1h"})
    await client.post("/v1/flows/order/executions", json={"name": "run"})
    await client.post("/v1/flows/order/executions/run/stop", json={})
    every = await records_of(client)
    assert [operation for operation, *_ in told(every)] == [*["flows.put", "schedules.put"] * 2, "executions.stop"]
    assert every[0]["key"] == ""

    below = [each for each in every if each["object"].split("/")[1] == "order"]
    assert await records_of(client, object="flows/order") == below
    assert await records_of(client, operation="flows.put", object="flows/order") == below[:1]
    assert await records_of(client, result="FlowNotExists") == []
    assert await records_of(client, key="FLS0") == []
    assert await records_of(client, **{"from": before.isoformat(), "to": every[0]["time"]}) == []
    assert await records_of(client, **{"from": every[0]["time"]}) == every

    pages, more = [], {}
    while True:
        page = (await client.get("/v1/audit", params={"limit": 2, **more})).json()
        pages.append(page["records"])
        if page["nextToken"] is None:
            break
        more = {"nextToken": page["nextToken"]}
    assert [each for page in pages for each in page] == every[::-1]
    assert [len(page) for page in pages] == [2, 2, 1]
    assert_problem(await client.get("/v1/audit?from=yesterday"), 400, "InvalidArgument")


async def test_an_operation_has_a_record_before_it_begins(app: Application, client: httpx.AsyncClient) -> None:
    """So what was changed before a crash is in the audit, even if its caller got no answer."""
    audit = app.state.operations.audit

    async def recorded() -> list[AuditRecord]:
        page = await audit.list(AuditFilter(), next_token=None, limit=None)
        return list(page.items)

    async def interrupted() -> None:
        [begun] = await recorded()
        assert (begun.operation, begun.object, begun.result) == ("flows.delete", "flows/x", "")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), RequestContext("r", "127.0.0.1"):
        await audit.recorded("flows.delete", "flows/x", interrupted)
    shown = await records_of(client)
    assert told(shown) == [("flows.delete", "flows/x", None)]
    assert (await records_of(client, result="ok")) == []


async def test_a_higher_level_records_reports_and_starts(sqlite_url: str, functions: WireServer) -> None:
    """Reports may be approvals. Neither these nor starts are recorded by default."""
    found: Mapping[str, list[str]] = {}
    for level in ("changes", "reports", "all"):
        app = create_app(Settings(database_url=sqlite_url, drain_seconds=0, audit=level))
        async with app.router.lifespan_context(app), client_of(app) as client:
            before = len(await records_of(client))
            await put_callback_flow(client, functions)
            execution = (await client.post("/v1/flows/ask/executions", json={"name": "run"})).json()
            report = {"taskToken": await submitted_token(app), "output": {}}
            assert (await client.post("/v1/tasks/succeed", json=report)).is_success
            await client.delete("/v1/flows/ask")
            records = (await records_of(client))[before:]
            found = {**found, level: [each["operation"] for each in records]}
            assert all(each["result"] == "ok" for each in records)
    changes = ["functions.put", "flows.put", "flows.delete"]
    assert found == {
        "changes": changes,
        "reports": [*changes[:2], "tasks.report", changes[2]],
        "all": [*changes[:2], "executions.start", "tasks.report", changes[2]],
    }
    assert execution["name"] == "run"


async def test_names_that_no_object_has_are_recorded_safely(client: httpx.AsyncClient) -> None:
    await client.post("/", data={"Action": "DeleteFlow", "Name": "y" * 1_000})
    [record] = await records_of(client)
    assert record["object"] == f"flows/{'y' * 1_000}"[:OBJECT_CHARACTERS_MAX]


def test_every_operation_has_a_name_that_filters_can_use() -> None:
    assert all(re.fullmatch(r"[a-z-]+\.[a-z-]+", name) for name in AUDITED)


async def refusals_of(client: httpx.AsyncClient, count: int) -> list[dict[str, Any]]:
    """The records of refusals, once they stand for so many."""
    while True:
        found = [each for each in await records_of(client, limit=200) if each["result"] != "ok"]
        if sum(each["count"] for each in found) >= count:
            return found
        await asyncio.sleep(0.01)


async def test_refused_callers_are_counted_by_kind(token: str, client: httpx.AsyncClient, app: Application) -> None:
    """Of every API, and with what they say who they are."""
    made = make_access_key("shop", 0, role="starter", flows="order")
    with app.state.engine.database.write() as connection:
        insert_access_key(connection, made.key)
    for headers in ({}, {"Authorization": "Bearer fls_x"}, {"Authorization": "Bearer fls_y"}):
        assert (await client.get("/v1/flows", headers=headers)).status_code == 401
    starter = {"Authorization": f"Bearer {made.token}"}
    for path in ("/v1/flows/order", "/v1/flows/other"):
        assert (await client.delete(path, headers=starter)).status_code == 403
    assert (await client.post("/v1/flows/other/executions", json={}, headers=starter)).status_code == 403
    assert (await client.post("/v1/flows/order/executions/e1/stop", json={}, headers=starter)).status_code == 403
    stop = {"Action": "StopExecution", "FlowName": "order", "ExecutionName": "e2"}
    assert (await client.post("/", data=stop, headers=starter)).status_code == 403
    signed = {"AccessKeyId": "FLS0", "Signature": "x", "SignatureNonce": "n", "Timestamp": "2026-01-01T00:00:00Z"}
    assert (await client.post("/", data={"Action": "ListFlows", **signed})).status_code == 403
    assert (await client.post("/", data={"Action": "ListFlows"})).status_code == 400
    fc = "/2016-08-15/services/a/functions/b/invocations"
    assert (await client.post(fc)).status_code == 400
    assert (await client.get("/queues")).status_code == 400
    assert (await client.post("/", data={"Action": "Nothing"})).status_code == 400

    for headers, status in (({"Authorization": "Bearer fls_x"}, 401), (starter, 403)):
        assert (await client.get("/metrics", headers=headers)).status_code == status

    client.headers["Authorization"] = f"Bearer {token}"
    found = await refusals_of(client, 14)
    key_id = made.key.access_key_id
    shown = {(e["api"], e["operation"], e["object"], e["key"], e["result"], e["count"]) for e in found}
    assert shown == {
        ("REST", "authenticate", "", "", "AccessDenied", 3),
        ("REST", "flows.delete", "flows/order", key_id, "AccessDenied", 1),
        ("REST", "flows.delete", "flows/other", key_id, "AccessDenied", 1),
        ("REST", "executions.start", "flows/other", key_id, "AccessDenied", 1),
        ("REST", "executions.stop", "flows/order/executions/e1", key_id, "AccessDenied", 1),
        ("RPC", "executions.stop", "flows/order/executions/e2", key_id, "AccessDenied", 1),
        ("RPC", "authenticate", "keys/FLS0", "", "InvalidAccessKeyID", 1),
        ("RPC", "authenticate", "", "", "MissingRequiredParams", 1),
        ("FC", "authenticate", "", "", "MissingRequiredParams", 1),
        ("MNS", "authenticate", "", "", "MissingAuthorizationHeader", 1),
        ("", "authenticate", "", "", "AccessDenied", 1),
        ("", "server.read", "", key_id, "AccessDenied", 1),
    }
    [repeated] = [each for each in found if each["count"] == 3]
    assert repeated["lastTime"] >= repeated["time"]


async def test_a_flood_of_refusals_makes_few_records(clock: ManualClock) -> None:
    written: dict[str, AuditRecord] = {}
    writes: list[int] = []

    async def write(records: Sequence[AuditRecord]) -> None:
        writes.append(len(records))
        written.update({each.record_id: each for each in records})

    refusals = RefusalLog(write, clock, kinds_max=3)

    async def flood() -> None:
        for number in range(1_000):
            with RequestContext(str(number), f"192.0.2.{number % 200}"):
                refusals.note(AccessDenied())
        await asyncio.sleep(0)

    await flood()
    assert sorted(each.count for each in written.values()) == [5, 5, 5, 985]
    assert len(writes) == 1
    clock.advance(seconds=3_600)
    with RequestContext("later", "192.0.2.0"):
        refusals.note(AccessDenied())
    await refusals.close()
    assert [each.count for each in written.values()][4:] == [1]
