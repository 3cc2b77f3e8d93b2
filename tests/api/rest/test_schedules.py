"""Schedules over REST: fields, pages, pausing, triggers, backfills and refusals."""

import httpx
import pytest
from sqlalchemy import update

from flowserver.server import Application
from flowserver.store.schema.schedule_tables import schedules
from tests.api.rest.conftest import assert_problem

ALL = "/v1/flows/etl/schedules"
ONE = f"{ALL}/nightly"
DEFINITION = "version: v1\ntype: flow\nsteps:\n  - {type: pass, name: p}\n"
FIELDS = {
    "cronExpression": "0 30 2 * * ?",
    "timeZone": "Europe/Berlin",
    "description": "d",
    "payload": {"n": 12345678901234567890},
    "qualifier": "prod",
    "enabled": True,
    "note": "",
    "overlap": "Skip",
    "catchUpSeconds": 3600,
    "pauseOnFailure": True,
    "remainingActions": 3,
}


@pytest.fixture
async def flow(client: httpx.AsyncClient) -> None:
    await client.put("/v1/flows/etl", json={"definition": DEFINITION})


async def test_create_show_change_delete(client: httpx.AsyncClient, flow: None) -> None:
    created = await client.post(ALL, json={"name": "nightly", **FIELDS})
    assert (created.status_code, created.headers["location"]) == (201, ONE)
    shown = created.json()
    assert {name: shown[name] for name in FIELDS} == FIELDS
    assert (shown["flowName"], shown["name"], shown["recent"], shown["lastRefusal"]) == ("etl", "nightly", [], None)
    assert len(shown["nextTimes"]) == 3  # the number that it may still start
    assert shown["nextTimes"][0] == shown["nextTime"]
    assert (await client.get(ONE)).json() == shown
    changed = await client.patch(ONE, json={"remainingActions": None, "overlap": "BufferAll"})
    assert (changed.json()["remainingActions"], len(changed.json()["nextTimes"])) == (None, 10)
    assert (changed.json()["overlap"], changed.json()["nextTime"]) == ("BufferAll", shown["nextTime"])
    assert_problem(await client.patch(ONE, json={}), 400, "InvalidArgument")
    assert (await client.delete(ONE)).status_code == 204
    for method in ("GET", "DELETE"):
        assert_problem(await client.request(method, ONE), 404, "ScheduleNotExists")


async def test_defaults(client: httpx.AsyncClient, flow: None) -> None:
    created = await client.put(ONE, json={"cronExpression": "@every 5m"})
    assert created.status_code == 201
    expected = {"timeZone": "UTC", "overlap": "AllowAll", "catchUpSeconds": 60, "enabled": True, "payload": {}}
    assert {name: created.json()[name] for name in expected} == expected
    again = await client.put(ONE, json={"cronExpression": "@every 5m"})
    assert (again.status_code, again.json()) == (200, created.json())


async def test_pages(client: httpx.AsyncClient, flow: None) -> None:
    await client.put("/v1/flows/a", json={"definition": DEFINITION})
    for flow_name, name in (("etl", "s"), ("a", "z"), ("etl", "r")):
        await client.put(f"/v1/flows/{flow_name}/schedules/{name}", json={"cronExpression": "@every 5m"})
    first = (await client.get("/v1/schedules", params={"limit": 2})).json()
    assert [(each["flowName"], each["name"]) for each in first["schedules"]] == [("a", "z"), ("etl", "r")]
    assert first["nextToken"] == "etl/s"
    last = (await client.get("/v1/schedules", params={"nextToken": "etl/s"})).json()
    assert ([each["name"] for each in last["schedules"]], last["nextToken"]) == (["s"], None)
    own = (await client.get(ALL, params={"limit": 1})).json()
    assert ([each["name"] for each in own["schedules"]], own["nextToken"]) == (["r"], "s")
    assert_problem(await client.get("/v1/flows/none/schedules"), 404, "FlowNotExists")


