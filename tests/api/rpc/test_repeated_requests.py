"""A signed request that is sent again changes nothing: on another node, after a crash, and with every action."""

import asyncio
from collections.abc import Mapping
from typing import Any

import httpx
import pytest
from sqlalchemy import insert, select

from flowserver.api.rpc.actions import ACTIONS
from flowserver.api.rpc.router import READING
from flowserver.base.clock import SystemClock
from flowserver.base.limits import Limits
from flowserver.operations.audited import AuditLevel
from flowserver.server import create_app
from flowserver.settings import Settings
from flowserver.store.schema.audit_tables import audit_records
from flowserver.store.schema.tables import access_keys, metadata, nodes, nonces
from flowserver.store.sql.database import Database
from tests.api.rpc.conftest import ASK, PASS, Rpc, fault, running_rpc, success
from tests.api.rpc.signing import Signer
from tests.engine.called_functions import Functions
from tests.support.access_key import ACCESS_KEY_ID, TOKEN, create_database_with_key
from tests.support.clock import ManualClock
from tests.support.server import ServerProcess

NONCE = "of another node"
RUNNING = {"FlowName": "f", "ExecutionName": "e"}
SCHEDULE = {"FlowName": "f", "ScheduleName": "s", "CronExpression": "@every 60m"}
ALIAS = {"FlowName": "f", "Name": "a", "RoutingConfigurations": '[{"Version": "1", "Weight": 100}]'}
VERSION = {"FlowName": "f", "FlowVersion": "2"}
CHANGES: Mapping[str, Mapping[str, str]] = {
    "CreateFlow": {"Name": "new", "Definition": PASS, "Type": "FDL", "Description": "d"},
    "UpdateFlow": {"Name": "f", "Description": "changed"},
    "StartExecution": {"FlowName": "f"},
    "StartSyncExecution": {"FlowName": "idle"},
    "StopExecution": RUNNING,
    "ReportTaskSucceeded": {"Output": "{}"},
    "ReportTaskFailed": {"Error": "E"},
    "CreateSchedule": SCHEDULE | {"ScheduleName": "new"},
    "UpdateSchedule": SCHEDULE | {"Description": "changed"},
    "DeleteSchedule": SCHEDULE,
    "PublishFlowVersion": {"FlowName": "f", "Description": "new"},
    "DeleteFlowVersion": VERSION,
    "CreateFlowAlias": ALIAS | {"Name": "new"},
    "UpdateFlowAlias": ALIAS | {"Description": "changed"},
    "DeleteFlowAlias": ALIAS,
    "DeleteFlow": {"Name": "idle"},
}
"""Requests that succeed in this order; no task waits for a report once its execution is stopped."""


async def prepare(rpc: Rpc, functions: Functions) -> str:
    """Objects that the requests change; returns the token of a waiting task."""
    rpc.http.headers["Authorization"] = f"Bearer {TOKEN}"
    where = {"url": functions.url("s/f")}
    (await rpc.http.put("/v1/functions/s/f", json=where)).raise_for_status()
    await rpc.create_flow("f", ASK)
    await rpc.create_flow("idle", PASS)
    for number in range(2):
        await rpc.call("PublishFlowVersion", FlowName="f")
        await rpc.call("UpdateFlow", Name="f", Definition=ASK + f"# {number}\n", Type="FDL")
    await rpc.call("CreateFlowAlias", **ALIAS)
    await rpc.call("CreateSchedule", **SCHEDULE, Enable="false")
    await rpc.call("StartExecution", **RUNNING)
    call = await functions.next_call("s/f")
    call.reply({})
    body: dict[str, Any] = {"Events": []}
    while not any(event["Type"] == "TaskSubmitted" for event in body["Events"]):
        body = await rpc.call("GetExecutionHistory", **RUNNING)
    del rpc.http.headers["Authorization"]
    return str(call.event["token"])


def rows(database_url: str) -> dict[str, list[Any]]:
    """All rows but those of nodes, nonces, the uses of keys, and refusals in the audit."""
    database = Database(database_url)
    with database.read() as connection:
        shown = {
            table.name: sorted(map(str, connection.execute(select(table))))
            for table in metadata.sorted_tables
            if table not in (nodes, nonces, access_keys, audit_records)
        }
        made = select(audit_records).where(audit_records.c.result != "SignatureNonceUsed")
        shown["audit"] = sorted(map(str, connection.execute(made)))
    database.close()
    return shown


def test_all_changes_are_tested() -> None:
    assert set(CHANGES) == {name for name in ACTIONS if not name.startswith(READING)}


