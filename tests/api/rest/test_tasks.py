"""Reports on tasks that wait for them."""

from base64 import b64decode, urlsafe_b64encode

import httpx
import pytest

from tests.api.rest.conftest import assert_problem

RUN = "/v1/flows/ask/executions/run"


async def test_success_is_the_tasks_result(client: httpx.AsyncClient, waiting: str) -> None:
    report = {"taskToken": waiting, "output": {"n": 9007199254740993}}
    response = await client.post("/v1/tasks/succeed", json=report)
    assert response.status_code == 200
    execution = (await client.get(f"{RUN}?wait=60")).json()
    assert (execution["status"], execution["output"]) == ("Succeeded", {"answer": {"n": 9007199254740993}})
    events = (await client.get(f"{RUN}/events")).json()["events"]
    [event] = [event for event in events if event["eventId"] == response.json()["eventId"]]
    assert (event["type"], event["stepName"]) == ("TaskSucceeded", "ask")
    assert event["detail"]["requestId"] == response.headers["x-request-id"]
    assert_problem(await client.post("/v1/tasks/succeed", json=report), 400, "TaskAlreadyCompleted")


async def test_a_forged_token_tells_nothing_of_what_it_names(client: httpx.AsyncClient, waiting: str) -> None:
    """The answer is the same for a task that waits, for one after its end, and for none. A real token gets another."""
    claim, _, mac = b64decode(waiting + "==", altchars=b"-_").decode().rpartition("#")
    other = claim.replace(claim.split("#")[1], "01a20000-0000-7000-8000-000000000000")

    async def answer(claim: str, mac: str) -> tuple[int, dict]:
        token = urlsafe_b64encode(f"{claim}#{mac}".encode()).decode().rstrip("=")
        answered = await client.post("/v1/tasks/succeed", json={"taskToken": token})
        return answered.status_code, answered.json() | {"requestId": ""}

    forged = "0" * len(mac)
    before = [await answer(claim, forged), await answer(other, forged), await answer(other, mac)]
    assert (await answer(claim, mac))[0] == 200
    assert_problem(await client.post("/v1/tasks/succeed", json={"taskToken": waiting}), 400, "TaskAlreadyCompleted")
    for status, body in [*before, await answer(claim, forged)]:
        assert (status, body) == before[0]
        assert (status, body["code"]) == (400, "InvalidArgument")


async def test_an_output_that_fits_a_request_but_not_the_step_is_refused_and_the_task_waits_on(
    client: httpx.AsyncClient, waiting: str
) -> None:
    large = {"taskToken": waiting, "output": {"blob": "x" * 140_000}}
    problem = assert_problem(await client.post("/v1/tasks/succeed", json=large), 400, "InvalidArgument")
    assert "input, output and local of step ask" in problem["detail"]
    assert (await client.get(RUN)).json()["status"] == "Running"
    assert (await client.post("/v1/tasks/succeed", json={"taskToken": waiting, "output": {"n": 1}})).status_code == 200
    assert (await client.get(f"{RUN}?wait=60")).json()["output"] == {"answer": {"n": 1}}


async def test_success_without_output_gives_an_empty_one(client: httpx.AsyncClient, waiting: str) -> None:
    assert (await client.post("/v1/tasks/succeed", json={"taskToken": waiting})).status_code == 200
    assert (await client.get(f"{RUN}?wait=60")).json()["output"] == {"answer": {}}


async def test_failure_fails_the_task(client: httpx.AsyncClient, waiting: str) -> None:
    report = {"taskToken": waiting, "error": "Rejected", "cause": "above the limit"}
    response = await client.post("/v1/tasks/fail", json=report, headers={"X-Request-Id": "r-1"})
    assert response.status_code == 200
    events = (await client.get(f"{RUN}/events?type=TaskFailed")).json()["events"]
    assert [each["detail"]["requestId"] for each in events] == [response.headers["x-request-id"]]
    execution = (await client.get(f"{RUN}?wait=60")).json()
    shown = (execution["status"], execution["error"], execution["cause"], execution["output"])
    assert shown == ("Failed", "Rejected", "above the limit", None)
    assert_problem(await client.post("/v1/tasks/fail", json=report), 400, "TaskAlreadyCompleted")


