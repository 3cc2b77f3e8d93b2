"""The page of a flow, and its graph: what is read, chosen, published and started there."""

import re
from pathlib import Path

import httpx
from playwright.sync_api import Page, Route, expect

from tests.console.browser.complaints import Complaints
from tests.console.conftest import Opened

POLLING = (Path(__file__).parents[2] / "examples" / "polling" / "flow.yaml").read_text()
AGAIN_MS = 10_000
HEADER = "version: v1\ntype: flow\nsteps:\n"
ORDER = (
    HEADER
    + """\
  - type: pass
    name: reserve
    outputMappings: [{target: who, source: $input.customer.name}, {target: stock, source: $input.stock}]
  - type: choice
    name: inStock
    choices:
      - condition: $.stock > 3
        goto: pack
      - condition: $.stock > 1
        steps: [{type: wait, name: supply, duration: 0}]
    default: {goto: notShipped}
  - type: foreach
    name: pack
    inputMappings: [{target: items, source: $input.items}]
    iterationMapping: {collection: $.items, item: item}
    steps:
      - {type: pass, name: label}
  - type: parallel
    name: ship
    branches:
      - steps: [{type: pass, name: book}]
      - steps: [{type: wait, name: pickup, duration: 3600}]
  - {type: succeed, name: shipped}
  - {type: fail, name: notShipped, error: OutOfStock}
"""
)


def put(rest: httpx.Client, flow: str, definition: str) -> None:
    rest.put(f"/v1/flows/{flow}", json={"definition": definition}).raise_for_status()


def test_the_polling_tutorial_is_read_by_keyboard(page: Page, rest: httpx.Client, unique: str) -> None:
    put(rest, unique, POLLING)
    page.goto(f"/flows/{unique}")
    graph = page.get_by_role("group", name="Steps of the flow")
    first = graph.get_by_role("button", name="StartJob, task fnf-demo/StartJob", exact=True)
    expect(first).to_be_visible()
    expect(page.get_by_text("It has not run yet")).to_be_visible()
    first.focus()
    for name in ("Init", "Wait10s", "GetJobStatus", "CheckJobComplete", "JobSucceeded"):
        page.keyboard.press("ArrowDown")
        expect(page.locator(":focus")).to_have_attribute("data-path", name)
    page.keyboard.press("ArrowRight")
    expect(page.locator(":focus")).to_have_attribute("data-path", "JobFailed")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(page.locator(":focus")).to_have_attribute("aria-pressed", "true")
    expect(page).to_have_url(re.compile("step=CheckJobComplete$"))
    text = page.get_by_role("region", name="Definition")
    expect(text.locator(".marked").first).to_contain_text("type: choice")
    expect(text.locator(".marked").last).to_contain_text("goto: Wait10s")
    text.get_by_text("duration: 10").click()
    expect(graph.get_by_role("button", name="Wait10s")).to_have_attribute("aria-pressed", "true")
    page.reload()
    expect(graph.get_by_role("button", name="Wait10s")).to_have_attribute("aria-pressed", "true")


def test_a_version_is_published_compared_and_given_to_an_alias(page: Page, rest: httpx.Client, unique: str) -> None:
    put(rest, unique, ORDER)
    rest.post(f"/v1/flows/{unique}/versions", json={"description": "the first"}).raise_for_status()
    put(rest, unique, ORDER.replace("$.stock > 3", "$.stock > 4"))
    schedule = {"name": "nightly", "cronExpression": "0 30 2 * * ?", "timeZone": "Europe/Berlin"}
    rest.post(f"/v1/flows/{unique}/schedules", json=schedule).raise_for_status()
    page.goto(f"/flows/{unique}")
    expect(page.get_by_text("0 30 2 * * ?")).to_be_visible()
    page.keyboard.press("p")
    dialog = page.get_by_role("dialog", name="Publish a version")
    expect(dialog.get_by_text("1 change")).to_be_visible()
    dialog.get_by_label("What is new").fill("asks for more stock")
    dialog.get_by_role("button", name="Publish").click()
    expect(page.get_by_text("asks for more stock")).to_be_visible()
    page.get_by_role("link", name="diff of version 2").click()
    expect(page.get_by_role("heading", name="Version 2")).to_be_visible()
    expect(page.get_by_label("compare with")).to_have_value("1")
    expect(page.get_by_text("+ version 2")).to_be_visible()
    page.get_by_role("button", name="New alias…").click()
    dialog = page.get_by_role("dialog", name="New alias")
    dialog.get_by_label("Name").fill("prod")
    dialog.get_by_label("A second version").select_option("1")
    dialog.get_by_label("of 100 starts").fill("30")
    dialog.get_by_role("button", name="Save").click()
    expect(page.get_by_role("img", name="version 2: 70 %, version 1: 30 %")).to_be_visible()
    [alias] = rest.get(f"/v1/flows/{unique}/aliases").json()["aliases"]
    assert alias["routes"] == [{"version": 2, "weight": 70}, {"version": 1, "weight": 30}]