@pytest.mark.parametrize("audit", ["changes", "all"])
async def test_no_action_changes_anything_with_a_nonce_of_another_node(
    sqlite_url: str, clock: ManualClock, functions: Functions, audit: AuditLevel
) -> None:
    """The first change of a recorded request is its record in the audit."""
    create_database_with_key(sqlite_url)
    signer = Signer(clock)
    app = create_app(Settings(database_url=sqlite_url, drain_seconds=0, audit=audit), clock)
    async with running_rpc(app) as rpc:
        token = await prepare(rpc, functions)
        database = Database(sqlite_url)
        with database.write() as connection:
            connection.execute(insert(nonces).values(access_key_id=ACCESS_KEY_ID, nonce=NONCE, expires_at=2**50))
        database.close()
        before = rows(sqlite_url)
        requests = {
            action: {"Action": action, **given, **({"TaskToken": token} if "Report" in action else {})}
            for action, given in CHANGES.items()
        }
        for given in requests.values():
            repeated = signer.v1("POST", given, SignatureNonce=NONCE)
            fault(await rpc.http.post("/", data=repeated), 400, "SignatureNonceUsed")
        assert rows(sqlite_url) == before
        for action, given in requests.items():
            answer = await rpc.http.post("/", data=signer.v1("POST", given))
            assert answer.status_code == (400 if "Report" in action else 200), answer.text


@pytest.mark.parametrize(
    ("given", "code"),
    [({"Action": "StartExecution", "FlowName": "none"}, "FlowNotExists"), ({"Action": "StopExecution"}, "Missing")],
)
async def test_a_request_that_fails_has_used_its_nonce_too(
    sqlite_url: str, clock: ManualClock, given: dict[str, str], code: str
) -> None:
    """The flow may exist when it is sent again."""
    create_database_with_key(sqlite_url)
    signed = Signer(clock).v1("POST", given)
    for answer in (code, "SignatureNonceUsed"):
        async with running_rpc(create_app(Settings(database_url=sqlite_url, drain_seconds=0), clock)) as rpc:
            assert (await rpc.http.post("/", data=signed)).json()["Code"].startswith(answer)


async def test_a_request_refused_under_load_may_be_sent_again(sqlite_url: str, clock: ManualClock) -> None:
    create_database_with_key(sqlite_url)
    app = create_app(Settings(database_url=sqlite_url, drain_seconds=0), clock)
    async with running_rpc(app) as rpc:
        signer, context = Signer(clock), app.state.engine.committer._context
        success(await rpc.http.post("/", data=signer.v1("POST", {"Action": "CreateFlow", **CHANGES["CreateFlow"]})))
        signed = signer.v1("POST", {"Action": "StartExecution", "FlowName": "new"})
        object.__setattr__(context, "limits", Limits(pending_messages_max=0))
        fault(await rpc.http.post("/", data=signed), 429, "ResourceThrottled")
        object.__setattr__(context, "limits", Limits())
        success(await rpc.http.post("/", data=signed))
        fault(await rpc.http.post("/", data=signed), 400, "SignatureNonceUsed")


@pytest.mark.parametrize("options", [(), ("--processes", "2")], ids=["one process", "two processes"])
def test_an_answered_request_cannot_be_repeated_after_a_crash(sqlite_url: str, options: tuple[str, ...]) -> None:
    create_database_with_key(sqlite_url)
    signer = Signer(SystemClock())
    creation = signer.v1("POST", {"Action": "CreateFlow", **CHANGES["CreateFlow"]})
    start = signer.v1("POST", {"Action": "StartExecution", "FlowName": "new"})
    reading = signer.v1("POST", {"Action": "ListFlows"})
    signed = (creation, start, reading)
    with ServerProcess(sqlite_url, *options) as server:
        for each in signed:
            success(httpx.post(server.url, data=each))
        server.kill()
    with ServerProcess(sqlite_url, *options) as server:
        for each in signed:
            fault(httpx.post(server.url, data=each), 400, "SignatureNonceUsed")
        page = httpx.get(f"{server.url}/v1/flows/new/executions", headers={"Authorization": f"Bearer {TOKEN}"})
        assert len(page.json()["executions"]) == 1


async def test_of_copies_sent_to_two_nodes_one_is_carried_out(migrated_postgres_url: str, clock: ManualClock) -> None:
    create_database_with_key(migrated_postgres_url)
    settings = Settings(database_url=migrated_postgres_url, drain_seconds=0)
    async with running_rpc(create_app(settings, clock)) as one, running_rpc(create_app(settings, clock)) as other:
        signer = Signer(clock)
        success(await one.http.post("/", data=signer.v1("POST", {"Action": "CreateFlow", **CHANGES["CreateFlow"]})))
        for _ in range(5):
            signed = signer.v1("POST", {"Action": "StartExecution", "FlowName": "new"})
            answers = await asyncio.gather(*(node.http.post("/", data=signed) for node in (one, other) * 2))
            assert sorted(answer.status_code for answer in answers) == [200, 400, 400, 400]
        listing = {"Action": "ListExecutions", "FlowName": "new"}
        assert len(success(await other.http.post("/", data=signer.v1("POST", listing)))["Executions"]) == 5