async def test_a_child_reports_for_itself(client: httpx.AsyncClient, waiting: str) -> None:
    definition = "version: v1\ntype: flow\nsteps:\n  - {type: fail, name: f, error: Nope, cause: because}\n"
    await client.put("/v1/flows/child", json={"definition": definition})
    response = await client.post("/v1/flows/child/executions", json={"callbackTaskToken": waiting})
    assert response.status_code == 201
    execution = (await client.get(f"{RUN}?wait=60")).json()
    assert (execution["status"], execution["error"], execution["cause"]) == ("Failed", "Nope", "because")


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        ("succeed", {"output": {}}, "MissingRequiredParams"),
        ("succeed", {"taskToken": "", "output": {}}, "InvalidArgument"),
        ("succeed", {"taskToken": "forged", "output": {}}, "InvalidArgument"),
        ("succeed", {"taskToken": "中", "output": {}}, "InvalidArgument"),
        ("succeed", {"taskToken": "x" * 100_000}, "InvalidArgument"),
        ("succeed", {"taskToken": "forged", "output": []}, "InvalidArgument"),
        ("succeed", {"taskToken": "forged", "output": None}, "InvalidArgument"),
        ("succeed", {"taskToken": "forged", "error": "x"}, "InvalidArgument"),
        ("fail", {"taskToken": "forged"}, "MissingRequiredParams"),
        ("fail", {"taskToken": "forged", "error": "x"}, "InvalidArgument"),
        ("fail", {"taskToken": "forged", "error": ""}, "InvalidArgument"),
        ("fail", {"taskToken": "forged", "error": "x" * 129}, "InvalidArgument"),
    ],
)
async def test_wrong_reports_change_nothing(
    client: httpx.AsyncClient, waiting: str, path: str, body: dict, code: str
) -> None:
    assert_problem(await client.post(f"/v1/tasks/{path}", json=body), 400, code)
    assert (await client.get(RUN)).json()["status"] == "Running"


async def test_an_output_is_limited(client: httpx.AsyncClient, waiting: str) -> None:
    report = {"taskToken": waiting, "output": {"x": "y" * 262_144}}
    assert_problem(await client.post("/v1/tasks/succeed", json=report), 400, "InvalidArgument")
    assert (await client.get(RUN)).json()["status"] == "Running"


async def test_waiting_tasks_are_listed_until_they_are_reported(client: httpx.AsyncClient, waiting: str) -> None:
    [task] = (await client.get("/v1/tasks")).json()["tasks"]
    assert (task["flowName"], task["executionName"], task["stepName"]) == ("ask", "run", "ask")
    assert task["taskToken"] == waiting
    assert (await client.get("/v1/tasks?flow=ask")).json()["tasks"] == [task]
    assert (await client.get("/v1/tasks?flow=ask&execution=run")).json()["tasks"] == [task]
    entered = (await client.get("/v1/flows/ask/executions/run/events?type=StepEntered")).json()["events"]
    assert [event["eventId"] for event in entered] == [task["enteredEventId"]]
    await client.post("/v1/flows/ask/executions", json={"name": "other"})
    assert (await client.get("/v1/tasks?flow=ask&execution=run")).json() == {"tasks": [task], "nextToken": None}
    assert_problem(await client.get("/v1/tasks?flow=ask&execution=none"), 404, "ExecutionNotExists")
    assert_problem(await client.get("/v1/tasks?execution=run"), 400, "InvalidArgument")
    await client.post("/v1/flows/ask/executions/other/stop")
    assert (await client.get("/v1/tasks?olderThanSeconds=86400")).json() == {"tasks": [], "nextToken": None}
    assert_problem(await client.get("/v1/tasks?flow=none"), 404, "FlowNotExists")
    for token in ("x", "1", "9999999999:e", ":e"):
        assert_problem(await client.get(f"/v1/tasks?nextToken={token}"), 400, "InvalidArgument")
    await client.post("/v1/tasks/succeed", json={"taskToken": waiting})
    assert (await client.get("/v1/tasks")).json()["tasks"] == []
