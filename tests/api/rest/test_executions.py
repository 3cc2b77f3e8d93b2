"""Executions: started, awaited, listed, stopped."""

import asyncio
import json

import httpx
import pytest
from sqlalchemy import select, update

from flowserver.server import Application
from flowserver.store.schema.tables import execution_documents, executions
from tests.api.rest.conftest import PASS, WAIT, assert_problem

HERE = "/v1/flows/order/executions"


@pytest.fixture(autouse=True)
async def flows(client: httpx.AsyncClient) -> None:
    """`order` ends at once, `parcel` takes an hour."""
    await client.put("/v1/flows/order", json={"definition": PASS})
    await client.put("/v1/flows/parcel", json={"definition": WAIT})


async def test_start_and_wait(client: httpx.AsyncClient) -> None:
    response = await client.post(f"{HERE}?wait=60", json={"name": "run", "input": {"a": [1, None]}})
    execution = response.json()
    assert response.status_code == 201
    assert response.headers["location"] == f"{HERE}/run"
    assert execution["flowName"] == "order"
    assert execution["name"] == "run"
    assert execution["status"] == "Succeeded"
    assert execution["input"] == {"a": [1, None]}
    assert execution["output"] == {}
    assert execution["definition"] == PASS
    assert [execution[name] for name in ("error", "cause", "parkedError")] == [None, None, None]
    assert execution["startedTime"] <= execution["stoppedTime"]
    assert (await client.get(f"{HERE}/run")).json() == execution


async def test_documents_are_left_out_on_request(client: httpx.AsyncClient) -> None:
    whole = (await client.post(f"{HERE}?wait=60", json={"name": "run", "input": {"a": 1}})).json()
    state = {name: value for name, value in whole.items() if name not in ("input", "output", "definition")}
    assert (await client.get(f"{HERE}/run?documents=false&wait=1")).json() == state
    assert (await client.get(f"{HERE}/run?documents=true")).json() == whole
    shown = (await client.get(f"{HERE}/run?documents=false&currentSteps=true")).json()
    assert shown == {**state, "currentSteps": [], "currentStepCount": 0}
    assert_problem(await client.get(f"{HERE}/run?documents=maybe"), 400, "InvalidArgument")


async def test_start_without_a_body(client: httpx.AsyncClient) -> None:
    response = await client.post("/v1/flows/parcel/executions")
    execution = response.json()
    assert response.status_code == 201
    assert (execution["status"], execution["input"], execution["output"]) == ("Running", {}, None)
    assert execution["stoppedTime"] is None
    assert response.headers["location"] == f"/v1/flows/parcel/executions/{execution['name']}"
    assert (await client.get(response.headers["location"])).json() == execution


async def test_a_named_start_is_idempotent_while_it_runs(client: httpx.AsyncClient) -> None:
    inputs = ['{"n": 1, "m": [2]}', '{"m":[2],"n":1}'] * 2
    starts = [
        client.post(
            "/v1/flows/parcel/executions",
            content=f'{{"name": "run", "input": {text}}}',
            headers={"Content-Type": "application/json"},
        )
        for text in inputs
    ]
    responses = await asyncio.gather(*starts)
    assert sorted(response.status_code for response in responses) == [200, 200, 200, 201]
    assert len({response.text for response in responses}) == 1


@pytest.mark.parametrize("other", [{}, {"n": 2}, {"n": 1.0}, {"n": True}, {"n": 1, "m": None}])
async def test_a_name_with_another_input_is_a_conflict(client: httpx.AsyncClient, other: dict) -> None:
    started = await client.post("/v1/flows/parcel/executions", json={"name": "run", "input": {"n": 1}})
    refused = await client.post("/v1/flows/parcel/executions", json={"name": "run", "input": other})
    assert_problem(refused, 409, "ExecutionAlreadyExists")
    assert (await client.get("/v1/flows/parcel/executions/run")).json() == started.json()


async def test_a_name_is_used_once(client: httpx.AsyncClient) -> None:
    await client.post(f"{HERE}?wait=60", json={"name": "run"})
    assert_problem(await client.post(HERE, json={"name": "run"}), 400, "ExecutionAlreadyExists")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"name": "1a"}, "`name`"),
        ({"name": "a:b"}, "`name`"),
        ({"input": []}, "`input` must be a JSON object"),
        ({"input": "{}"}, "`input`"),
        ({"Input": {}}, "`Input` is not known here"),
        ({"callbackTaskToken": "made up"}, "token"),
    ],
)
async def test_errors_in_a_start_are_reported(client: httpx.AsyncClient, body: dict, words: str) -> None:
    problem = assert_problem(await client.post(HERE, json=body), 400, "InvalidArgument")
    assert words in problem["detail"]
    assert (await client.get(HERE)).json()["executions"] == []


