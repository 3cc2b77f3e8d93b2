"""The timeline of an execution and its scrubber, as a person uses them."""

import re
from datetime import datetime, timedelta

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.console.conftest import Opened
from tests.support.function_server import FunctionError, FunctionServer
from tests.support.server import ServerProcess

ORDER = """\
version: v1
type: flow
steps:
  - {type: pass, name: reserve}
  - type: foreach
    name: pack
    iterationMapping: {collection: $.list, item: it}
    steps:
      - type: choice
        name: torn
        choices:
          - condition: $.it == 230
            steps: [{type: fail, name: give-up, error: PaperTorn, cause: no paper left}]
        default: {steps: [{type: pass, name: label}]}
  - {type: pass, name: ship}
"""

IDLE = """\
version: v1
type: flow
steps:
  - {type: pass, name: reserve}
  - {type: wait, name: cool, duration: 2}
  - {type: pass, name: ship}
"""

LIVE = """\
version: v1
type: flow
steps:
  - {type: pass, name: before}
  - {type: task, name: pause, resourceArn: 'acs:fc:::services/timeline/functions/ask', pattern: waitForCallback}
  - {type: pass, name: after}
  - {type: wait, name: rest, duration: 60}
"""


LOOP = """\
version: v1
type: flow
steps:
  - type: pass
    name: init
    outputMappings: [{target: left, source: $input.left}]
  - type: wait
    name: rest
    duration: $.pause
    inputMappings: [{target: pause, source: "$local.left[0]"}]
  - type: pass
    name: next
    inputMappings: [{target: left, source: $local.left}]
    outputMappings: [{target: left, source: "$input.left[1]"}]
  - {type: choice, name: again, choices: [{condition: $.left != 0, goto: rest}]}
"""

REDRIVEN = """\
version: v1
type: flow
steps: [{type: task, name: once, resourceArn: 'acs:fc:::services/timeline/functions/once'}]
"""


def _bars(row: Locator) -> list[tuple[float, float]]:
    """Begin and end of each of its bars, in pixels."""
    boxes = [bar.bounding_box() for bar in row.locator(".timeline-bar").all()]
    return [(box["x"], box["x"] + box["width"]) for box in boxes if box]


def test_each_visit_has_a_bar_and_what_takes_no_time_is_a_mark(page: Page, rest: httpx.Client) -> None:
    rest.put("/v1/flows/loop", json={"definition": LOOP}).raise_for_status()
    body = {"name": "one", "input": {"left": [1, [1, 0]]}}
    rest.post("/v1/flows/loop/executions?wait=60", json=body).raise_for_status()
    page.goto("/executions/loop/one")
    timeline = page.get_by_role("treegrid", name="Timeline")
    expect(timeline.get_by_role("row", name="rest").locator(".timeline-bar")).to_have_count(2)
    (first, second), (gap, _) = _bars(timeline.get_by_role("row", name="rest"))
    assert first < second <= gap
    again = timeline.get_by_role("row", name="again")
    expect(again.locator(".timeline-bar.mark")).to_have_count(2)
    (mark, end), (later, _) = _bars(again)
    assert end - mark < 20 and end < later
    expect(again).to_contain_text("2 times · 0s")


def test_of_very_many_visits_the_first_and_the_last_have_bars(page: Page, rest: httpx.Client) -> None:
    left: object = 0
    for _ in range(100):
        left = [0, left]
    rest.put("/v1/flows/long", json={"definition": LOOP}).raise_for_status()
    rest.post("/v1/flows/long/executions?wait=60", json={"name": "one", "input": {"left": left}}).raise_for_status()
    page.goto("/executions/long/one")
    row = page.get_by_role("treegrid", name="Timeline").get_by_role("row", name="next")
    expect(row.locator(".timeline-bar")).to_have_count(20)
    expect(row).to_contain_text("×80 more")


def test_the_failed_visit_stays_after_a_redrive(page: Page, rest: httpx.Client, server: ServerProcess) -> None:
    failures = [FunctionError("Down")]
    with FunctionServer(lambda _: failures.pop() if failures else {}) as functions:
        functions.register(server.url, "timeline/once")
        rest.put("/v1/flows/redriven", json={"definition": REDRIVEN}).raise_for_status()
        rest.post("/v1/flows/redriven/executions?wait=60", json={"name": "one"}).raise_for_status()
        rest.post("/v1/flows/redriven/executions/one/redrive", json={}).raise_for_status()
        assert rest.get("/v1/flows/redriven/executions/one?wait=60").json()["status"] == "Succeeded"
    page.goto("/executions/redriven/one")
    bars = page.get_by_role("treegrid", name="Timeline").get_by_role("row", name="once").locator(".timeline-bar")
    expect(bars).to_have_count(2)
    expect(bars.nth(0)).to_have_class(re.compile("tone-fail"))
    expect(bars.nth(1)).to_have_class(re.compile("tone-ok"))


@pytest.fixture(scope="module")
def order(rest: httpx.Client) -> str:
    """The path of an execution that failed in iteration 230 of 250."""
    rest.put("/v1/flows/timeline", json={"definition": ORDER}).raise_for_status()
    body = {"name": "torn", "input": {"list": list(range(250))}}
    rest.post("/v1/flows/timeline/executions?wait=60", json=body).raise_for_status()
    return "/executions/timeline/torn"


