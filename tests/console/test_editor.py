"""Definitions are written, checked, saved, published and started in the console."""

import re

import httpx
from playwright.sync_api import Locator, Page, expect

from flowserver.language.fields import CATCH, ITERATION, RETRY, STEPS
from flowserver.language.graph import Pattern
from tests.console.browser.complaints import Complaints
from tests.console.conftest import Opened

PASS = "version: v1\ntype: flow\nsteps:\n  - type: pass\n    name: first\n"
CHOICE = """\
version: v1
type: flow
steps:
  - type: choice
    name: check
    choices:
      - condition: $.a == 1
        goto: ¦
  - {type: pass, name: inline}
  - type: foreach
    name: each
    steps:
      - type: pass
        name: inner
"""


def editor_of(page: Page) -> Locator:
    editor = page.get_by_role("textbox", name="Definition")
    expect(editor).to_be_visible()
    return editor


def put_flow(rest: httpx.Client, name: str, definition: str = PASS) -> None:
    rest.put(f"/v1/flows/{name}", json={"definition": definition}).raise_for_status()


def definition_of(rest: httpx.Client, name: str) -> str:
    return str(rest.get(f"/v1/flows/{name}").json()["definition"])


def test_a_new_flow_is_written_published_and_started(
    page: Page, rest: httpx.Client, complaints: Complaints, unique: str
) -> None:
    complaints.allow("status of 400")
    page.goto("/flows/new")
    editor = editor_of(page)
    expect(page.get_by_role("group", name="Steps of the flow")).to_contain_text("hello")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("alert")).to_contain_text("Give the flow a name")
    expect(page.get_by_label("Name")).to_be_focused()
    page.keyboard.type(unique)

    editor.click()
    page.keyboard.press("Control+End")
    page.keyboard.type("  - type: succ")
    expect(page.get_by_role("option", name=re.compile("^succeed"))).to_be_visible()
    page.keyboard.press("Enter")
    expect(editor).to_contain_text("type: succeed")
    page.keyboard.type("\nnmae: done")
    problem = page.get_by_role("list", name="Problems").get_by_role("button", name="12:5")
    expect(problem).to_contain_text("did you mean `name`?")
    expect(page.get_by_text("The text has errors. This is the graph from before.")).to_be_visible()
    page.keyboard.press("Control+s")
    expect(page.get_by_role("alert")).to_contain_text("Not saved: the definition has 2 errors")
    page.keyboard.press("Control+Home")
    problem.click()
    expect(editor).to_be_focused()
    page.keyboard.press("Control+Shift+ArrowRight")
    page.keyboard.type("name")
    expect(page.get_by_text("No problems")).to_be_visible()
    expect(page.get_by_role("group", name="Steps of the flow")).to_contain_text("done")

    page.keyboard.press("Control+s")
    page.wait_for_url(f"**/flows/{unique}/edit")
    assert definition_of(rest, unique).endswith("  - type: succeed\n    name: done")

    page.get_by_role("button", name="Save as new version").click()
    dialog = page.get_by_role("dialog", name="Save as a new version")
    dialog.get_by_label("What is new").fill("says hello")
    dialog.get_by_role("button", name="Save and publish").click()
    expect(page.get_by_role("link", name="version 1")).to_be_visible()
    editor_of(page).click()
    page.keyboard.press("Control+End")
    page.keyboard.type("\n# so polite")
    page.get_by_role("button", name="Save as new version").click()
    expect(dialog).to_contain_text("1 change")
    dialog.get_by_role("button", name="Save and publish").click()
    expect(page.get_by_role("link", name="version 2")).to_be_visible()
    versions = rest.get(f"/v1/flows/{unique}/versions").json()["versions"]
    assert [(each["version"], each["description"]) for each in versions] == [(2, ""), (1, "says hello")]

    page.get_by_role("button", name="Start…").click()
    starting = page.get_by_role("dialog", name=f"Start {unique}")
    expect(starting.get_by_label("name", exact=True)).to_be_visible()
    starting.get_by_role("tab", name="JSON").click()
    written = starting.get_by_role("textbox", name="Input")
    written.click()
    page.keyboard.press("Control+a")
    page.keyboard.type('["no object"]')
    starting.get_by_role("button", name="Start").click()
    expect(starting.get_by_role("alert")).to_contain_text("must be a JSON object")
    written.click()
    page.keyboard.press("Control+a")
    page.keyboard.type('{"name": 12345678901234567890}')
    starting.get_by_role("button", name="Start").click()
    page.wait_for_url(re.compile(f"/executions/{unique}/"))
    run = rest.get(f"/v1/flows/{unique}/executions").json()["executions"][0]["name"]
    assert '"input":{"name":12345678901234567890}' in rest.get(f"/v1/flows/{unique}/executions/{run}?wait=10").text


