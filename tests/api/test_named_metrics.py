"""Metrics by flow, step, function, route and queue: what they count, how they are bounded, and who sees them."""

from collections.abc import AsyncIterator
from unittest.mock import AsyncMock

import httpx
import pytest
from prometheus_client import CollectorRegistry
from sqlalchemy import Connection

from flowserver.base.limits import Limits
from flowserver.machine.attempts_under_way import AttemptsUnderWay, EndedAttempt
from flowserver.machine.events import Event, EventType
from flowserver.metrics.bounded_names import OTHER
from flowserver.metrics.flow_counts import FlowMetrics
from flowserver.metrics.request_counts import RequestMetrics
from flowserver.operations.access import make_access_key
from flowserver.operations.queues import OutgoingMessage, QueueAttributes
from flowserver.server import Application, create_app
from flowserver.settings import Settings
from flowserver.store.access_keys import insert_access_key
from tests.api.conftest import client_of
from tests.api.rest.conftest import PASS, WAIT
from tests.api.test_monitoring import forget_census, samples, take_away
from tests.support.function_server import FunctionError, FunctionServer

TASK = """\
version: v1
type: flow
steps:
  - type: task
    name: charge
    resourceArn: acs:fc:::services/shop/functions/charge
"""


async def measured(client: httpx.AsyncClient, app: Application) -> dict[str, float]:
    """All samples, counted now."""
    forget_census(app)
    return samples(await client.get("/metrics"))


async def test_flows_steps_functions_and_requests_are_counted(client: httpx.AsyncClient, app: Application) -> None:
    answers = iter([FunctionError("NoMoney"), {}, FunctionError("Broken")])
    with FunctionServer(lambda call: next(answers)) as functions:
        await client.put("/v1/functions/shop/charge", json={"url": f"{functions.url}/charge"})
        (await client.put("/v1/flows/order", json={"definition": TASK})).raise_for_status()
        for name in ("poor", "good", "bad"):
            await client.post("/v1/flows/order/executions?wait=60", json={"name": name})
    found = await measured(client, app)
    of_flow = {name: value for name, value in found.items() if "flow=order" in name and "_bucket" not in name}
    seconds = of_flow.pop("flowserver_flow_execution_seconds_sum flow=order")
    assert 0 < of_flow.pop("flowserver_step_attempt_seconds_sum flow=order step=charge") <= seconds
    assert of_flow == {
        "flowserver_flow_started_executions_total flow=order": 3,
        "flowserver_flow_ended_executions_total flow=order status=Succeeded": 1,
        "flowserver_flow_ended_executions_total flow=order status=Failed": 2,
        "flowserver_flow_errors_total error=NoMoney flow=order": 1,
        "flowserver_flow_errors_total error=Broken flow=order": 1,
        "flowserver_flow_execution_seconds_count flow=order": 3,
        "flowserver_step_attempts_total flow=order outcome=failed step=charge": 2,
        "flowserver_step_attempts_total flow=order outcome=succeeded step=charge": 1,
        "flowserver_step_attempt_seconds_count flow=order step=charge": 3,
        "flowserver_step_errors_total error=NoMoney flow=order step=charge": 1,
        "flowserver_step_errors_total error=Broken flow=order step=charge": 1,
    }
    assert seconds > 0
    assert found["flowserver_function_calls_total function=shop/charge result=ok"] == 1
    assert found["flowserver_function_calls_total function=shop/charge result=NoMoney"] == 1
    assert found["flowserver_function_calls_total function=shop/charge result=Broken"] == 1
    assert found["flowserver_function_call_seconds_count function=shop/charge"] == 3
    assert found["flowserver_function_calls_in_flight function=shop/charge"] == 0
    assert found["flowserver_function_retries_total function=shop/charge"] == 0
    assert found["flowserver_http_requests_total api=REST route=put_flow status=201"] == 1
    assert found["flowserver_http_requests_total api=REST route=start_execution status=201"] == 3
    await client.post("/", data={"Action": "ListFlows", "Version": "2019-03-15"})
    await client.get("/v1/nothing/here")
    found = await measured(client, app)
    assert found["flowserver_http_requests_total api=RPC route=ListFlows status=200"] == 1
    assert found["flowserver_http_request_seconds_count api=RPC route=ListFlows"] == 1
    assert not any("nothing" in name for name in found)


async def test_ages_and_queues_are_measured(client: httpx.AsyncClient, app: Application) -> None:
    nothing = await measured(client, app)
    assert nothing["flowserver_oldest_running_execution_seconds"] == 0
    assert nothing["flowserver_oldest_waiting_task_seconds"] == 0
    queues = app.state.operations.queues
    for name in ("empty", "full"):
        await queues.create(name, QueueAttributes())
    await queues.send("full", [OutgoingMessage(body=text) for text in "abc"])
    await queues.send("full", [OutgoingMessage(body="d", delay_seconds=600)])
    assert len(await queues.receive("full")) == 1
    await client.put("/v1/flows/w", json={"definition": WAIT})
    await client.post("/v1/flows/w/executions", json={"name": "e"})

    def make_old(connection: Connection) -> None:
        connection.exec_driver_sql("UPDATE executions SET started_at = started_at - 5000000")
        connection.exec_driver_sql("UPDATE queue_messages SET enqueued_at = enqueued_at - 7000000")

    await app.state.engine.committer.write(make_old)
    found = await measured(client, app)
    assert 5_000 <= found["flowserver_oldest_running_execution_seconds"] < 6_000
    states = [
        found[f"flowserver_queue_messages queue=full state={each}"] for each in ("visible", "inflight", "delayed")
    ]
    assert states == [2, 1, 1]
    assert 7_000 <= found["flowserver_queue_oldest_message_seconds queue=full"] < 8_000
    assert found["flowserver_queue_oldest_message_seconds queue=empty"] == 0


