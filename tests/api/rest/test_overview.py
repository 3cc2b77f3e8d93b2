"""GET /v1/overview: what runs, failed and waits, read once for all callers."""

import asyncio

import httpx

from flowserver.server import Application
from tests.api.rest.conftest import PASS, WAIT, assert_problem

FAIL = "version: v1\ntype: flow\nsteps:\n  - {type: fail, name: stop, error: Broken, cause: <b>no</b>}\n"


async def test_it_shows_what_runs_failed_and_waits(
    client: httpx.AsyncClient, app: Application, waiting: str, monkeypatch
) -> None:
    for flow, text in (("p", PASS), ("w", WAIT), ("x", FAIL)):
        await client.put(f"/v1/flows/{flow}", json={"definition": text})
        await client.post(f"/v1/flows/{flow}/executions?wait={0 if flow == 'w' else 60}", json={"name": "e"})
    shown = (await client.get("/v1/overview")).raise_for_status().json()
    assert waiting
    assert shown["flows"] == {"count": 4, "atLeast": False}
    assert [shown[each]["count"] for each in ("running", "failed", "timedOut", "waitingTasks")] == [2, 1, 0, 1]
    assert [shown[each]["count"] for each in ("late", "parked", "waitingForRedrive", "overdueSchedules")] == [0] * 4
    assert [(each["kind"], each["flowName"], each["step"]) for each in shown["attention"]] == [
        ("failed", "x", "stop"),
        ("waitingTask", "ask", "ask"),
    ]
    assert (shown["attention"][0]["error"], shown["attention"][0]["text"]) == ("Broken", "<b>no</b>")
    assert (sum(shown["throughput"]["started"]), sum(shown["throughput"]["failed"])) == (4, 1)


async def test_callers_of_all_time_zones_share_a_read(client: httpx.AsyncClient, app: Application) -> None:
    reads = 0
    ask = app.state.engine.slow_reads.ask

    async def counting(query):
        nonlocal reads
        reads += 1
        return await ask(query)

    app.state.engine.slow_reads.ask = counting
    days = ("2020-01-01T00:00:00Z", "2999-01-01T00:00:00%2B05:45", "2026-01-01T00:00:00-03:30")
    answers = await asyncio.gather(*(client.get(f"/v1/overview?failedSince={day}") for day in days))
    assert [each.status_code for each in answers] == [200] * 3
    assert reads == 1
    since = [each.json()["failedSince"] for each in answers]
    assert since[0] == since[2] < since[1]  # at most two days ago, at the latest now
    assert_problem(await client.get("/v1/overview?failedSince=today"), 400, "InvalidArgument")


async def test_without_the_database(client: httpx.AsyncClient, app: Application) -> None:
    async def fail(_):
        raise OSError

    app.state.engine.slow_reads.ask = fail
    assert_problem(await client.get("/v1/overview"), 503, "ServiceUnavailable")
