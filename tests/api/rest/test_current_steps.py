"""`?currentSteps=true`: the steps that an execution is at, or at which it ended without success."""

from typing import Any

import httpx

FLOW = """\
version: v1
type: flow
steps:
  - type: parallel
    name: both
    branches:
      - steps:
          - {type: wait, name: rest, duration: 3600}
      - steps:
          - {type: wait, name: ask, duration: 60}
"""


async def _started(client: httpx.AsyncClient) -> None:
    await client.put("/v1/flows/f", content=FLOW, headers={"content-type": "application/yaml"})
    response = await client.post("/v1/flows/f/executions", json={"name": "e"})
    assert response.status_code == 201, response.text


async def _shown(client: httpx.AsyncClient) -> dict[str, Any]:
    response = await client.get("/v1/flows/f/executions/e", params={"currentSteps": True})
    shown: dict[str, Any] = response.json()
    return shown


async def test_steps_under_way_are_shown_with_what_they_wait_for(client: httpx.AsyncClient) -> None:
    await _started(client)
    execution = await _shown(client)
    steps = {each["path"]: each for each in execution["currentSteps"]}
    rest = steps["both[0].rest"]
    assert (rest["status"], rest["attempts"]) == ("Waiting", 0)
    assert rest["since"] == execution["startedTime"] < rest["until"]
    assert steps.keys() == {"both[0].rest", "both[1].ask"}
    assert execution["currentStepCount"] == 2


async def test_they_are_read_only_if_asked_for(client: httpx.AsyncClient) -> None:
    await _started(client)
    execution = (await client.get("/v1/flows/f/executions/e")).json()
    assert (execution["currentSteps"], execution["currentStepCount"]) == (None, None)


async def test_a_stopped_execution_shows_the_steps_it_was_at(client: httpx.AsyncClient) -> None:
    await _started(client)
    await client.post("/v1/flows/f/executions/e/stop")
    steps = (await _shown(client))["currentSteps"]
    assert {(each["path"], each["status"]) for each in steps} == {
        ("both[0].rest", "Aborted"),
        ("both[1].ask", "Aborted"),
    }


async def test_a_success_is_at_no_step(client: httpx.AsyncClient) -> None:
    await client.put("/v1/flows/f", content=PASS, headers={"content-type": "application/yaml"})
    await client.post("/v1/flows/f/executions", json={"name": "e"}, params={"wait": 10})
    assert (await _shown(client))["currentSteps"] == []


PASS = "version: v1\ntype: flow\nsteps: [{type: pass, name: p}]\n"


async def test_a_step_that_waits_for_a_redrive_is_shown(client: httpx.AsyncClient) -> None:
    broken = FLOW.replace("{type: wait, name: rest, duration: 3600}", "{type: wait, name: rest, duration: $.none}")
    body = {"definition": broken, "onRetriesExhausted": "waitForRedrive"}
    assert (await client.put("/v1/flows/f", json=body)).json()["onRetriesExhausted"] == "waitForRedrive"
    await client.post("/v1/flows/f/executions", json={"name": "e"})
    execution = await _shown(client)
    assert (execution["status"], execution["waitingSteps"]) == ("Running", 1)
    assert (execution["failedStep"], execution["error"]) == ("both[0].rest", "FnF.RuntimeError")
    first = execution["currentSteps"][0]
    assert (first["path"], first["status"]) == ("both[0].rest", "WaitingForRedrive")
    listed = (await client.get("/v1/executions", params={"waitingForRedrive": True})).json()
    assert [each["name"] for each in listed["executions"]] == ["e"]
    assert (await client.get("/v1/flows/f/executions", params={"waitingForRedrive": True})).json() == listed
    done = (await client.post("/v1/flows/f/redrive", json={"waitingForRedrive": True})).json()
    assert done["executions"] == ["e"]


CALLS = """\
version: v1
type: flow
steps:
  - {type: task, name: call, resourceArn: "acs:fnf:::flow/f", pattern: sync}
"""


async def test_a_sub_flow_execution_names_its_parent(client: httpx.AsyncClient) -> None:
    await _started(client)
    await client.put("/v1/flows/caller", content=CALLS, headers={"content-type": "application/yaml"})
    await client.post("/v1/flows/caller/executions", json={"name": "p"})
    names = {"e"}
    while names == {"e"}:  # the child is started once the turn of its parent is committed
        names = {each["name"] for each in (await client.get("/v1/flows/f/executions")).json()["executions"]}
    [child] = names - {"e"}
    here = f"/v1/flows/f/executions/{child}"
    assert (await client.get(here, params={"currentSteps": True})).json()["parent"] == "caller/p"
    await client.post(f"{here}/stop")
    assert (await client.get(here, params={"currentSteps": True})).json()["parent"] == "caller/p"
    assert (await client.get(here)).json()["parent"] is None
    assert (await _shown(client))["parent"] is None