def test_a_run_is_started_with_a_form_and_painted(page: Page, rest: httpx.Client, unique: str) -> None:
    put(rest, unique, ORDER)
    page.goto(f"/flows/{unique}")
    page.get_by_role("button", name="Start…").click()
    dialog = page.get_by_role("dialog", name=f"Start {unique}")
    dialog.get_by_label("customer.name").fill("Ada")
    dialog.get_by_label("stock").fill("12345678901234567890")
    dialog.get_by_label("items").fill("[1, 2, 3]")
    dialog.get_by_label("Name (").fill("run")
    dialog.get_by_role("button", name="Start").click()
    expect(page).to_have_url(re.compile(f"/executions/{unique}/run$"))
    given = rest.get(f"/v1/flows/{unique}/executions/run").json()["input"]
    assert given == {"customer": {"name": "Ada"}, "stock": 12345678901234567890, "items": [1, 2, 3]}
    steps = page.get_by_role("group", name="Steps of the flow")
    expect(steps.get_by_role("button", name="inStock, Succeeded, choice")).to_be_visible()
    expect(steps.get_by_role("button", name="pack, Succeeded, 3 succeeded, foreach $.items")).to_be_visible()
    expect(steps.get_by_role("button", name="pickup, Waiting, wait 1h")).to_be_visible()
    expect(steps.get_by_role("button", name="supply, Not reached, wait 0s")).to_be_visible()
    expect(steps.locator(".graph-condition.taken text")).to_have_text("$.stock > 3")
    steps.get_by_role("button", name="Fold pack").click()
    expect(steps.get_by_role("button", name="label, Succeeded")).to_be_hidden()
    page.goto(f"/flows/{unique}")
    page.get_by_role("link", name="run · Running").click()
    expect(page).to_have_url(re.compile(f"/executions/{unique}/run$"))


def test_a_flow_may_be_named_new(page: Page, rest: httpx.Client, complaints: Complaints) -> None:
    complaints.allow("status of 404")
    page.goto("/flows/new")
    page.get_by_role("link", name="Write a new flow").click()
    expect(page).to_have_url(re.compile("/flows/-/new$"))
    expect(page.get_by_label("Begin with")).to_be_visible()
    put(rest, "new", POLLING)
    page.goto("/flows/new")
    expect(page.get_by_role("heading", name="new", exact=True)).to_be_visible()
    page.keyboard.press("e")
    expect(page).to_have_url(re.compile("/flows/new/edit$"))
    expect(page.get_by_role("textbox", name="Definition")).to_contain_text("StartJob")


def test_what_failed_for_a_while_is_asked_for_again(
    page: Page, rest: httpx.Client, complaints: Complaints, unique: str
) -> None:
    complaints.allow("status of 503")
    put(rest, unique, POLLING)
    rest.post(f"/v1/flows/{unique}/versions", json={}).raise_for_status()

    def refuse(route: Route) -> None:
        route.fulfill(status=503, json={"code": "Busy", "detail": "The server is busy."})

    page.clock.install()
    for asked, address, words, shown in (
        ("definitions/graph", unique, "This definition cannot be drawn: The server is busy.", "Wait10s"),
        (f"flows/{unique}/versions/1", f"{unique}?version=1", "The server is busy.", "Wait10s"),
        ("definitions/validate", f"{unique}/edit", "The server did not check this text.", "is not registered yet"),
    ):
        page.route(f"**/v1/{asked}", refuse, times=1)
        page.goto(f"/flows/{address}")
        expect(page.get_by_text(words)).to_be_visible()
        page.clock.run_for(AGAIN_MS)
        expect(page.get_by_text(words)).to_have_count(0)
        expect(page.get_by_text(shown).first).to_be_visible()


def test_hostile_and_large_definitions_are_drawn(opened: Opened, rest: httpx.Client, unique: str) -> None:
    hostile = '$.a == "<img src=x onerror=alert(1)>\u202e\U0001f600"'
    steps = "".join(f"  - {{type: pass, name: step{number}}}\n" for number in range(298))
    choice = f"  - type: choice\n    name: odd\n    choices: [{{condition: '{hostile}', goto: last}}]\n"
    put(rest, unique, f"{HEADER}{choice}{steps}  - {{type: fail, name: last, error: '<b>x</b>'}}\n")
    page = opened(viewport={"width": 390, "height": 844}, color_scheme="dark")
    page.goto(f"/flows/{unique}")
    graph = page.get_by_role("group", name="Steps of the flow")
    expect(graph.get_by_role("button", name="odd, choice", exact=True)).to_be_visible()
    expect(graph.locator("[data-path]")).to_have_count(300)
    expect(graph.locator("text", has_text='$.a == "<img')).to_be_visible()
    expect(graph.get_by_role("button", name="last, fail <b>x</b>")).to_be_attached()
    graph.get_by_role("button", name="odd, choice", exact=True).focus()
    page.keyboard.press("0")
    graph.evaluate("shown => shown.scrollIntoView({block: 'end'})")
    expect(graph.get_by_role("button", name="last, fail")).to_be_in_viewport()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
