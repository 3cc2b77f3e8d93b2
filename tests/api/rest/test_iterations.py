"""The iterations of a foreach over REST."""

import httpx
import pytest

from tests.api.rest.conftest import assert_problem

NESTED = """\
version: v1
type: flow
steps:
  - type: foreach
    name: pack
    iterationMapping: {collection: $.list, item: it}
    steps:
      - type: foreach
        name: inner
        iterationMapping: {collection: $.it, item: each}
        steps:
          - {type: pass, name: label}
"""
HERE = "/v1/flows/order/executions/run/iterations"


@pytest.fixture
async def run(client: httpx.AsyncClient) -> None:
    await client.put("/v1/flows/order", json={"definition": NESTED})
    lists = [[0] * 5, [0], []]
    await client.post("/v1/flows/order/executions?wait=60", json={"name": "run", "input": {"list": lists}})


@pytest.mark.usefixtures("run")
async def test_iterations_by_page(client: httpx.AsyncClient) -> None:
    page = (await client.get(f"{HERE}?step=pack")).json()
    assert [(each["index"], each["path"]) for each in page["iterations"]] == [
        (index, f"pack[{index}]") for index in range(3)
    ]
    assert {(each["status"], each["step"]) for each in page["iterations"]} == {("Succeeded", "inner")}
    assert page["counts"] == {"total": 3, "done": 3, "failed": 0, "aborted": 0, "running": 0}
    assert page["nextToken"] is None
    assert all(each["first"] <= each["last"] for each in page["iterations"])
    inner = f"{HERE}?step=pack[0].inner"
    first = (await client.get(f"{inner}&limit=2")).json()
    assert (len(first["iterations"]), first["nextToken"], first["counts"]["total"]) == (2, "2", 5)
    rest = (await client.get(f"{inner}&limit=3&nextToken=2")).json()
    assert [each["path"] for each in rest["iterations"]] == [f"pack[0].inner[{index}]" for index in (2, 3, 4)]
    assert rest["nextToken"] is None
    events = (await client.get(f"{HERE.removesuffix('iterations')}events?step=pack[0].inner[4]&limit=1")).json()
    assert events["events"][0]["time"] == rest["iterations"][-1]["first"]


@pytest.mark.usefixtures("run")
async def test_iterations_with_a_status_and_after_an_event(client: httpx.AsyncClient) -> None:
    assert (await client.get(f"{HERE}?step=pack&status=Failed")).json()["iterations"] == []
    page = (await client.get(f"{HERE}?step=pack&status=Running&at=4")).json()
    assert [(each["index"], each["status"]) for each in page["iterations"]] == [(0, "Running")]
    assert (page["lastEventId"], page["counts"]["total"]) == (4, 3)
    for other in ("pack[2].inner", "pack[7].inner", "none", "pack[0].inner.label"):
        assert (await client.get(f"{HERE}?step={other}")).json()["counts"]["total"] == 0


@pytest.mark.usefixtures("run")
@pytest.mark.parametrize(
    "query",
    ["step=a/b", "step=pack[].inner", "step=pack&status=Caught", "step=pack&at=0", "step=pack&nextToken=x"],
)
async def test_wrong_queries(client: httpx.AsyncClient, query: str) -> None:
    assert_problem(await client.get(f"{HERE}?{query}"), 400, "InvalidArgument")
    assert_problem(await client.get(HERE), 400, "MissingRequiredParams")


@pytest.mark.usefixtures("run")
async def test_executions_that_do_not_exist(client: httpx.AsyncClient) -> None:
    assert_problem(await client.get(f"{HERE.replace('run', 'none')}?step=pack"), 404, "ExecutionNotExists")
    assert_problem(await client.get(f"{HERE.replace('order', 'none')}?step=pack"), 404, "FlowNotExists")
