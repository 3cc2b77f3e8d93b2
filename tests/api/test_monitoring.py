"""/metrics, /readyz and /healthz: contents, access, and answers while the database is down."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from math import inf
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import Connection, delete, func, select
from sqlalchemy import text as sql
from sqlalchemy.exc import OperationalError

from flowserver.invokers.calls import Failed
from flowserver.metrics.process_metrics import GAUGES
from flowserver.operations import monitoring
from flowserver.operations.monitoring import CENSUS_SECONDS
from flowserver.server import Application, create_app
from flowserver.settings import Settings
from flowserver.store.schema.tables import nonces, scopes
from flowserver.store.sql.database import Database
from tests.api.conftest import client_of
from tests.api.rest.conftest import PASS, WAIT
from tests.support.access_key import TOKEN, create_database_with_key

PATIENCE_SECONDS = 60


def samples(response: httpx.Response) -> dict[str, float]:
    """Every sample by name and labels, as Prometheus itself reads the text."""
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/plain; version=")
    return {
        sample.name + "".join(f" {name}={value}" for name, value in sample.labels.items()): sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
    }


def forget_census(app: Application) -> None:
    app.state.operations.monitoring._census._until = 0.0


def take_away(app: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def fail():
        raise OperationalError("SELECT", None, Exception("away"))
        yield

    for way in ("read", "look"):
        monkeypatch.setattr(app.state.engine.database, way, fail)


async def test_executions_and_calls_are_counted(client: httpx.AsyncClient, app: Application) -> None:
    for flow, text in (("p", PASS), ("w", WAIT)):
        await client.put(f"/v1/flows/{flow}", json={"definition": text})
        await client.post(f"/v1/flows/{flow}/executions?wait={60 if flow == 'p' else 0}", json={"name": "e"})
    await client.post("/v1/flows/w/executions", json={"name": "stopped"})
    await client.post("/v1/flows/w/executions/stopped/stop")
    seen = samples(await client.get("/metrics"))
    assert seen["flowserver_ended_executions_total status=Succeeded"] == 1
    assert seen["flowserver_ended_executions_total status=Stopped"] == 1
    assert seen["flowserver_running_executions"] == 1
    assert seen["flowserver_stuck_executions"] == seen["flowserver_parked_executions"] == 0
    assert seen["flowserver_nodes"] == seen["flowserver_database_up"] == 1
    assert seen["flowserver_commits_total"] == seen["flowserver_commit_seconds_count"] >= 6
    assert seen["flowserver_batch_items_sum"] >= seen["flowserver_batch_items_count"] >= 6
    assert set(GAUGES) <= set(seen)


async def test_invocations_and_queues_are_counted(client: httpx.AsyncClient, app: Application) -> None:
    """One invocation is under way, another waits for the function's only slot, and a long poll waits for a message."""
    held = asyncio.Event()

    async def hold(*_: Any) -> Any:
        await held.wait()
        return Failed("FC.Unknown", "held for long enough")

    engine = app.state.engine
    engine.invoker.exchange = hold
    function = {"url": "http://127.0.0.1:9/pay", "concurrencyMax": 1}
    (await client.put("/v1/functions/shop/pay", json=function)).raise_for_status()
    (await client.put("/queues/q")).raise_for_status()
    submitting = {"X-Fc-Invocation-Type": "Async"}
    for _ in range(2):
        path = "/2016-08-15/services/shop/functions/pay/invocations"
        assert (await client.post(path, content=b"{}", headers=submitting)).status_code == 202
    poll = asyncio.create_task(client.get("/queues/q/messages?waitseconds=30"))
    wanted = {"invocations_in_flight": 1, "invocations_waiting": 1, "polls_waiting": 1, "deliveries_in_flight": 0}
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            seen = samples(await client.get("/metrics"))
            if all(seen[f"flowserver_{name}"] == value for name, value in wanted.items()):
                break
    held.set()
    engine.queues.release()
    await poll


async def test_the_lateness_of_waits(client: httpx.AsyncClient) -> None:
    began = time.monotonic()
    soon = "version: v1\ntype: flow\nsteps:\n  - {type: wait, name: w, timestamp: $.at}\n"
    await client.put("/v1/flows/w", json={"definition": soon.replace("timestamp: $.at", "duration: 1")})
    await client.post("/v1/flows/w/executions?wait=60", json={"name": "e"})
    seen = samples(await client.get("/metrics"))
    assert seen["flowserver_wakeup_lateness_seconds_count"] == 1
    assert seen["flowserver_wakeup_lateness_seconds_sum"] < time.monotonic() - began


async def test_concurrent_requests_share_one_count_of_rows(client: httpx.AsyncClient, app: Application) -> None:
    await client.put("/v1/flows/w", json={"definition": WAIT})
    await client.post("/v1/flows/w/executions", json={"name": "e"})
    assert samples(await client.get("/metrics"))["flowserver_stuck_executions"] == 0
    app.state.operations.monitoring._census._until = inf  # however long the next lines take
    with app.state.engine.database.write() as connection:
        connection.execute(delete(scopes))
    assert samples(await client.get("/metrics"))["flowserver_stuck_executions"] == 0
    forget_census(app)
    answers = await asyncio.gather(*(client.get("/metrics") for _ in range(20)))
    assert {samples(answer)["flowserver_stuck_executions"] for answer in answers} == {1}
    assert CENSUS_SECONDS < 10