def test_a_timeline_shows_what_ran_when_and_why_it_failed(page: Page, order: str) -> None:
    page.goto(order)
    timeline = page.get_by_role("treegrid", name="Timeline")
    expect(timeline.get_by_role("row", name="ship")).to_contain_text("(not reached)")
    pack = timeline.get_by_role("row", name="pack").first
    expect(pack).to_contain_text("PaperTorn")
    for row in timeline.get_by_role("row", name="reserve").all():
        assert row.locator(".timeline-bar").bounding_box()["width"] >= 6

    # By keyboard: down to the foreach, open it, turn its pages, select an iteration.
    timeline.focus()
    for _ in range(2):
        page.keyboard.press("j")
    page.keyboard.press("ArrowRight")
    expect(pack).to_have_attribute("aria-expanded", "true")
    expect(timeline.get_by_role("row", name="[0]")).to_be_visible()
    page.keyboard.press("]")
    expect(timeline).to_contain_text("100 – 199 of 250")
    timeline.get_by_role("button", name="Only Failed: 1").click()
    failed = timeline.get_by_role("row", name="[230]")
    expect(failed).to_contain_text("PaperTorn")
    failed.click()
    expect(page).to_have_url(f"{page.url.split('?')[0]}?step=pack%5B230%5D")
    expect(failed).to_have_attribute("aria-selected", "true")
    timeline.focus()
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    expect(timeline.get_by_role("row", name="reserve")).to_have_attribute("aria-selected", "true")


def test_idle_time_is_cut_out_until_it_is_asked_for(page: Page, rest: httpx.Client) -> None:
    rest.put("/v1/flows/idle", json={"definition": IDLE}).raise_for_status()
    rest.post("/v1/flows/idle/executions?wait=60", json={"name": "one"}).raise_for_status()
    page.goto("/executions/idle/one")
    bar = page.get_by_role("treegrid", name="Timeline").get_by_role("row", name="cool").locator(".timeline-bar")
    idle = page.get_by_role("button", name=re.compile(r"^Show idle \d"))
    expect(idle).to_be_visible()
    before = bar.bounding_box()["width"]
    idle.click()
    expect(page.get_by_role("button", name=re.compile(r"^Collapse idle \d"))).to_be_visible()
    assert bar.bounding_box()["width"] > 4 * before


def test_the_scrubber_shows_the_page_as_it_was(page: Page, order: str, rest: httpx.Client) -> None:
    page.goto(order)
    timeline = page.get_by_role("treegrid", name="Timeline")
    scrubber = page.get_by_role("group", name="Scrubber")
    slider = scrubber.get_by_role("slider", name="Event")
    last = rest.get(f"/v1{order.replace('/executions/', '/flows/').replace('/torn', '/executions/torn')}/steps").json()
    expect(scrubber).to_contain_text(f"event {last['lastEventId']:,} of {last['lastEventId']:,}")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "at=" in request.url else None)
    slider.focus()
    page.keyboard.press("Home")
    expect(scrubber).to_contain_text("event 1 of")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(scrubber).to_contain_text("event 3 of")
    expect(timeline.get_by_role("row", name="reserve")).not_to_contain_text("(not reached)")
    expect(timeline.get_by_role("row", name="pack").first).to_contain_text("(not reached)")
    scrubber.get_by_role("button", name="One event back").click()
    expect(scrubber).to_contain_text("event 2 of")
    assert len(asked) <= 4, asked
    expect(page.get_by_text("paused by you")).to_be_visible()
    scrubber.get_by_role("button", name="Next failure").click()
    expect(timeline.get_by_role("row", name="pack").first).not_to_contain_text("(not reached)")
    scrubber.get_by_role("button", name="To the last event").click()
    expect(page.get_by_text("paused by you")).to_have_count(0)
    expect(timeline.get_by_role("row", name="pack").first).to_contain_text("PaperTorn")


def test_a_timeline_that_is_live_leaves_the_focus_and_the_bars_at_rest(
    page: Page, rest: httpx.Client, server: ServerProcess, functions: FunctionServer
) -> None:
    functions.register(server.url, "timeline/ask")
    rest.put("/v1/flows/live", json={"definition": LIVE}).raise_for_status()
    rest.post("/v1/flows/live/executions", json={"name": "one"}).raise_for_status()
    page.clock.set_fixed_time(datetime.now() + timedelta(minutes=10))  # the axis grows with the time, in steps
    page.goto("/executions/live/one")
    timeline = page.get_by_role("treegrid", name="Timeline")
    before = timeline.get_by_role("row", name="before")
    expect(timeline.get_by_role("row", name="pause")).to_have_class(re.compile("tone-wait"))
    at_rest = before.locator(".timeline-bar").bounding_box()
    timeline.focus()
    page.keyboard.press("Home")
    expect(timeline.get_by_role("row", name="after")).to_contain_text("(not reached)")
    rest.post("/v1/tasks/succeed", json={"taskToken": _token(rest), "output": {}}).raise_for_status()
    expect(timeline.get_by_role("row", name="after")).not_to_contain_text("(not reached)")
    expect(timeline).to_be_focused()
    expect(timeline).to_have_attribute("aria-activedescendant", "timeline-before")
    assert before.locator(".timeline-bar").bounding_box() == at_rest


def _token(rest: httpx.Client) -> str:
    (task,) = rest.get("/v1/tasks?flow=live").json()["tasks"]
    return str(task["taskToken"])


def test_a_narrow_page_has_the_timeline_as_a_tab(opened: Opened, order: str) -> None:
    page = opened(viewport={"width": 390, "height": 844}, color_scheme="dark")
    page.goto(f"{order}?step=pack[230].torn.give-up&tab=timeline")
    timeline = page.get_by_role("treegrid", name="Timeline")
    expect(timeline.get_by_role("row", name="[230]")).to_have_attribute("aria-selected", "true")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    views = page.get_by_role("region", name="Execution", exact=True).bounding_box()
    assert views["y"] + views["height"] <= page.get_by_role("group", name="Scrubber").bounding_box()["y"]
