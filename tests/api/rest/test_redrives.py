"""Redrives over REST: one execution, many executions, and dry runs."""

import httpx
import pytest

from tests.api.rest.conftest import PASS, WAIT, assert_problem

HERE = "/v1/flows/order/executions/run"
FAIL = f"{PASS}  - type: fail\n    name: broken\n    error: E1\n"


@pytest.fixture(autouse=True)
async def run(client: httpx.AsyncClient) -> None:
    """An execution that has failed in its second step."""
    await client.put("/v1/flows/order", json={"definition": FAIL})
    await client.post("/v1/flows/order/executions?wait=60", json={"name": "run"})


async def test_it_continues_with_the_present_definition(client: httpx.AsyncClient) -> None:
    await client.put(
        "/v1/flows/order", json={"definition": FAIL.replace("fail\n", "wait\n").replace("error: E1", "duration: 3600")}
    )
    response = await client.post(f"{HERE}/redrive", json={"definition": "current", "clientToken": "t"})
    execution = response.json()
    assert (response.status_code, execution["status"], execution["error"]) == (200, "Running", None)
    assert (execution["redriveCount"], execution["stoppedTime"]) == (1, None)
    assert execution["lastRedriveTime"] >= execution["startedTime"]
    assert (await client.get(HERE)).json() == execution
    assert (await client.post(f"{HERE}/redrive", json={"clientToken": "t"})).json() == execution
    assert_problem(await client.post(f"{HERE}/redrive"), 409, "ExecutionNotRedrivable")
    events = (await client.get(f"{HERE}/events", params={"limit": 100})).json()["events"]
    assert [event["eventId"] for event in events] == list(range(1, len(events) + 1))
    assert [event["detail"] for event in events if event["type"] == "ExecutionRedriven"] == [
        {"redriveCount": 1, "definition": "current"}
    ]


async def test_a_repeated_start_finds_the_execution_that_was_redriven_to_a_version(client: httpx.AsyncClient) -> None:
    await client.put(
        "/v1/flows/order", json={"definition": FAIL.replace("fail\n", "wait\n").replace("error: E1", "duration: 3600")}
    )
    await client.post("/v1/flows/order/versions")
    redriven = (await client.post(f"{HERE}/redrive", json={"definition": 1})).json()
    again = await client.post("/v1/flows/order/executions", json={"name": "run"})
    assert (again.status_code, again.json()) == (200, redriven)
    refused = await client.post("/v1/flows/order/executions", json={"name": "run", "input": {"n": 1}})
    assert_problem(refused, 409, "ExecutionAlreadyExists")


async def test_a_dry_run_changes_nothing(client: httpx.AsyncClient) -> None:
    before = (await client.get(HERE)).json()
    response = await client.post(f"{HERE}/redrive", json={"dryRun": True})
    assert response.json() == {
        "redrivable": True,
        "reasons": [],
        "endReported": False,
        "redriveInstead": None,
        "againCount": 1,
        "failedCount": 1,
        "abortedCount": 0,
        "callsAgainCount": 0,
        "again": [{"path": "broken", "why": "failed"}],
        "keptCount": 1,
        "kept": [{"step": "p", "times": 1, "undoneBy": None}],
        "children": [],
    }
    await client.put("/v1/flows/order", json={"definition": PASS})
    response = await client.post(f"{HERE}/redrive", json={"dryRun": True, "definition": "current"})
    assert (response.json()["redrivable"], response.json()["reasons"]) == (
        False,
        ["step broken is not in the definition"],
    )
    assert (await client.get(HERE)).json() == before


async def test_without_a_body_it_repeats_the_failed_step(client: httpx.AsyncClient) -> None:
    assert (await client.post(f"{HERE}/redrive")).status_code == 200
    execution = (await client.get(f"{HERE}?wait=60")).json()
    assert (execution["status"], execution["error"], execution["redriveCount"]) == ("Failed", "E1", 1)


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"definition": "newest"}, "definition"),
        ({"definition": 0}, "definition"),
        ({"clientToken": ""}, "clientToken"),
        ({"input": 1}, "input"),
        ({"more": 1}, "more"),
    ],
)
async def test_invalid_redrives_are_refused(client: httpx.AsyncClient, body: dict, named: str) -> None:
    response = await client.post(f"{HERE}/redrive", json=body)
    assert response.status_code == 400
    assert named in response.text


async def test_executions_that_do_not_exist(client: httpx.AsyncClient) -> None:
    missing = await client.post("/v1/flows/order/executions/none/redrive")
    assert_problem(missing, 404, "ExecutionNotExists")
    assert_problem(await client.post("/v1/flows/none/executions/run/redrive"), 404, "FlowNotExists")
    assert_problem(await client.post("/v1/flows/none/redrive"), 404, "FlowNotExists")


