"""Definitions are written, checked, saved, published and started in the console, and executions compared."""

import re

import httpx
from playwright.sync_api import Locator, Page, expect

from flowserver.language.fields import CATCH, ITERATION, RETRY, STEPS
from flowserver.language.graph import Pattern
from tests.console.browser.complaints import Complaints

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
COMPARED = """\
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
RESTS = "version: v1\ntype: flow\nsteps: [{type: wait, name: rest, duration: 3600}]\n"
HOSTILE = "<script>alert(1)</script> \u202eright to left 🙂"


def editor_of(page: Page) -> Locator:
    editor = page.get_by_role("textbox", name="Definition")
    expect(editor).to_be_visible()
    return editor


def write_over(editor: Locator, text: str) -> None:
    """Replace the text as a paste does. `fill` would have the browser set styles, which the page forbids."""
    editor.click()
    editor.page.keyboard.press("ControlOrMeta+a")
    editor.page.keyboard.insert_text(text)


def put_flow(rest: httpx.Client, name: str, definition: str = PASS) -> None:
    rest.put(f"/v1/flows/{name}", json={"definition": definition}).raise_for_status()


def definition_of(rest: httpx.Client, name: str) -> str:
    return str(rest.get(f"/v1/flows/{name}").json()["definition"])


def test_a_new_flow_is_written_published_and_started(
    page: Page, rest: httpx.Client, complaints: Complaints, unique: str
) -> None:
    complaints.allow("status of 400")
    with page.expect_response("**/v1/definitions/language"):  # before, it completes nothing
        page.goto("/flows/-/new")
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
    expect(page.get_by_text("Created.")).to_be_visible()
    expect(editor).to_be_focused()
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
    expect(starting.get_by_label("name", exact=True)).to_be_focused()
    expect(starting.get_by_label("name", exact=True)).to_have_js_property("spellcheck", False)
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


def test_nothing_is_said_of_a_text_that_was_not_checked(page: Page, complaints: Complaints) -> None:
    page.clock.install()
    page.goto("/flows/-/new")
    editor = editor_of(page)
    expect(page.get_by_role("group", name="Steps of the flow")).to_contain_text("hello")
    expect(page.get_by_text("No problems")).to_be_visible()
    write_over(editor, "{version: v1, type: flow, steps: [{type: pass, name: pasted, nmae: x}]}")
    page.clock.run_for(500)
    expect(page.get_by_text("1 error", exact=True)).to_be_visible()
    expect(page.get_by_text("The graph appears once the text has no errors.")).to_be_visible()
    write_over(editor, "{version: v1, type: flow, steps: [{type: pass, name: pasted}]}")
    page.clock.run_for(500)
    expect(page.get_by_text("No problems")).to_be_visible()
    page.route("**/v1/definitions/validate", lambda _: None)  # the server does not answer
    write_over(editor, "steps: nothing")
    page.clock.run_for(1_500)
    expect(page.get_by_text("Checking…")).to_be_visible()
    expect(page.get_by_text("No problems")).to_have_count(0)
    page.unroute_all(behavior="ignoreErrors")


def test_what_was_saved_elsewhere_is_not_overwritten_and_a_reader_cannot_save(
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
    page.keyboard.press("Control+s")
    dialog = page.get_by_role("dialog", name="This flow was saved meanwhile")
    expect(dialog).to_contain_text("# theirs")  # buttons have the word, too
    expect(dialog).to_contain_text("1 change")
    dialog.get_by_role("button", name="Continue editing").click()
    assert definition_of(rest, unique) == PASS + "# theirs"

    page.get_by_role("button", name="Save", exact=True).click()
    expect(dialog).to_contain_text("# theirs")  # buttons have the word, too
    put_flow(rest, unique, PASS + "# theirs again")
    dialog.get_by_role("button", name="Replace theirs with mine").click()
    expect(dialog).to_contain_text("# theirs again")
    dialog.get_by_role("button", name="Replace theirs with mine").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    assert definition_of(rest, unique) == PASS + "# mine"
    editor_of(page).click()
    page.keyboard.press("Control+End")
    page.keyboard.type(" too")
    put_flow(rest, unique, PASS + "# mine too")  # as if the answer to a save was lost
    page.keyboard.press("Control+s")
    expect(page.get_by_text("Unsaved changes")).to_be_hidden()

    reader = {"key": "reader", "open": False, "may": ["flows.read"]}
    page.route("**/v1/permissions", lambda route: route.fulfill(json=reader))
    page.reload()
    editor_of(page).click()
    page.keyboard.type("# ")
    expect(page.get_by_text("Unsaved changes")).to_be_visible()
    for name in ("Save", "Save as new version…", "Start…"):
        expect(page.get_by_role("button", name=name, exact=True)).to_be_disabled()


def test_unsaved_text_is_not_lost_by_leaving_and_tab_leaves_the_editor(
    page: Page, rest: httpx.Client, unique: str
) -> None:
    put_flow(rest, unique)
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

    page.goto("/flows/-/new")
    editor_of(page).click()
    page.keyboard.type("# ")
    page.get_by_label("Begin with").select_option("Wait for an answer")
    page.get_by_role("dialog", name="Replace your text?").get_by_role("button", name="Replace").click()
    expect(editor_of(page)).to_contain_text("waitForCallback")


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


def test_templates_completion_and_places_are_those_of_the_server(page: Page, rest: httpx.Client) -> None:
    page.goto("/flows/-/new")
    templates = page.evaluate("import('./console/pages/editor/templates.js').then(module => module.TEMPLATES)")
    assert [each["name"] for each in templates] == ["hello", "callback", "foreach"]
    for template in templates:
        report = rest.post("/v1/definitions/validate", json={"definition": template["text"]}).json()
        assert report["valid"], template["name"]
        assert {each["id"] for each in report["diagnostics"]} <= {"unknown-function"}

    offset = page.evaluate(  # columns count code points, lines all line breaks of YAML
        "text => import('./console/parts/editor/positions.js').then(({ offsetsIn }) => offsetsIn(text)(2, 3))",
        "a: 1\u2028🙂🙂b: 2\n",
    )
    assert offset == len("a: 1\u2028") + 4

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


def run(rest: httpx.Client, flow: str, name: str, total: int, *items: str) -> None:
    body = {"name": name, "input": {"total": total, "items": items}}
    rest.post(f"/v1/flows/{flow}/executions?wait=20", json=body).raise_for_status()


def test_two_runs_are_compared(page: Page, rest: httpx.Client, unique: str) -> None:
    rest.put(f"/v1/flows/{unique}", json={"definition": COMPARED}).raise_for_status()
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

    rest.put(f"/v1/flows/{unique}-rests", json={"definition": RESTS}).raise_for_status()
    rest.post(f"/v1/flows/{unique}-rests/executions", json={"name": "rests"}).raise_for_status()
    with page.expect_request(re.compile("/executions/rests[?]documents=false")):
        page.goto(f"/compare?left={unique}/small&right={unique}-rests/rests&tab=output")
    rest.post(f"/v1/flows/{unique}-rests/executions/rests/stop", json={"error": "Halted"}).raise_for_status()
    expect(page.get_by_role("tabpanel", name="output")).to_contain_text("Halted")
    page.goto(f"/compare?left={unique}/again&right={unique}/small")

    page.set_viewport_size({"width": 390, "height": 844})
    page.get_by_label("Other run for A").select_option("large")
    page.get_by_role("tab", name="Input").click()
    expect(documents.get_by_role("textbox")).to_have_count(1)  # one text with the changes in it
    expect(documents).to_contain_text("<script>alert(1)</script>")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