async def test_pause_and_resume(client: httpx.AsyncClient, flow: None) -> None:
    await client.put(ONE, json={"cronExpression": "@every 5m"})
    paused = (await client.post(f"{ONE}/pause", json={"note": "the shop moves"})).json()
    assert (paused["enabled"], paused["note"], paused["nextTime"]) == (False, "the shop moves", None)
    resumed = (await client.post(f"{ONE}/resume")).json()
    assert (resumed["enabled"], resumed["note"], len(resumed["nextTimes"])) == (True, "", 10)


async def test_a_trigger_starts_an_execution(client: httpx.AsyncClient, flow: None) -> None:
    await client.put(ONE, json={"cronExpression": "@every 5m", "enabled": False})
    triggered = await client.post(f"{ONE}/trigger", json={"overlap": "AllowAll"})
    assert triggered.status_code == 202
    name = triggered.json()["executionName"]
    ended = await client.get(f"/v1/flows/etl/executions/{name}", params={"wait": 20})
    while ended.status_code == 404:  # the loop has not taken the turn yet
        ended = await client.get(f"/v1/flows/etl/executions/{name}", params={"wait": 20})
    assert ended.json()["status"] == "Succeeded"
    (run,) = (await client.get(ONE)).json()["recent"]
    assert (run["executionName"], run["kind"], run["status"]) == (name, "trigger", "Succeeded")


async def test_a_backfill_runs_past_ticks_once(client: httpx.AsyncClient, flow: None) -> None:
    await client.put(ONE, json={"cronExpression": "0 0 12 * * ?"})
    days = {"startTime": "2025-01-01T00:00:00Z", "endTime": "2025-01-03T12:00:00Z"}
    for overlap in ("AllowAll", "AllowAll"):
        accepted = await client.post(f"{ONE}/backfill", json={**days, "overlap": overlap})
        assert (accepted.status_code, accepted.json()) == (202, {"ticks": 3})
        while (shown := (await client.get(ONE)).json())["waiting"]:
            pass
    assert (shown["started"], shown["skipped"]) == (3, 3)
    assert [run["time"][:10] for run in shown["recent"]] == ["2025-01-03", "2025-01-02", "2025-01-01"]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("cronExpression", "0 0 2 32 * ?", "day of month (field 4, column 7)"),
        ("cronExpression", "", "this one has 0"),
        ("timeZone", "Europe/Atlantis", "TimeZone: 'Europe/Atlantis' is not the name of a time zone"),
        ("timeZone", "../../etc/passwd", "is not the name of a time zone"),
        ("overlap", "Never", "`overlap` must be one of Skip, BufferOne, "),
        ("overlap", 3, "`overlap` must be one of Skip, BufferOne, "),
        ("qualifier", "no alias", "Qualifier must be the name of an alias"),
        ("catchUpSeconds", 9, "catchUpSeconds"),
        ("remainingActions", -1, "remainingActions"),
        ("cron", "@every 1m", "cron"),
    ],
)
async def test_refused_fields(client: httpx.AsyncClient, flow: None, field: str, value: object, message: str) -> None:
    answer = await client.put(ONE, json={"cronExpression": "@every 5m"} | {field: value})
    assert message in assert_problem(answer, 400, "InvalidArgument")["detail"]


@pytest.mark.parametrize(
    ("begin", "end", "message"),
    [
        ("2025-01-02T00:00:00Z", "2025-01-01T00:00:00Z", "must end after it begins"),
        ("2025-01-01T00:00:00Z", "9999-01-01T00:00:00Z", "must end in the past"),
        ("2025-01-01T00:00:00Z", "2025-01-01T00:01:00Z", "this range has none"),
        ("1999-01-01T00:00:00Z", "2025-01-01T00:00:00Z", "this range has more"),
        ("yesterday", "2025-01-01T00:00:00Z", "`startTime` must be an RFC 3339 instant"),
    ],
)
async def test_refused_backfills(client: httpx.AsyncClient, flow: None, begin: str, end: str, message: str) -> None:
    await client.put(ONE, json={"cronExpression": "0 0 12 * * ?"})
    answer = await client.post(f"{ONE}/backfill", json={"startTime": begin, "endTime": end})
    assert message in assert_problem(answer, 400, "InvalidArgument")["detail"]