async def test_many_in_pages(client: httpx.AsyncClient) -> None:
    await client.put("/v1/flows/parcel", json={"definition": WAIT})
    for number in range(3):
        await client.post("/v1/flows/parcel/executions", json={"name": f"e{number}"})
        await client.post(f"/v1/flows/parcel/executions/e{number}/stop", json={"error": "Enough"})
    wanted = {"status": "Stopped", "error": "Enough", "limit": 2}
    first = (await client.post("/v1/flows/parcel/redrive", json=wanted)).json()
    second = (await client.post("/v1/flows/parcel/redrive", json=wanted | {"nextToken": first["nextToken"]})).json()
    assert (first["redriven"], second["redriven"], second["nextToken"]) == (2, 1, None)
    assert sorted(first["executions"] + second["executions"]) == ["e0", "e1", "e2"]
    running = await client.get("/v1/flows/parcel/executions?status=Running")
    assert len(running.json()["executions"]) == 3
    other = (await client.post("/v1/flows/parcel/redrive", json={"error": "Other"})).json()
    assert (other["redriven"], other["nextToken"]) == (0, None)
    refused = await client.post("/v1/flows/parcel/redrive", json={"status": "Running"})
    assert_problem(refused, 400, "InvalidArgument")


async def test_only_those_that_are_named(client: httpx.AsyncClient) -> None:
    """If they match the other conditions, too; in pages."""
    await client.put("/v1/flows/parcel", json={"definition": WAIT})
    for number in range(5):
        await client.post("/v1/flows/parcel/executions", json={"name": f"e{number}"})
        error = "Enough" if number else "Other"
        await client.post(f"/v1/flows/parcel/executions/e{number}/stop", json={"error": error})
    wanted = {"status": "Stopped", "error": "Enough", "executions": ["e0", "e1", "e2", "e3", "none"], "limit": 2}
    done: list[str] = []
    token = None
    while not done or token is not None:
        page = (await client.post("/v1/flows/parcel/redrive", json=wanted | {"nextToken": token})).json()
        done += page["executions"]
        token = page["nextToken"]
    assert sorted(done) == ["e1", "e2", "e3"]
    for names in ([], ["a/b"], ["e"] * 101):
        refused = await client.post("/v1/flows/parcel/redrive", json={"executions": names})
        assert_problem(refused, 400, "InvalidArgument")


async def test_a_repeated_request_leaves_alone_what_it_has_redriven(client: httpx.AsyncClient) -> None:
    """Also what has failed again since; another token redrives it."""
    body = {"clientToken": "t"}
    first = (await client.post("/v1/flows/order/redrive", json=body)).json()
    assert (first["redriven"], first["executions"], first["repeated"]) == (1, ["run"], [])
    assert (await client.get(f"{HERE}?wait=60")).json()["status"] == "Failed"
    again = (await client.post("/v1/flows/order/redrive", json=body)).json()
    assert (again["redriven"], again["repeated"], again["refused"]) == (0, ["run"], [])
    assert (await client.get(HERE)).json()["redriveCount"] == 1
    other = (await client.post("/v1/flows/order/redrive", json={"clientToken": "u"})).json()
    assert (other["redriven"], other["repeated"]) == (1, [])


async def test_refused_redrives_do_not_prevent_others(client: httpx.AsyncClient) -> None:
    await client.put("/v1/flows/order", json={"definition": PASS})
    done = (await client.post("/v1/flows/order/redrive", json={"definition": "current"})).json()
    assert (done["redriven"], done["executions"]) == (0, [])
    assert [each["name"] for each in done["refused"]] == ["run"]
    assert "step broken is not in the definition" in done["refused"][0]["reason"]


async def test_a_refusal_names_the_execution_to_redrive_instead(client: httpx.AsyncClient) -> None:
    broken = f"{PASS}  - {{type: wait, name: rest, duration: $.none}}\n"
    await client.put("/v1/flows/pay", json={"definition": broken, "onRetriesExhausted": "waitForRedrive"})
    sub = "{type: task, name: sub, resourceArn: 'acs:fnf:::flow/pay', pattern: sync}"
    await client.put("/v1/flows/shop", json={"definition": f"version: v1\ntype: flow\nsteps: [{sub}]\n"})
    await client.post("/v1/flows/shop/executions", json={"name": "s"})
    while not (found := (await client.get("/v1/executions?waitingForRedrive=true")).json()["executions"]):
        await client.get("/v1/flows/shop/executions/s?wait=1")
    child = f"pay/{found[0]['name']}"
    step = {"status": "Running"}
    while step["status"] == "Running":  # until the reply to the start is recorded, too
        (step,) = (await client.get("/v1/flows/shop/executions/s?currentSteps=true")).json()["currentSteps"]
    assert (step["status"], step["child"]) == ("WaitingForSubFlow", child)
    running = await client.post("/v1/flows/shop/executions/s/redrive")
    command = f"flowserver executions redrive {child}"
    assert f"it is running; redrive {child}, which it waits for ({command})" in running.text
    await client.post(f"/v1/flows/pay/executions/{found[0]['name']}/stop")
    parent = (await client.get("/v1/flows/shop/executions/s?wait=60&currentSteps=true")).json()
    shown = [(each["status"], each["child"]) for each in parent["currentSteps"]]
    assert (parent["status"], shown) == ("Failed", [("Failed", child)])
    ended = await client.post(f"/v1/flows/pay/executions/{found[0]['name']}/redrive")
    assert "it has reported its end to shop/s; redrive that (flowserver executions redrive shop/s)" in ended.text
    assert_problem(ended, 409, "ExecutionEndReported")
    assert ended.json()["redriveInstead"] == "shop/s"
    many = (await client.post("/v1/flows/pay/redrive", json={"status": "Stopped"})).json()
    assert [(each["code"], each["redriveInstead"]) for each in many["refused"]] == [("ExecutionEndReported", "shop/s")]
    plan = (await client.post(f"/v1/flows/pay/executions/{found[0]['name']}/redrive", json={"dryRun": True})).json()
    assert (plan["redrivable"], plan["endReported"], plan["redriveInstead"]) == (False, True, "shop/s")


