"""Tests of a definition are written beside its text and run on the server, and their paths are seen in the graph."""

from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.console.browser.complaints import Complaints
from tests.console.test_every_page import AXE, CONTRAST, NARROW, RULES, violations

ORDER = """\
version: v1
type: flow
steps:
  - type: task
    name: charge
    resourceArn: acs:fc:::services/pay/functions/charge
    retry: [{errors: [Busy], intervalSeconds: 1}]
    errorMappings: [{target: why, source: $local.error}]
    catch: [{errors: [Declined], goto: refused}]
  - type: task
    name: approve
    resourceArn: acs:fc:::services/office/functions/ask
    pattern: waitForCallback
    timeoutSeconds: 86400
    inputMappings: [{target: taskToken, source: $context.task.token}]
  - {type: succeed, name: done}
  - {type: fail, name: refused, error: NotPaid}
"""
TESTS = """\
flow: order.yaml
functions: {charge: [{error: Busy}, {return: {paid: true}}]}
callbacks: {approve: {after: 2h, succeed: {by: bob}}}
tests:
  - {name: approved, expect: {output: {paid: true, by: bob}, took: 2h1s}}
  - name: declined
    functions: {charge: {error: Declined}}
    expect: {error: NotPaid, path: [charge, done]}
"""
UNFIT = """\
version: v1
type: flow
steps:
  - type: pass
    name: p
    outputMappings: [{target: a, source: $local.b}]
"""


@pytest.fixture
def flow(rest: httpx.Client, unique: str) -> str:
    rest.put(f"/v1/flows/{unique}", json={"definition": ORDER}).raise_for_status()
    return unique


def open_tests(page: Page, flow: str, file: Path) -> Locator:
    """The tab with the tests of a file."""
    page.goto(f"/flows/{flow}/edit")
    page.get_by_role("tab", name="Tests").click()
    page.get_by_label("File of tests").set_input_files(file)
    editor = page.get_by_role("textbox", name="Tests")
    expect(editor).to_be_visible()
    return editor


@pytest.fixture
def file(tmp_path: Path) -> Path:
    written = tmp_path / "order.flowtest.yaml"
    written.write_text(TESTS)
    return written


def step(page: Page, name: str) -> Locator:
    return page.get_by_role("group", name="Steps of the flow").get_by_role("button", name=name)


def test_the_path_of_a_test_is_seen_in_the_graph(page: Page, flow: str, file: Path) -> None:
    open_tests(page, flow, file)
    page.get_by_role("button", name="Run tests").click()
    expect(page.get_by_text("1 passed, 1 failed, coverage 100 %")).to_be_visible()
    results = page.get_by_role("list", name="Results")
    expect(results).to_contain_text("path, entry 2: expected step done, got step refused")
    expect(results).to_contain_text("- done")
    approved, declined = (results.get_by_role("button", name=f"{name} ") for name in ("passed", "failed"))
    expect(approved).to_contain_text("3 calls · 2h1s")

    declined.press("Enter")
    expect(page.get_by_role("tab", name="Graph")).to_have_attribute("aria-selected", "true")
    expect(page.get_by_text("The path of the test declined, which failed. Its execution:")).to_be_visible()
    expect(page.get_by_role("tabpanel")).to_contain_text("expected step done, got step refused")
    for name, status in (
        ("charge", "Caught"),
        ("approve", "Not reached"),
        ("refused", "Failed"),
        ("done", "Not reached"),
    ):
        expect(step(page, f"{name}, {status}")).to_be_visible()
    back = page.get_by_role("button", name="Back to the tests")
    expect(back).to_be_focused()
    back.press("Enter")
    expect(declined).to_be_focused()

    page.keyboard.press("Shift+Tab")
    expect(declined).not_to_be_focused()
    approved.press("Enter")
    expect(step(page, "charge, Succeeded, 1.00s attempts 2")).to_be_visible()
    expect(step(page, "approve, Succeeded")).to_be_visible()
    page.get_by_role("button", name="Clear").press("Enter")
    expect(step(page, "charge, task pay/charge")).to_be_visible()


def test_findings_lead_to_both_texts_and_a_changed_text_has_no_path(page: Page, flow: str, file: Path) -> None:
    editor = open_tests(page, flow, file)
    page.get_by_role("button", name="Run tests").click()
    results = page.get_by_role("list", name="Results")
    results.get_by_role("button", name="8:").click()
    expect(editor).to_be_focused()
    page.keyboard.press("Control+Shift+ArrowRight")
    results.get_by_role("button", name="line 17 of the definition").click()
    definition = page.get_by_role("textbox", name="Definition")
    expect(definition).to_be_focused()

    results.get_by_role("button", name="failed ").click()
    definition.click()
    page.keyboard.press("Control+End")
    page.keyboard.type("# new")
    expect(page.get_by_text("The text has changed since this test ran: declined")).to_be_visible()
    expect(step(page, "charge, task pay/charge")).to_be_visible()
    page.get_by_role("tab", name="Tests").click()
    expect(page.get_by_text("the text has changed since")).to_be_visible()
    editor.click()
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("1 passed, 1 failed, coverage 100 %", exact=True)).to_be_visible()
    expect(editor).to_be_focused()


