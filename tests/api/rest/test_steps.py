"""The step summary of an execution."""

from itertools import count

import httpx
import pytest

from flowserver.machine.step_summary import EDGE_BYTES, VISIT_BYTES
from flowserver.machine.step_summary_fold import ENTRY_BYTES
from flowserver.operations import fold_cache
from flowserver.server import Application
from tests.api.rest.conftest import assert_problem, put_callback_flow, submitted_token
from tests.invokers.wire_server import WireServer

LOOP = """\
version: v1
type: flow
steps:
  - type: foreach
    name: pack
    iterationMapping: {collection: $.list, item: it}
    steps:
      - {type: pass, name: label}
  - {type: pass, name: ship}
"""
HERE = "/v1/flows/order/executions/run/steps"


async def _run(client: httpx.AsyncClient, count: int) -> None:
    await client.put("/v1/flows/order", json={"definition": LOOP})
    await client.post("/v1/flows/order/executions?wait=60", json={"name": "run", "input": {"list": [0] * count}})


async def test_one_item_per_step_for_any_number_of_iterations(client: httpx.AsyncClient) -> None:
    await _run(client, 300)
    page = (await client.get(HERE)).json()
    assert [step["path"] for step in page["steps"]] == ["pack", "pack[].label", "ship"]
    assert {step["status"] for step in page["steps"]} == {"Succeeded"}
    pack, label, ship = page["steps"]
    assert pack["iterations"] == {"total": 300, "done": 300, "failed": 0, "aborted": 0, "running": 0}
    assert (label["entered"], label["succeeded"], label["iterations"]) == (300, 300, None)
    assert pack["first"] <= label["first"] <= label["last"] <= pack["last"] <= ship["first"]
    assert page["nextToken"] is None
    events = (await client.get(f"{HERE.removesuffix('steps')}events?after={page['lastEventId']}")).json()["events"]
    assert events == []


async def test_pages(client: httpx.AsyncClient) -> None:
    await _run(client, 2)
    whole = (await client.get(HERE)).json()["steps"]
    first = (await client.get(f"{HERE}?limit=2")).json()
    second = (await client.get(f"{HERE}?limit=2&nextToken={first['nextToken']}")).json()
    assert (first["nextToken"], second["nextToken"]) == ("2", None)
    assert first["steps"] + second["steps"] == whole


async def test_while_it_runs_later_requests_add_new_events(
    client: httpx.AsyncClient, app: Application, functions: WireServer
) -> None:
    await put_callback_flow(client, functions)
    await client.post("/v1/flows/ask/executions", json={"name": "run"})
    token = await submitted_token(app)
    here = "/v1/flows/ask/executions/run/steps"
    before = (await client.get(here)).json()
    assert [(step["status"], step["attempts"]) for step in before["steps"]] == [("Running", 1)]
    await client.post("/v1/tasks/succeed", json={"taskToken": token, "output": {}})
    after = (await client.get(here)).json()
    assert [(step["status"], step["attempts"]) for step in after["steps"]] == [("Succeeded", 1)]
    assert after["lastEventId"] > before["lastEventId"]


async def test_the_summary_as_it_was_after_an_event(client: httpx.AsyncClient) -> None:
    await _run(client, 2)
    events = (await client.get(f"{HERE.removesuffix('steps')}events?limit=1000")).json()["events"]
    now = (await client.get(HERE)).json()
    assert (now["status"], now["lastEventTime"]) == ("Succeeded", events[-1]["time"])
    entered = next(event for event in events if event["type"] == "IterationEntered")
    then = (await client.get(f"{HERE}?at={entered['eventId']}")).json()
    assert (then["status"], then["lastEventId"], then["lastEventTime"]) == (
        "Running", entered["eventId"], entered["time"],
    )  # fmt: skip
    assert [(step["path"], step["status"]) for step in then["steps"]] == [("pack", "Running")]
    assert then["steps"][0]["iterations"] == {"total": 2, "done": 0, "failed": 0, "aborted": 0, "running": 1}
    assert (await client.get(f"{HERE}?at=2147483646")).json() == now
    assert [step["path"] for step in (await client.get(f"{HERE}?at={len(events)}&nextToken=2")).json()["steps"]] == [
        "ship"
    ]


async def test_a_long_history_is_read_a_while_at_a_time(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _run(client, 50)
    monkeypatch.setattr(fold_cache, "monotonic", count().__next__)  # a second from look to look
    pages = []
    while not pages or not pages[-1]["complete"]:
        pages.append((await client.get(f"{HERE}?within=0.05")).json())
    assert len(pages) > 4
    read = [page["lastEventId"] for page in pages]
    assert read == sorted(set(read))
    monkeypatch.undo()
    assert pages[-1] == (await client.get(HERE)).json()
    first = (await client.get(f"{HERE}?at={read[0]}")).json()
    assert first == pages[0] | {"complete": True}
    assert first["status"] == "Running"


async def test_the_cache_between_requests_is_bounded(client: httpx.AsyncClient, app: Application) -> None:
    await _run(client, 2)
    steps = (await client.get(HERE)).json()["steps"]
    kept = app.state.operations.step_summaries._folds
    [fold] = kept.folds()
    summaries = fold.summaries
    assert fold.size > summaries.size
    paths = len("".join(step["path"] for step in steps))
    edges = sum(len(step["edges"]) for step in steps)
    kept = 4 * ENTRY_BYTES + 2 * paths + edges * EDGE_BYTES + sum(len(step["visits"]) for step in steps) * VISIT_BYTES
    assert summaries.size == kept + summaries.newest.loops.size


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=1001", "nextToken=x", "form=1", "at=0", "at=x", "at=2147483647", "within=0"]
)
async def test_wrong_queries(client: httpx.AsyncClient, query: str) -> None:
    await _run(client, 1)
    assert_problem(await client.get(f"{HERE}?{query}"), 400, "InvalidArgument")


async def test_executions_that_do_not_exist(client: httpx.AsyncClient) -> None:
    await _run(client, 1)
    assert_problem(await client.get("/v1/flows/order/executions/none/steps"), 404, "ExecutionNotExists")
    assert_problem(await client.get("/v1/flows/none/executions/run/steps"), 404, "FlowNotExists")
