"""Two executions are compared in the console."""

import httpx
from playwright.sync_api import Page, expect

from tests.console.conftest import Opened

DEFINITION = """\
version: v1
type: flow
steps:
  - type: choice
    name: check
    choices:
      - condition: $.total > 100
        steps:
          - {type: pass, name: review}
    default:
      steps:
        - {type: pass, name: accept}
  - type: foreach
    name: pack
    iterationMapping: {collection: $.items, item: item}
    steps:
      - type: pass
        name: label
        outputMappings: [{target: label, source: $input.item}]
    outputMappings: [{target: labels, source: "$local[*].label"}]
  - type: choice
    name: route
    choices:
      - condition: $.total > 100
        goto: broken
    default: {goto: done}
  - {type: fail, name: broken, error: Broken, cause: "<b>by</b> design"}
  - {type: succeed, name: done}
"""
HOSTILE = "<script>alert(1)</script> \u202eright to left 🙂"


def run(rest: httpx.Client, flow: str, name: str, total: int, *items: str) -> None:
    body = {"name": name, "input": {"total": total, "items": items}}
    rest.post(f"/v1/flows/{flow}/executions?wait=20", json=body).raise_for_status()


def test_two_runs_are_compared(page: Page, rest: httpx.Client, unique: str) -> None:
    rest.put(f"/v1/flows/{unique}", json={"definition": DEFINITION}).raise_for_status()
    run(rest, unique, "small", 5, "a", "b")
    run(rest, unique, "large", 500, "a", "b", HOSTILE)
    run(rest, unique, "again", 5, "a", "b")
    page.goto(f"/compare?left={unique}/small")
    page.get_by_role("row", name="large").dblclick()
    page.wait_for_url(f"**/compare?left={unique}*&right={unique}*")
    second = page.get_by_role("region", name="Run B")
    expect(second).to_contain_text("Failed")
    expect(second).to_contain_text("<b>by</b> design")

    steps = page.get_by_role("table")

    def differs(step: str, what: str) -> None:
        expect(steps.get_by_role("row").filter(has=page.get_by_role("button", name=step, exact=True))).to_contain_text(
            what
        )

    differs("check", "other option: else → $.total > 100")
    differs("check.accept", "only in A")
    differs("check.review", "only in B")
    differs("pack", "iterations: 2 → 3")
    differs("route", "other option: else → $.total > 100")
    differs("broken", "only in B")
    documents = page.get_by_role("tabpanel", name="input")
    expect(documents).to_contain_text("<script>alert(1)</script>")
    page.get_by_role("tab", name="Output").click()
    expect(page.get_by_role("tabpanel", name="output")).to_contain_text("by</b> design")

    steps.get_by_role("button", name="pack[].label").click()
    panel = page.get_by_role("heading", name="Step pack[0].label")
    expect(panel).to_be_visible()
    page.get_by_label("Iteration").fill("2")
    expect(page.get_by_text("A did not reach this step.")).to_be_visible()
    page.get_by_role("button", name="Close").click()

    page.keyboard.press("s")
    expect(page.get_by_role("region", name="Run A")).to_contain_text("Failed")
    differs("check.review", "only in A")
    page.get_by_label("Other run for A").select_option("again")
    expect(page.get_by_text("the same path")).to_be_visible()
    page.get_by_label("Only differences").check()
    expect(page.get_by_text("Both runs took the same path")).to_be_visible()
    page.reload()
    expect(page.get_by_text("Both runs took the same path")).to_be_visible()
    expect(page.get_by_label("Only differences")).to_be_checked()
    page.get_by_role("tab", name="Definition").click()
    expect(page.get_by_text("A: again and B: small are the same.")).to_be_visible()


def test_a_narrow_screen_shows_one_text_with_the_changes(opened: Opened, rest: httpx.Client, unique: str) -> None:
    rest.put(f"/v1/flows/{unique}", json={"definition": DEFINITION}).raise_for_status()
    run(rest, unique, "small", 5, "a")
    run(rest, unique, "other", 6, "a")
    page = opened(viewport={"width": 390, "height": 844}, color_scheme="dark")
    page.goto(f"/compare?left={unique}/small&right={unique}/other")
    expect(page.get_by_role("tabpanel", name="input").get_by_role("textbox")).to_have_count(1)
    expect(page.get_by_role("tabpanel", name="input")).to_contain_text("1 change")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