async def test_a_large_input_is_refused(client: httpx.AsyncClient) -> None:
    response = await client.post(HERE, json={"input": {"x": "y" * 262_144}})
    assert "262144" in assert_problem(response, 400, "InvalidArgument")["detail"]


@pytest.mark.parametrize("wait", ["-1", "61", "1.5", "soon", "1&wait=99"])
async def test_a_wait_has_bounds(client: httpx.AsyncClient, wait: str) -> None:
    assert_problem(await client.post(f"{HERE}?wait={wait}"), 400, "InvalidArgument")
    assert_problem(await client.get(f"{HERE}/run?wait={wait}"), 400, "InvalidArgument")
    assert (await client.get(HERE)).json()["executions"] == []


async def test_a_reader_can_wait_for_the_end(client: httpx.AsyncClient, app: Application) -> None:
    await client.post("/v1/flows/parcel/executions", json={"name": "run"})
    reading = asyncio.create_task(client.get("/v1/flows/parcel/executions/run?wait=60"))
    stopped = (await client.post("/v1/flows/parcel/executions/run/stop")).json()
    assert stopped.pop("runningSubFlows") == []
    assert (await reading).json() == stopped
    assert stopped["status"] == "Stopped"


async def test_a_stop_records_its_reason(client: httpx.AsyncClient) -> None:
    await client.post("/v1/flows/parcel/executions", json={"name": "run"})
    why = {"error": "Cancelled", "cause": "she changed her mind"}
    response = await client.post("/v1/flows/parcel/executions/run/stop", json=why)
    execution = response.json()
    assert response.status_code == 200
    assert (execution["status"], execution["error"], execution["cause"]) == ("Stopped", *why.values())
    again = await client.post("/v1/flows/parcel/executions/run/stop", json=why)
    assert_problem(again, 400, "ExecutionAlreadyCompleted")


async def test_a_parked_execution_is_shown_listed_and_restarted(client: httpx.AsyncClient, app: Application) -> None:
    here = "/v1/flows/parcel/executions"
    for name in ("run", "other"):
        await client.post(here, json={"name": name})
    assert_problem(await client.post(f"{here}/run/restart"), 409, "ExecutionNotParked")
    with app.state.engine.database.write() as connection:
        of_run = executions.c.name == "run"
        connection.execute(update(executions).where(of_run).values(parked_error="a bug"))
        ids = select(executions.c.execution_id).where(of_run)
        damaged = execution_documents.c.execution_id.in_(ids)
        connection.execute(update(execution_documents).where(damaged).values(input="{", output="["))
    seen = (await client.get(f"{here}/run")).json()
    assert (seen["status"], seen["parkedError"], seen["input"], seen["output"]) == ("Running", "a bug", {}, None)
    for parked, names in (("true", ["run"]), ("false", ["other"])):
        page = (await client.get(here, params={"parked": parked})).json()
        assert [each["name"] for each in page["executions"]] == names
    again = (await client.post(f"{here}/run/restart")).json()
    assert "the stored input cannot be read" in again["parkedError"]
    with app.state.engine.database.write() as connection:
        connection.execute(update(execution_documents).values(input="{}", output=None))
    assert (await client.post(f"{here}/run/restart")).json()["parkedError"] is None
    await client.post(f"{here}/run/stop")
    assert_problem(await client.post(f"{here}/run/restart"), 400, "ExecutionAlreadyCompleted")
    assert_problem(await client.post(f"{here}/none/restart"), 404, "ExecutionNotExists")


@pytest.mark.parametrize(
    "body",
    [{"error": ""}, {"error": "x" * 129}, {"cause": ""}, {"cause": "x" * 4097}, {"error": "a\0"}, {"cuase": "x"}],
)
async def test_stop_refuses_a_wrong_reason(client: httpx.AsyncClient, body: dict) -> None:
    await client.post("/v1/flows/parcel/executions", json={"name": "run"})
    assert_problem(await client.post("/v1/flows/parcel/executions/run/stop", json=body), 400, "InvalidArgument")
    assert (await client.get("/v1/flows/parcel/executions/run")).json()["status"] == "Running"


async def test_executions_that_do_not_exist(client: httpx.AsyncClient) -> None:
    assert_problem(await client.get(f"{HERE}/run"), 404, "ExecutionNotExists")
    assert_problem(await client.get("/v1/flows/none/executions/run"), 404, "FlowNotExists")
    assert_problem(await client.get("/v1/flows/none/executions"), 404, "FlowNotExists")
    assert_problem(await client.post("/v1/flows/none/executions"), 404, "FlowNotExists")
    assert_problem(await client.post(f"{HERE}/run/stop"), 404, "ExecutionNotExists")
    assert_problem(await client.post("/v1/flows/none/executions/run/stop"), 404, "FlowNotExists")