async def test_the_sub_flow_by_which_a_step_failed_is_shown(client: httpx.AsyncClient) -> None:
    await client.put("/v1/flows/pay", json={"definition": f"{PASS}  - {{type: fail, name: f, error: E1}}\n"})
    sub = "{type: task, name: sub, resourceArn: 'acs:fnf:::flow/pay', pattern: sync}"
    shop = {"definition": f"version: v1\ntype: flow\nsteps: [{sub}]\n", "onRetriesExhausted": "waitForRedrive"}
    await client.put("/v1/flows/shop", json=shop)
    await client.post("/v1/flows/shop/executions", json={"name": "s"})
    while not (await client.get("/v1/executions?waitingForRedrive=true")).json()["executions"]:
        await client.get("/v1/flows/shop/executions/s?wait=1")
    (child,) = (await client.get("/v1/flows/pay/executions")).json()["executions"]
    for status in ("WaitingForRedrive", "Failed"):
        (step,) = (await client.get("/v1/flows/shop/executions/s?currentSteps=true")).json()["currentSteps"]
        assert (step["status"], step["child"]) == (status, f"pay/{child['name']}")
        await client.post("/v1/flows/shop/executions/s/stop")


async def test_iterations_that_do_not_fit_are_one_reason(client: httpx.AsyncClient) -> None:
    each = """\
version: v1
type: flow
steps:
  - type: foreach
    name: priceEach
    inputMappings: [{target: items, source: $input.items}]
    iterationMapping: {collection: $.items, item: item}
    steps: [{type: wait, name: price, duration: 3600}]
"""
    await client.put("/v1/flows/many", json={"definition": each})
    await client.post("/v1/flows/many/executions", json={"name": "m", "input": {"items": [1, 2, 3]}})
    await client.post("/v1/flows/many/executions/m/stop")
    await client.put("/v1/flows/many", json={"definition": each.replace("price,", "prize,")})
    body = {"definition": "current", "dryRun": True}
    planned = (await client.post("/v1/flows/many/executions/m/redrive", json=body)).json()
    assert planned["reasons"] == [
        "step priceEach[].price (×3) is not in the definition, which has prize; "
        "to run priceEach again as a whole, go back to it with `from` (--from priceEach)"
    ]
    body["from"] = "priceEach"
    planned = (await client.post("/v1/flows/many/executions/m/redrive", json=body)).json()
    assert planned["redrivable"], planned["reasons"]


async def test_a_dry_run_names_kept_steps_that_were_undone(client: httpx.AsyncClient) -> None:
    start = "{{type: task, name: {}, resourceArn: 'acs:fnf:::flow/{}'{}}}"
    catch = ", catch: [{errors: [FnF.ALL], goto: Refund}], end: true"
    steps = [
        start.format("Charge", "order", ""),
        start.format("Ship", "none", catch),
        start.format("Refund", "order", ""),
    ]
    steps.append("{type: fail, name: NotShipped}")
    text = "version: v1\ntype: flow\nsteps:\n" + "".join(f"  - {step}\n" for step in steps)
    await client.put("/v1/flows/undone", json={"definition": text})
    await client.post("/v1/flows/undone/executions?wait=60", json={"name": "run"})
    here = "/v1/flows/undone/executions/run/redrive"
    plan = (await client.post(here, json={"dryRun": True, "from": "Ship"})).json()
    assert plan["kept"] == [{"step": "Charge", "times": 1, "undoneBy": "Refund"}]
    plan = (await client.post(here, json={"dryRun": True})).json()
    assert plan["kept"][0] == {"step": "Charge", "times": 1, "undoneBy": "Refund"}
    assert {each["undoneBy"] for each in plan["kept"][1:]} == {None}
