"""A page that was open while an execution ran looks like the same page after a reload, for random flows."""

import json
import re
from collections.abc import Iterator
from random import Random
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.console.browser.settled import wait_until_settled
from tests.simulation.functions import SUB, TOKEN, Functions
from tests.simulation.generator import Generator
from tests.support.function_server import Call, FunctionError, FunctionServer
from tests.support.server import PATIENCE_SECONDS, ServerProcess

FLOWS = 30
NAMES = ("echo", "bump", "make", "many", "calc", "flaky", "odd", "slow", "ask", "slow_ask")
INPUT = {"a": 1, "b": 2, "c": True, "d": 0, "list": [0, 1, 2]}
GATE = {
    "type": "task",
    "name": "gate",
    "pattern": "waitForCallback",
    "resourceArn": "acs:fc:::services/sim/functions/gate",
    "inputMappings": [{"target": TOKEN, "source": "$context.task.token"}],
    "outputMappings": [],
}
PASS = "{version: v1, type: flow, steps: [{type: pass, name: p}]}"

LOOKS = """() => {
  const properties = ["color", "fill", "stroke", "strokeWidth", "strokeDasharray", "opacity", "display", "visibility",
    "fontWeight", "backgroundColor", "backgroundImage", "outlineStyle", "left", "width", "height", "transform"];
  return [...document.querySelectorAll(".graph-frame *, .timeline *")].map((element) => {
    const style = getComputedStyle(element);
    const set = [...element.attributes].filter((each) => each.value.trim());
    const valueOf = ({ name, value }) => (name === "style" ? value.split(/; ?/).sort().join("; ") : value);
    const attributes = set.map((each) => `${each.name}=${valueOf(each)}`).sort();
    const own = element.children.length ? "" : element.textContent;
    return [element.tagName, own, ...attributes, ...properties.map((name) => `${name}:${style[name]}`)].join(" | ");
  });
}"""


@pytest.fixture(scope="module")
def functions(server: ServerProcess) -> Iterator[FunctionServer]:
    """The functions of the simulation. Who waits for a report gets it during the call; nothing is silent."""
    answers = Functions("live")
    with httpx.Client(base_url=server.url, trust_env=False) as client:

        def answer(call: Call) -> Any:
            name = call.function.removeprefix("sim/")
            if name == "gate":
                return {}
            found = answers.answer(name, call.event, 0)
            failure = "E1" if found.is_silent else found.raises
            if name.endswith("ask"):
                report = {"error": failure} if failure else {"output": found.returns}
                end = "fail" if failure else "succeed"
                client.post(f"/v1/tasks/{end}", json={"taskToken": call.event[TOKEN], **report}).raise_for_status()
                return {}
            return FunctionError(failure) if failure else found.returns

        with FunctionServer(answer) as running:
            running.register(server.url, "sim/gate", *(f"sim/{name}" for name in NAMES))
            yield running


def hurried(part: Any) -> Any:
    """The same steps without the time that they wait, and with the gate's token passed on."""
    if isinstance(part, list):
        return [hurried(each) for each in part]
    if not isinstance(part, dict):
        return part
    made = {name: hurried(value) for name, value in part.items()}
    if made.get("type") == "wait":
        return {"type": "wait", "name": made["name"], "duration": 0}
    if "errors" in made and "goto" not in made:
        made["intervalSeconds"] = 0
    return made


def random_flows() -> Iterator[dict[str, Any]]:
    """Definitions whose first step waits for the page to be open."""
    random = Random("live equals reloaded")
    while True:
        definition = hurried(Generator(random).definition())
        yield definition | {"steps": [GATE, *definition["steps"]]}


def test_a_page_that_was_open_looks_like_a_reloaded_one(
    page: Page, rest: httpx.Client, functions: FunctionServer
) -> None:
    page.set_viewport_size({"width": 1440, "height": 2400})
    for name in ("child", "slow_child", SUB):
        rest.put(f"/v1/flows/{name}", json={"definition": PASS}).raise_for_status()
    compared = 0
    seen = set()
    for number, definition in enumerate(random_flows()):
        if compared == FLOWS:
            break
        if rest.put(f"/v1/flows/f{number}", json={"definition": json.dumps(definition)}).is_error:
            continue  # such as an action that this server does not have
        rest.post(f"/v1/flows/f{number}/executions", json={"name": "run", "input": INPUT}).raise_for_status()
        page.goto(f"/executions/f{number}/run")
        expect(page.get_by_role("button", name="gate, Waiting for a report")).to_be_visible()
        [task] = rest.get(f"/v1/tasks?flow=f{number}").json()["tasks"]
        rest.post("/v1/tasks/succeed", json={"taskToken": task["taskToken"], "output": {}}).raise_for_status()
        run = f"/v1/flows/f{number}/executions/run"
        ended = rest.get(f"{run}?wait={PATIENCE_SECONDS}", timeout=2 * PATIENCE_SECONDS).json()
        assert ended["status"] in ("Succeeded", "Failed"), ended
        seen.add(ended["status"])
        last = rest.get(f"{run}/steps").json()["lastEventId"]
        live = looks(page, last)
        page.reload()
        assert live == looks(page, last), definition
        compared += 1
    assert seen == {"Succeeded", "Failed"}


def looks(page: Page, last: int) -> list[str]:
    """How each element of graph and timeline looks, once the page has all events."""
    expect(page.get_by_role("group", name="Scrubber")).to_contain_text(f"event {last:,} of {last:,}")
    expect(page.get_by_text(re.compile("^took "))).to_be_visible()
    expect(page.get_by_role("group", name="Steps of the flow")).to_be_visible()  # its module comes after the page
    expect(page.get_by_role("treegrid", name="Timeline").get_by_role("row").first).to_be_visible()
    wait_until_settled(page)
    found: list[str] = page.evaluate(LOOKS)
    return found