def test_what_was_saved_elsewhere_is_not_overwritten(
    page: Page, rest: httpx.Client, complaints: Complaints, unique: str
) -> None:
    complaints.allow("status of 412")
    put_flow(rest, unique)
    page.goto(f"/flows/{unique}/edit")
    editor_of(page).click()
    page.keyboard.press("Control+End")
    page.keyboard.type("# mine")
    expect(page.get_by_text("Unsaved changes")).to_be_visible()
    put_flow(rest, unique, PASS + "# theirs")
    page.keyboard.press("Control+s")
    dialog = page.get_by_role("dialog", name="This flow was saved meanwhile")
    expect(dialog).to_contain_text("theirs")
    expect(dialog).to_contain_text("1 change")
    dialog.get_by_role("button", name="Continue editing").click()
    assert definition_of(rest, unique) == PASS + "# theirs"

    page.get_by_role("button", name="Save", exact=True).click()
    expect(dialog).to_contain_text("theirs")
    put_flow(rest, unique, PASS + "# theirs again")
    dialog.get_by_role("button", name="Replace theirs with mine").click()
    expect(dialog).to_contain_text("theirs again")
    dialog.get_by_role("button", name="Replace theirs with mine").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    assert definition_of(rest, unique) == PASS + "# mine"


def test_unsaved_text_is_not_lost_by_leaving_and_tab_leaves_the_editor(
    page: Page, rest: httpx.Client, unique: str
) -> None:
    put_flow(rest, unique)
    page.goto("/flows")
    page.goto(f"/flows/{unique}/edit")
    editor = editor_of(page)
    editor.click()
    page.keyboard.press("Control+End")
    page.keyboard.press("Tab")
    page.keyboard.type("# indented")
    expect(editor).to_be_focused()
    expect(editor).to_contain_text("  # indented")
    page.keyboard.press("Escape")  # closes what completion offers, if it offers something
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    expect(editor).not_to_be_focused()

    question = page.get_by_role("dialog", name="Leave without saving?")
    page.get_by_role("link", name="Executions").click()
    question.get_by_role("button", name="Cancel").click()
    expect(editor).to_contain_text("# indented")
    page.get_by_role("link", name="Executions").click()
    question.get_by_role("button", name="Leave").click()
    page.wait_for_url("**/executions")
    assert definition_of(rest, unique) == PASS

    page.goto("/flows/new")
    editor_of(page).click()
    page.keyboard.type("# ")
    page.get_by_label("Begin with").select_option("Wait for an answer")
    page.get_by_role("dialog", name="Replace your text?").get_by_role("button", name="Replace").click()
    expect(editor_of(page)).to_contain_text("waitForCallback")
    page.get_by_role("tab", name="Tests").click()
    expect(page.get_by_text("flowserver validate flow.yaml")).to_be_visible()


def test_templates_are_valid(page: Page, rest: httpx.Client) -> None:
    page.goto("/flows/new")
    templates = page.evaluate("import('./console/pages/editor/templates.js').then(module => module.TEMPLATES)")
    assert [each["name"] for each in templates] == ["hello", "callback", "foreach"]
    for template in templates:
        report = rest.post("/v1/definitions/validate", json={"definition": template["text"]}).json()
        assert report["valid"], template["name"]
        assert {each["id"] for each in report["diagnostics"]} <= {"unknown-function"}