async def test_a_dry_run_changes_nothing_and_needs_no_flow(client: httpx.AsyncClient) -> None:
    fields = {"cronExpression": "0 30 2 * * ?", "qualifier": "prod"}
    tried = await client.put(f"{ONE}?dryRun=true", json=fields)
    assert tried.status_code == 200
    assert [(each["id"], each["target"]) for each in tried.json()["warnings"]] == [
        ("unknown-flow", {"kind": "flow", "name": "etl"}),
        ("unknown-qualifier", {"kind": "alias", "name": "etl/prod"}),
    ]
    wrong = await client.put(f"{ONE}?dryRun=true", json={"cronExpression": "0 0 25 * * ?"})
    assert_problem(wrong, 400, "InvalidArgument")
    await client.put("/v1/flows/etl", json={"definition": DEFINITION})
    tried = await client.put(f"{ONE}?dryRun=true", json=fields)
    assert [each["id"] for each in tried.json()["warnings"]] == ["unknown-qualifier"]
    assert_problem(await client.get(ONE), 404, "ScheduleNotExists")
    for query in ("strict=true", "strict=true&dryRun=true"):
        assert_problem(await client.put(f"{ONE}?{query}", json=fields), 400, "InvalidArgument")
    assert_problem(await client.get(ONE), 404, "ScheduleNotExists")
    kept = await client.put(ONE, json=fields)
    assert kept.json()["warnings"] == tried.json()["warnings"]
    await client.put(f"{ONE}?dryRun=true", json={"cronExpression": "@every 5m"})
    assert (await client.get(ONE)).json() == kept.json()


async def change_row(app: Application, **values: object) -> None:
    await app.state.operations.schedules._engine.committer.write(
        lambda connection: connection.execute(update(schedules).where(schedules.c.name == "nightly").values(values))
    )


@pytest.mark.parametrize("enabled", [True, False])
async def test_a_schedule_whose_time_zone_has_vanished_is_shown(
    client: httpx.AsyncClient, app: Application, flow: None, enabled: bool
) -> None:
    """An update of the time zones may leave one out. The user sees what to change, in lists, too, and changes it."""
    await client.put(f"{ALL}/other", json={"cronExpression": "@every 5m"})
    await client.put(ONE, json={"cronExpression": "0 30 2 * * ?", "enabled": enabled})
    await change_row(app, time_zone="Mars/Phobos")
    shown = await client.get(ONE)
    assert shown.status_code == 200
    assert (shown.json()["timeZone"], shown.json()["nextTime"], shown.json()["nextTimes"]) == ("Mars/Phobos", None, [])
    [warning] = shown.json()["warnings"]
    assert (warning["id"], warning["target"]) == ("unreadable-timing", None)
    assert warning["message"].startswith("TimeZone: 'Mars/Phobos' is not the name of a time zone")
    for path in (ALL, "/v1/schedules"):
        listed = (await client.get(path)).json()["schedules"]
        assert [each["name"] for each in listed] == ["nightly", "other"]
    changed = await client.patch(ONE, json={"timeZone": "UTC"})
    assert (changed.status_code, changed.json()["warnings"]) == (200, [])
    assert len(changed.json()["nextTimes"]) == (10 if enabled else 0)


async def test_a_damaged_schedule_is_named_and_can_be_deleted(
    client: httpx.AsyncClient, app: Application, flow: None
) -> None:
    fields = {"cronExpression": "@every 5m"}
    await client.put(ONE, json=fields)
    await change_row(app, overlap="Sometimes")
    for answer in (
        await client.get(ONE),
        await client.put(ONE, json=fields),
        await client.put(f"{ONE}?dryRun=true", json=fields),
        await client.post(ALL, json={"name": "nightly", **fields}),
        await client.post(f"{ONE}/pause"),
    ):
        detail = assert_problem(answer, 500, "InternalServerError")["detail"]
        assert detail.startswith("schedule nightly of flow etl is damaged: ")
        assert detail.endswith("; delete the schedule and create it again")
    assert (await client.get(ALL)).json()["schedules"] == []
    assert (await client.delete(ONE)).status_code == 204
    assert (await client.put(ONE, json=fields)).status_code == 201