def test_the_first_names_are_counted_one_by_one() -> None:
    metrics = FlowMetrics(Limits(metric_flows_max=2, metric_names_max=1))
    for number, flow in enumerate(("a", "b", "c", "d", "a")):
        counts = metrics.of(flow)
        counts.started += 1
        counts.has_ended("Failed", f"E{number}", 0.1)
        failed = Event(1, 0, EventType.TASK_FAILED, f"s{number}", 0, f'{{"error": "E{number}"}}')
        counts.has_tried(EndedAttempt(failed, None))
    registry = CollectorRegistry()
    registry.register(metrics)

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(name, labels)

    started = [value("flowserver_flow_started_executions_total", flow=flow) for flow in ("a", "b", "c", OTHER)]
    assert started == [2, 1, None, 2]
    assert [value("flowserver_flow_errors_total", flow="a", error=name) for name in ("E0", "E4", OTHER)] == [1, None, 1]
    attempts = "flowserver_step_attempts_total"
    assert [value(attempts, flow="a", step=name, outcome="failed") for name in ("s0", "s4", OTHER)] == [1, None, 1]
    errors = "flowserver_step_errors_total"
    assert [value(errors, flow="a", step="s0", error=name) for name in ("E0", OTHER)] == [1, None]
    assert [value(errors, flow="a", step=OTHER, error=name) for name in ("E4", OTHER)] == [None, 1]


def test_attempts_are_measured_from_their_beginning_to_their_end() -> None:
    """A report ends an attempt that was submitted first. If another node began an attempt, its time is not known."""
    metrics, registry = FlowMetrics(Limits()), CollectorRegistry()
    registry.register(metrics)
    begin, submit, end = EventType.TASK_STARTED, EventType.TASK_SUBMITTED, EventType.TASK_SUCCEEDED
    attempts = AttemptsUnderWay()
    commits = [
        ("e", [Event(3, 2, begin, "ask", 1_000, "{}")]),
        ("e", [Event(4, 3, submit, "ask", 1_100, "{}")]),
        ("f", [Event(4, 3, end, "ask", 9_000, "{}")]),
        ("e", [Event(5, 4, end, "ask", 3_000, "{}")]),
    ]
    for execution_id, events in commits:
        for ended in attempts.committed(execution_id, events):
            metrics.of("order").has_tried(ended)
    labels = {"flow": "order", "step": "ask"}
    assert registry.get_sample_value("flowserver_step_attempt_seconds_count", labels) == 1
    assert registry.get_sample_value("flowserver_step_attempt_seconds_sum", labels) == 2
    assert registry.get_sample_value("flowserver_step_attempts_total", labels | {"outcome": "succeeded"}) == 2


def test_requests_of_two_processes_are_added_up() -> None:
    here, there, registry = RequestMetrics(), RequestMetrics(), CollectorRegistry()
    registry.register(here)
    for metrics in (here, there):
        metrics.count("RPC", "ListFlows", 200, 0.1)
    there.count("RPC", "ListFlows", 400, 0.3)
    here.elsewhere = there.rows()
    labels = {"api": "RPC", "route": "ListFlows"}
    for _ in range(2):  # a scrape changes nothing
        requests = [
            registry.get_sample_value("flowserver_http_requests_total", labels | {"status": status})
            for status in ("200", "400")
        ]
        assert requests == [2, 1]
        assert registry.get_sample_value("flowserver_http_request_seconds_count", labels) == 3
        assert registry.get_sample_value("flowserver_http_request_seconds_sum", labels) == pytest.approx(0.5)


def test_an_unanswered_request_is_counted() -> None:
    metrics, registry = RequestMetrics(), CollectorRegistry()
    metrics.count("RPC", "StartSyncExecution", "unanswered", 100_000)
    registry.register(metrics)
    labels = {"api": "RPC", "route": "StartSyncExecution"}
    assert registry.get_sample_value("flowserver_http_requests_total", labels | {"status": "unanswered"}) == 1
    assert registry.get_sample_value("flowserver_http_request_seconds_bucket", labels | {"le": "86400"}) == 0
    assert registry.get_sample_value("flowserver_http_request_seconds_bucket", labels | {"le": "+Inf"}) == 1