async def names_of(client: httpx.AsyncClient, **query: object) -> list[str]:
    response = await client.get(HERE, params=query)
    assert response.status_code == 200, response.text
    return [execution["name"] for execution in response.json()["executions"]]


class TestListing:
    async def test_pages_start_with_the_newest(self, client: httpx.AsyncClient) -> None:
        for name in ("a1", "a2", "b1"):
            await client.post(f"{HERE}?wait=60", json={"name": name})
        first = (await client.get(HERE, params={"limit": 2})).json()
        second = (await client.get(HERE, params={"limit": 2, "nextToken": first["nextToken"]})).json()
        assert second["nextToken"] is None
        shown = first["executions"] + second["executions"]
        assert {execution["name"] for execution in shown} == {"a1", "a2", "b1"}
        started = [execution["startedTime"] for execution in shown]
        assert started == sorted(started, reverse=True)
        assert not {"input", "output", "definition"} & set(shown[0])

    async def test_conditions(self, client: httpx.AsyncClient) -> None:
        for name in ("a1", "a2", "b_"):
            await client.post(f"{HERE}?wait=60", json={"name": name})
        started = (await client.get(f"{HERE}/a2")).json()["startedTime"]
        assert set(await names_of(client, namePrefix="a")) == {"a1", "a2"}
        assert await names_of(client, namePrefix="_") == []
        assert await names_of(client, status="Running") == []
        assert len(await names_of(client, status="Succeeded")) == 3
        assert "a2" in await names_of(client, startedFrom=started, startedTo=started)
        assert "a2" in await names_of(client, startedFrom=started.lower(), startedTo=started.lower())
        assert await names_of(client, startedTo="2000-01-01T00:00:00Z") == []
        assert await names_of(client, startedFrom="2000-01-01T00:00:00+08:00", namePrefix="b", status="Succeeded") == [
            "b_"
        ]

    @pytest.mark.parametrize(
        ("query", "name"),
        [
            ("limit=101", "limit"),
            ("status=Done", "status"),
            ("status=running", "status"),
            ("startedFrom=yesterday", "startedFrom"),
            ("startedTo=2026-01-01", "startedTo"),
            ("startedTo=2026-01-01T00:00:00", "startedTo"),
            ("startedTo=2026-01-01T00:00:00+08:00", "startedTo"),  # an unescaped plus is a blank
            ("namePrefix=%00", "namePrefix"),
            ("staus=Running", "staus"),
        ],
    )
    async def test_wrong_conditions(self, client: httpx.AsyncClient, query: str, name: str) -> None:
        problem = assert_problem(await client.get(f"{HERE}?{query}"), 400, "InvalidArgument")
        assert f"`{name}`" in problem["detail"]


async def test_a_parked_execution_is_marked(client: httpx.AsyncClient, app: Application) -> None:
    await client.post("/v1/flows/parcel/executions", json={"name": "run"})
    database = app.state.engine.database
    with database.write() as connection:
        connection.exec_driver_sql("UPDATE executions SET parked_error = 'our bug'")
    execution = (await client.get("/v1/flows/parcel/executions/run?wait=60")).json()
    assert (execution["status"], execution["parkedError"]) == ("Running", "our bug")
    stopped = (await client.post("/v1/flows/parcel/executions/run/stop")).json()
    assert (stopped["status"], stopped["parkedError"]) == ("Stopped", "our bug")


async def test_a_failed_execution_names_the_failed_step(client: httpx.AsyncClient) -> None:
    steps = [{"type": "foreach", "name": "pack", "iterationMapping": {"collection": "$.list", "item": "it"}}]
    steps[0]["steps"] = [{"type": "fail", "name": "label", "error": "Torn", "cause": "no paper"}]
    await client.put(
        "/v1/flows/order", json={"definition": json.dumps({"version": "v1", "type": "flow", "steps": steps})}
    )
    started = await client.post("/v1/flows/order/executions?wait=60", json={"name": "run", "input": {"list": [1, 2]}})
    shown = (await client.get("/v1/flows/order/executions/run")).json()
    (listed,) = (await client.get("/v1/flows/order/executions?status=Failed")).json()["executions"]
    for each in (started.json(), shown, listed):
        assert (each["failedStep"], each["error"], each["cause"]) == ("pack[0].label", "Torn", "no paper")