def offered(page: Page, rest: httpx.Client, *texts: str) -> list[list[str]]:
    """What completion offers at each `¦`, by the modules of the editor and the server's own description."""
    language = rest.get("/v1/definitions/language").json()
    resources = {"functions": ["shop/pay", "-/plain"], "flows": ["order"], "queues": ["jobs"], "topics": ["news"]}
    found: list[list[str]] = page.evaluate(
        """([texts, language, resources]) => import("./console/parts/editor/complete.js").then(({ completionsAt }) =>
        texts.map((text) => {
          const found = completionsAt(text.replace("¦", ""), text.indexOf("¦"), language, resources);
          return found ? found.options.map((option) => option.label) : [];
        }))""",
        [texts, language, resources],
    )
    return found


def test_completion_offers_what_the_server_reads(page: Page, rest: httpx.Client) -> None:
    page.goto("/")
    head = "steps:\n  - name: s\n    type: "
    attributes = offered(page, rest, *(f"{head}{kind}\n    ¦\n  - type: pass\n" for kind in STEPS))
    assert {kind: {"name", "type", *names} for kind, names in zip(STEPS, attributes, strict=True)} == {
        kind: set(table.fields) for kind, table in STEPS.items()
    }
    types, inline, goto, policy, rule, loop = offered(
        page,
        rest,
        f"{head}¦",
        "steps:\n- {type: pass, name: p, ¦}",
        CHOICE,
        f"{head}task\n    retry:\n      - errors: [x]\n        ¦",
        f"{head}task\n    catch:\n      - ¦",
        f"{head}foreach\n    iterationMapping:\n      ¦",
    )
    assert types == list(STEPS)
    assert set(inline) == set(STEPS["pass"].fields) - {"type", "name"}
    assert goto == ["inline", "each"]
    assert {*policy, "errors"} == set(RETRY.fields)
    assert set(rule) == set(CATCH.fields)
    assert set(loop) == set(ITERATION.fields)
    pattern, arn, source, selected, in_params, nowhere = offered(
        page,
        rest,
        f"{head}task\n    pattern: ¦",
        f"{head}task\n    resourceArn: ¦",
        f"{head}task\n    inputMappings:\n      - target: order\n        source: $¦",
        f"{head}choice\n    inputMappings: [{{target: total, source: $input.t}}]\n    choices:\n      - condition: $.¦",
        f"{head}task\n    serviceParams:\n      Input: $¦",
        f"{head}task\n    serviceParams:\n      ¦",
    )
    assert pattern == [str(each) for each in Pattern]
    assert arn == [
        "acs:fc:::services/shop/functions/pay",
        "acs:fc:::functions/plain",
        "acs:fnf:::flow/order",
        "acs:mns:::/queues/jobs/messages",
        "acs:mns:::/topics/news/messages",
    ]
    assert {"$input", "$local", "$context.step.name"} < set(source)
    assert "$.total" in selected
    assert "$" not in nowhere
    assert in_params == [] or "$.order" not in in_params


def test_places_count_code_points_and_all_line_breaks_of_yaml(page: Page) -> None:
    page.goto("/")
    offset = page.evaluate(
        "text => import('./console/parts/editor/positions.js').then(({ offsetsIn }) => offsetsIn(text)(2, 3))",
        "a: 1\u2028🙂🙂b: 2\n",
    )
    assert offset == len("a: 1\u2028") + 4


def test_a_reader_without_a_key_may_look_but_not_save(opened: Opened, rest: httpx.Client, unique: str) -> None:
    put_flow(rest, unique)
    page = opened()
    page.route("**/v1/permissions", lambda route: route.fulfill(json={"key": "reader", "open": False, "may": []}))
    page.goto(f"/flows/{unique}/edit")
    expect(editor_of(page)).to_contain_text("first")
    editor_of(page).click()
    page.keyboard.type("# ")
    expect(page.get_by_text("Unsaved changes")).to_be_visible()
    for name in ("Save", "Save as new version…", "Start…"):
        expect(page.get_by_role("button", name=name, exact=True)).to_be_disabled()