async def test_while_the_database_is_down(
    client: httpx.AsyncClient, app: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await client.get("/readyz")).status_code == 200
    with monkeypatch.context() as away:
        take_away(app, away)
        app.state.operations.monitoring._probe._until = 0.0
        forget_census(app)
        seen = samples(await client.get("/metrics"))
        assert seen["flowserver_database_up"] == 0
        assert "flowserver_stuck_executions" not in seen
        assert "flowserver_pending_messages" in seen  # known to this process alone; a loop may just be writing
        assert (await client.get("/readyz")).status_code == 503
        assert (await client.get("/healthz")).status_code == 200
    app.state.operations.monitoring._probe._until = 0.0
    forget_census(app)
    assert samples(await client.get("/metrics"))["flowserver_database_up"] == 1
    assert (await client.get("/readyz")).status_code == 200


def forget_readiness(app: Application) -> None:
    app.state.operations.monitoring._probe._until = 0.0


async def test_readiness_follows_commits(
    client: httpx.AsyncClient, app: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reads continue, as on a full disk."""
    assert (await client.get("/readyz")).status_code == 200
    database = app.state.engine.database
    with monkeypatch.context() as full:

        @contextmanager
        def fail():
            with type(database).write(database):
                raise OperationalError("COMMIT", None, Exception("database or disk is full"))
                yield

        full.setattr(database, "write", fail)
        forget_readiness(app)
        assert (await client.get("/readyz")).status_code == 503
        assert (await client.get("/v1/flows")).status_code == 200
    forget_readiness(app)
    assert (await client.get("/readyz")).status_code == 200


async def test_a_stuck_writer_is_not_ready(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """One try at a time, for any number of requests."""
    monkeypatch.setattr(monitoring, "PATIENCE_SECONDS", 0.05)
    url = database.url.render_as_string(hide_password=False)
    app = create_app(Settings(database_url=url, drain_seconds=0))
    async with _running(app) as client:
        with database.write() as connection:
            if not database.is_sqlite:
                connection.execute(sql("LOCK TABLE nonces IN ACCESS EXCLUSIVE MODE"))
            forget_readiness(app)
            trials = set()
            for _ in range(3):
                assert (await client.get("/readyz")).status_code == 503
                trials.add(app.state.operations.monitoring._probe._task)
        [trial] = trials
        await trial
        app.state.operations.monitoring._probe._patience_seconds = 60
        assert (await client.get("/readyz")).status_code == 200


async def test_readiness_writes_once_a_second_at_most(client: httpx.AsyncClient, app: Application) -> None:
    await client.get("/readyz")
    forget_readiness(app)
    app.state.operations.monitoring._probe._seconds *= 600  # the requests may take long
    before = app.state.engine.database.run_read(count_nonces)
    assert {(await client.get("/readyz")).status_code for _ in range(20)} == {200}
    assert before == app.state.engine.database.run_read(count_nonces) == 1
    assert app.state.operations.monitoring._probe._until > asyncio.get_running_loop().time()


def count_nonces(connection: Connection) -> int:
    return connection.execute(select(func.count()).select_from(nonces)).scalar_one()


async def test_a_leaving_server_is_not_ready(client: httpx.AsyncClient, app: Application) -> None:
    assert (await client.get("/readyz")).json() == {"status": "ready"}
    await app.state.engine.leave()
    answer = await client.get("/readyz")
    assert (answer.status_code, answer.json()) == (503, {"status": "not ready"})
    assert (await client.get("/healthz")).status_code == 200


async def test_an_open_server_answers_local_programs_only(client: httpx.AsyncClient) -> None:
    assert (await client.get("/metrics", headers={"Host": "localhost:8080"})).status_code == 200
    for foreign in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        assert (await client.get("/metrics", headers=foreign)).status_code == 403


async def test_a_server_with_keys_answers_all_clients(tmp_path) -> None:
    url = f"sqlite:///{tmp_path}/flows.db"
    create_database_with_key(url)
    async with _running(create_app(Settings(database_url=url))) as client:
        assert TOKEN not in (await client.get("/metrics", headers={"Host": "flows.example"})).text
        assert samples(await client.get("/metrics", headers={"Host": "flows.example"}))["flowserver_nodes"] == 1


async def test_every_application_has_its_own_counters(sqlite_url: str, tmp_path) -> None:
    other_url = f"sqlite:///{tmp_path}/other.db"
    create_database_with_key(other_url)
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(_running(create_app(Settings(database_url=sqlite_url))))
        second = await stack.enter_async_context(_running(create_app(Settings(database_url=other_url))))
        await first.put("/v1/flows/p", json={"definition": PASS})
        await first.post("/v1/flows/p/executions?wait=60", json={"name": "e"})
        ended = "flowserver_ended_executions_total status=Succeeded"
        assert samples(await first.get("/metrics"))[ended] == 1
        assert samples(await second.get("/metrics"))[ended] == 0


@asynccontextmanager
async def _running(app: Application) -> AsyncIterator[httpx.AsyncClient]:
    async with app.router.lifespan_context(app), client_of(app) as opened:
        yield opened