@pytest.fixture
async def closed(sqlite_url: str) -> AsyncIterator[tuple[httpx.AsyncClient, Application, dict[str, str]]]:
    """A server with keys and a flow that has run; and the tokens of a viewer, a starter, and a viewer of one flow."""
    app = create_app(Settings(database_url=sqlite_url, drain_seconds=0))
    roles = {"admin": ("admin", ""), "viewer": ("viewer", ""), "starter": ("starter", ""), "narrow": ("viewer", "a-")}
    made = {name: make_access_key(name, 0, role=role, flows=flows) for name, (role, flows) in roles.items()}
    async with app.router.lifespan_context(app), client_of(app) as client:
        for each in made.values():
            await app.state.engine.committer.write(lambda connection, key=each.key: insert_access_key(connection, key))
        tokens = {name: f"Bearer {each.token}" for name, each in made.items()}
        admin = {"Authorization": tokens["admin"]}
        await client.put("/v1/flows/hidden", json={"definition": PASS}, headers=admin)
        await client.post("/v1/flows/hidden/executions?wait=60", json={"name": "e"}, headers=admin)
        yield client, app, tokens


async def test_late_work_is_not_stuck_work(
    client: httpx.AsyncClient, app: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wait that has been due for some seconds, as on a server with too much to do."""
    monkeypatch.setattr(app.state.engine.timers, "handle_due", AsyncMock(return_value=None))
    await client.put("/v1/flows/w", json={"definition": WAIT})
    await client.post("/v1/flows/w/executions", json={"name": "e"})
    found = await measured(client, app)
    assert found["flowserver_late_executions"] == found["flowserver_late_execution_seconds"] == 0
    clock = app.state.engine.clock

    def make_due(connection: Connection) -> None:
        connection.exec_driver_sql(f"UPDATE scopes SET wake_at = {clock.now_ms() - 5_000}")

    await app.state.engine.committer.write(make_due)
    found = await measured(client, app)
    assert found["flowserver_late_executions"] == 1
    assert found["flowserver_late_execution_seconds"] >= 5


async def test_names_are_for_callers_who_may_read_the_overview(
    closed: tuple[httpx.AsyncClient, Application, dict[str, str]],
) -> None:
    client, _, tokens = closed
    for headers in ({}, {"Authorization": "Basic eDp5"}):
        shown = await client.get("/metrics", headers=headers)
        assert samples(shown)["flowserver_ended_executions_total status=Succeeded"] == 1
        assert "hidden" not in shown.text
    shown = await client.get("/metrics", headers={"Authorization": tokens["viewer"]})
    assert samples(shown)["flowserver_flow_ended_executions_total flow=hidden status=Succeeded"] == 1
    for token, status, reason in (
        (tokens["starter"], 403, "a key with the role starter may not read the overview"),
        (tokens["narrow"], 403, "the key is for flows whose names begin with"),
        ("Bearer fls_wrong", 401, "the bearer token is unknown"),
        ("Bearer ", 401, "the bearer token is unknown"),
    ):
        refused = await client.get("/metrics", headers={"Authorization": token})
        assert (refused.status_code, reason in refused.text) == (status, True), refused.text
        assert ("www-authenticate" in refused.headers) == (status == 401)
        assert "flowserver_" not in refused.text


async def test_while_the_database_is_away_a_token_gets_what_is_known_without_it(
    closed: tuple[httpx.AsyncClient, Application, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, app, tokens = closed
    headers = {"Authorization": tokens["viewer"]}
    samples(await client.get("/metrics"))
    app.state.operations.access._remembered.clear()  # as a second after its last use
    with monkeypatch.context() as away:
        take_away(app, away)
        forget_census(app)
        seen = samples(await client.get("/metrics", headers=headers))
    assert seen["flowserver_database_up"] == 0
    assert "flowserver_pending_messages" in seen


async def test_names_stay_hidden_until_the_server_is_known_to_be_open(
    closed: tuple[httpx.AsyncClient, Application, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database is away from the first scrape on."""
    client, app, _ = closed
    with monkeypatch.context() as away:
        take_away(app, away)
        shown = await client.get("/metrics")
    assert samples(shown)["flowserver_database_up"] == 0
    assert "hidden" not in shown.text


@pytest.mark.parametrize("junk", ["junk", b"\xff"])
async def test_damaged_instants_do_not_hide_the_other_metrics(
    client: httpx.AsyncClient, app: Application, junk: str | bytes
) -> None:
    await app.state.operations.queues.create("q", QueueAttributes())
    await app.state.operations.queues.send("q", [OutgoingMessage(body="x")])
    await client.put("/v1/flows/w", json={"definition": WAIT})
    await client.post("/v1/flows/w/executions", json={"name": "e"})

    def damage(connection: Connection) -> None:
        connection.exec_driver_sql("UPDATE executions SET started_at = ?", (junk,))
        connection.exec_driver_sql("UPDATE queue_messages SET enqueued_at = ?", (junk,))

    await app.state.engine.committer.write(damage)
    found = await measured(client, app)
    assert found["flowserver_database_up"] == found["flowserver_running_executions"] == 1
    assert found["flowserver_oldest_running_execution_seconds"] == 0
    assert found["flowserver_queue_oldest_message_seconds queue=q"] == 0