def test_tests_begin_with_a_template_and_the_browser_keeps_them(
    page: Page, rest: httpx.Client, unique: str, complaints: Complaints
) -> None:
    complaints.allow("status of 400")
    page.goto("/flows/-/new")
    definition = page.get_by_role("textbox", name="Definition")
    expect(page.get_by_role("group", name="Steps of the flow")).to_contain_text("hello")
    page.get_by_label("Begin with").select_option("Wait for an answer")
    expect(page.get_by_role("group", name="Steps of the flow")).to_contain_text("ask")
    page.get_by_role("tab", name="Tests").click()
    expect(page.get_by_role("button", name="Run tests")).to_be_disabled()
    page.get_by_role("button", name="Write the first test").click()
    editor = page.get_by_role("textbox", name="Tests")
    expect(editor).to_contain_text("ask: {succeed: {}, always: true}")
    page.get_by_role("button", name="Run tests").click()
    expect(page.get_by_text("1 passed, coverage 50 %")).to_be_visible()
    page.get_by_text("places of the definition that the tests do not cover").click()
    missed = page.get_by_role("list", name="Not covered")
    expect(missed).to_contain_text("not reached: catch rule 1 of step ask")
    missed.get_by_role("button").first.click()
    expect(definition).to_be_focused()

    page.get_by_label("Name").fill(unique)
    page.get_by_role("button", name="Create").click()
    page.wait_for_url(f"**/flows/{unique}/edit")
    page.reload()
    page.get_by_role("tab", name="Tests").click()
    expect(editor).to_contain_text("ask: {succeed: {}, always: true}")

    editor.click()
    page.keyboard.press("Control+End")
    page.keyboard.type("    nmae: x")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("The tests have mistakes, so none has run.")).to_be_visible()
    mistake = page.get_by_role("list", name="Mistakes of the tests").get_by_role("button")
    expect(mistake).to_contain_text("`nmae` is not an attribute of a test")
    mistake.click()
    expect(editor).to_be_focused()

    definition.click()
    page.keyboard.press("Control+End")
    page.keyboard.type("nonsense: 1")
    page.get_by_role("button", name="Run tests").click()
    expect(page.get_by_role("alert")).to_contain_text("No test has run, because the definition has errors")


def test_a_file_that_is_too_large_is_not_opened(page: Page, flow: str, tmp_path: Path) -> None:
    large = tmp_path / "large.flowtest.yaml"
    large.write_text("#" * 1_048_577)
    page.goto(f"/flows/{flow}/edit")
    page.get_by_role("tab", name="Tests").click()
    page.get_by_label("File of tests").set_input_files(large)
    expect(page.get_by_role("alert")).to_have_text("large.flowtest.yaml is larger than 1 MiB.")
    expect(page.get_by_role("button", name="Write the first test")).to_be_visible()


def test_a_finding_of_a_rule_says_why(page: Page, rest: httpx.Client, unique: str) -> None:
    rest.put(f"/v1/flows/{unique}", json={"definition": UNFIT}).raise_for_status()
    page.goto(f"/flows/{unique}/edit")
    problems = page.get_by_role("list", name="Problems")
    expect(problems).to_contain_text("`$local.b` finds nothing")
    problems.get_by_text("Why?").press("Enter")
    expect(problems).to_contain_text("A mapping or a condition reads something that no execution has.")


def test_anybody_can_use_the_tests(page: Page, flow: str, file: Path) -> None:
    """Axe finds nothing in results and path, in light and dark, and neither is wider than a telephone."""
    open_tests(page, flow, file)
    page.get_by_role("button", name="Run tests").click()
    results = page.get_by_role("list", name="Results")
    expect(results).to_contain_text("expected step done")
    page.evaluate(AXE.read_text("utf-8"))
    found = violations(page, RULES)
    page.emulate_media(color_scheme="dark")
    found += violations(page, CONTRAST)
    page.set_viewport_size(NARROW)
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]
    results.get_by_role("button", name="failed ").click()
    expect(step(page, "charge, Caught")).to_be_visible()
    found += violations(page, RULES)
    page.emulate_media(color_scheme="light")
    found += violations(page, CONTRAST)
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]
    assert found == []
