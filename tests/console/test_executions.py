"""Executions of all flows: found, kept as a view, stopped and redriven, all without the mouse; flows; the sign-in."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import Page, Route, expect

from flowserver.store.access_keys import disable_access_key
from flowserver.store.sql.database import Database
from tests.console.browser.complaints import Complaints
from tests.console.browser.settled import FRAMES
from tests.support.access_key import ACCESS_KEY_ID, TOKEN, create_database_with_key
from tests.support.server import ServerProcess

PASS = "version: v1\ntype: flow\nsteps: [{type: pass, name: p}]\n"
FAIL = "version: v1\ntype: flow\nsteps: [{type: fail, name: label, error: PrinterOffline, cause: <b>no paper</b>}]\n"
WAIT = "version: v1\ntype: flow\nsteps: [{type: wait, name: sleep, duration: 86400}]\n"

POLL_MS = 5_000


def _keep(rest: httpx.Client, flow: str, definition: str, *names: str) -> None:
    """Create the flow, and start an execution of each name, the last one last."""
    rest.put(f"/v1/flows/{flow}", json={"definition": definition}).raise_for_status()
    wait = "" if definition == WAIT else "?wait=60"
    for name in names:
        rest.post(f"/v1/flows/{flow}/executions{wait}", json={"name": name}).raise_for_status()


def test_a_page_of_a_list_that_cannot_be_read_is_asked_for_again_and_not_too_often(
    page: Page, rest: httpx.Client, complaints: Complaints, unique: str
) -> None:
    complaints.allow("status of 503")
    _keep(rest, unique, PASS, "o1")
    page.clock.install()
    rows = rest.get("/v1/executions", params={"flow": unique}).json()["executions"]
    refused: list[str] = []
    is_busy = True

    def answer(route: Route) -> None:
        if "nextToken=" not in route.request.url:
            route.fulfill(json={"executions": rows, "nextToken": "more"})
        elif is_busy:
            refused.append(route.request.url)
            route.fulfill(status=503, json={"code": "Busy", "detail": "The server is busy."})
        else:
            route.fulfill(json={"executions": [], "nextToken": None})

    page.route("**/v1/executions?*", answer)
    page.goto(f"/executions?flow={unique}")
    expect(page.get_by_role("alert")).to_contain_text("The server is busy.")
    page.evaluate(FRAMES)
    assert len(refused) <= 2 + page.evaluate("performance.now()") / 500, refused
    is_busy = False
    page.clock.run_for(POLL_MS)
    expect(page.get_by_text("These are all.")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)


def test_executions_are_found_and_the_filter_is_kept_as_a_view(page: Page, rest: httpx.Client, unique: str) -> None:
    _keep(rest, f"{unique}-order", PASS, "o1", "o2")
    _keep(rest, f"{unique}-refund", FAIL, "r1", "r2", "s1")
    page.goto(f"/executions?flow={unique}-refund")
    rows = page.get_by_role("grid", name="Executions").get_by_role("row")
    expect(rows).to_contain_text(["Status", "s1", "r2", "r1"])
    expect(rows.nth(1)).to_contain_text("label PrinterOffline")
    page.get_by_label("Name begins with").fill("r")
    expect(rows).to_contain_text(["Status", "r2", "r1"])
    expect(page).to_have_url(f"/executions?flow={unique}-refund&prefix=r")
    page.get_by_role("button", name="Succeeded").click()
    expect(page.get_by_text("No execution matches.")).to_be_visible()
    command = f"flowserver executions list --status succeeded --flow {unique}-refund --prefix r"
    expect(page.get_by_text(command)).to_be_visible()
    page.go_back()
    expect(rows).to_contain_text(["Status", "r2", "r1"])

    page.get_by_role("button", name="Views").click()
    page.get_by_label("Name of the view").fill("my refunds")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Clear").click()
    expect(page).to_have_url("/executions")
    expect(page.get_by_label("Name begins with")).to_have_value("")
    page.reload()
    page.get_by_role("button", name="All executions").click()
    page.get_by_role("link", name="my refunds").click()
    expect(rows).to_contain_text(["Status", "r2", "r1"])
    page.get_by_role("button", name="my refunds", exact=True).click()
    page.get_by_role("button", name="Remove my refunds").click()
    expect(page.get_by_role("link", name="my refunds")).to_have_count(0)


def test_an_unknown_flow_and_a_failing_server_are_said_in_words(
    page: Page, complaints: Complaints, rest: httpx.Client, unique: str
) -> None:
    complaints.allow("status of 404|status of 500|ERR_FAILED")
    _keep(rest, unique, PASS, "only")
    page.clock.install()
    page.goto(f"/executions?flow={unique}x")
    expect(page.get_by_text(f"There is no flow {unique}x.")).to_be_visible()
    flow = page.get_by_role("combobox", name="Flow")
    flow.fill(unique)
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="only")).to_be_visible()
    page.route("**/v1/executions?*", lambda route: route.fulfill(status=500, body="<b>proxy</b>"))
    page.get_by_label("Name begins with").fill("on")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("The server answered 500.")
    page.unroute_all()
    page.route("**/v1/**", lambda route: route.abort())
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_text("The server cannot be reached. This page tries again.")).to_be_visible()
    page.unroute_all()
    page.clock.run_for(POLL_MS)
    expect(page.get_by_role("link", name="only")).to_be_visible()
    expect(page.get_by_text("cannot be reached")).to_have_count(0)


def test_new_executions_wait_to_be_shown_and_changes_are_shown_in_place(
    page: Page, rest: httpx.Client, unique: str
) -> None:
    _keep(rest, unique, WAIT, "first", "second")
    page.clock.install()
    page.goto(f"/executions?flow={unique}&status=running")
    rows = page.get_by_role("grid", name="Executions").get_by_role("row")
    expect(rows).to_contain_text(["Name", "second", "first"])
    _keep(rest, unique, WAIT, "third")
    rest.post(f"/v1/flows/{unique}/executions/first/stop").raise_for_status()
    page.clock.run_for(POLL_MS)
    expect(page.get_by_role("button", name="1 new")).to_be_visible()
    expect(rows).to_contain_text(["Name", "second", "first"])
    expect(rows.filter(has_text="first")).to_contain_text("Stopped")
    page.keyboard.press("r")
    expect(rows).to_contain_text(["Name", "third", "second"])
    expect(page.get_by_role("button", name="1 new")).to_have_count(0)


def test_a_list_with_a_page_of_new_executions_reads_only_the_rows_on_screen(
    page: Page, rest: httpx.Client, unique: str
) -> None:
    _keep(rest, unique, WAIT, "first")
    page.clock.install()
    page.goto(f"/executions?flow={unique}")
    row = page.get_by_role("grid", name="Executions").get_by_role("row").filter(has_text="first")
    expect(row).to_contain_text("Running")
    _keep(rest, unique, WAIT, *(f"n{number}" for number in range(51)))
    with page.expect_response("**/executions/first?documents=false"):
        page.clock.run_for(POLL_MS)
    expect(page.get_by_role("button", name="50+ new")).to_be_visible()
    rest.post(f"/v1/flows/{unique}/executions/first/stop").raise_for_status()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.partition("/v1/")[2]))
    page.clock.run_for(POLL_MS)
    expect(row).to_contain_text("Stopped")
    page.clock.run_for(POLL_MS)
    assert [each for each in asked if "executions" in each] == [f"flows/{unique}/executions/first?documents=false"]


def test_a_selection_is_stopped_and_redriven_by_keyboard(
    page: Page, rest: httpx.Client, complaints: Complaints, unique: str
) -> None:
    """Of four that run, three are selected; one of these has ended before it could be stopped."""
    _keep(rest, unique, WAIT, "alpha", "bravo", "charlie", "delta")
    page.goto(f"/executions?flow={unique}")
    rows = page.get_by_role("grid", name="Executions").get_by_role("row")
    expect(rows).to_contain_text(["Name", "delta", "charlie", "bravo", "alpha"])
    rest.post(f"/v1/flows/{unique}/executions/bravo/stop").raise_for_status()
    complaints.allow("status of 40[09]")
    for key in "jjxjjX":
        page.keyboard.press(key)
    expect(page.get_by_text("3 selected")).to_be_visible()
    page.keyboard.press("S")
    dialog = page.get_by_role("dialog", name="Stop 3 executions")
    expect(dialog.get_by_text(f"{unique}/charlie")).to_be_visible()
    expect(dialog.get_by_label("Error (optional)")).to_be_focused()
    page.keyboard.type("Cancelled")
    page.keyboard.press("Enter")
    expect(dialog.get_by_text("2 executions stopped, 1 failed")).to_be_visible()
    expect(dialog.get_by_role("listitem").filter(has_text=f"{unique}/bravo")).to_contain_text(
        "ExecutionAlreadyCompleted"
    )
    expect(dialog.get_by_role("button", name="Close").last).to_be_focused()
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    expect(page.get_by_text("1 selected")).to_be_visible()
    expect(rows.filter(has_text="Stopped")).to_have_count(3)
    page.keyboard.press("R")
    expect(page.get_by_role("dialog", name="Redrive 1 execution").get_by_label("Definition")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_text("1 execution redriven")).to_be_visible()
    page.keyboard.press("Escape")
    expect(rows.filter(has_text="Running").filter(has_text="bravo")).to_have_count(1)
    stopped = rest.get(f"/v1/flows/{unique}/executions/charlie").json()
    assert (stopped["status"], stopped["error"]) == ("Stopped", "Cancelled")
    redriven = rest.get(f"/v1/flows/{unique}/executions/bravo").json()
    assert (redriven["status"], redriven["redriveCount"]) == ("Running", 1)
    page.keyboard.press("Escape")  # nothing is selected
    for key in "jkkxkxc":
        page.keyboard.press(key)
    expect(page).to_have_url(re.compile(r"/compare\?left="))


def test_each_row_of_a_bulk_redrive_is_shown_as_it_is_then(page: Page, rest: httpx.Client, unique: str) -> None:
    names = [f"e{number}" for number in range(8)]
    _keep(rest, unique, WAIT, *names)
    for name in names:
        rest.post(f"/v1/flows/{unique}/executions/{name}/stop").raise_for_status()
    page.clock.install()  # so that nothing but the redrive itself makes the list look again
    page.goto(f"/executions?flow={unique}")
    rows = page.get_by_role("grid", name="Executions").get_by_role("row")
    expect(rows.filter(has_text="Stopped")).to_have_count(8)
    page.clock.pause_at(page.evaluate("Date.now() + 1000"))
    page.get_by_role("checkbox", name="Select all").check()
    page.keyboard.press("R")
    page.get_by_role("dialog").get_by_role("button", name="Redrive").click()
    expect(page.get_by_text("8 executions redriven")).to_be_visible()
    expect(rows.filter(has_text="Running")).to_have_count(8)


def test_causes_are_shown_by_their_message(page: Page, rest: httpx.Client, unique: str) -> None:
    cause = json.dumps({"errorMessage": 'no paper in "tray" 2 ' + "x" * 400, "errorType": "Printer"})
    definition = f"version: v1\ntype: flow\nsteps: [{{type: fail, name: label, error: Offline, cause: '{cause}'}}]\n"
    _keep(rest, unique, definition, "run")
    page.goto("/")
    shown = page.get_by_role("row").filter(has_text=f"{unique}/run")
    expect(shown).to_contain_text('Offline · no paper in "tray" 2 xxx')
    expect(shown).not_to_contain_text("errorMessage")
    page.goto(f"/executions?flow={unique}")
    expect(page.get_by_title('label · Offline · no paper in "tray" 2')).to_be_visible()


def test_commands_name_this_server(page: Page, rest: httpx.Client, server: ServerProcess, unique: str) -> None:
    _keep(rest, unique, WAIT, "run")
    page.goto(f"/executions/{unique}/run")
    page.get_by_role("button", name="Copy as command").click()
    commands = page.get_by_role("dialog").locator("code")
    expect(commands.filter(has_text="executions stop")).to_have_text(
        f"flowserver executions stop {unique}/run --server {server.url}"
    )
    expect(commands.filter(has_not_text=f" --server {server.url}")).to_have_count(0)


def test_a_flow_whose_input_has_names_of_an_objects_prototype_is_started(
    page: Page, rest: httpx.Client, unique: str
) -> None:
    mappings = ", ".join(
        f"{{target: {name}, source: $input.{name}}}" for name in ("constructor", "toString", "__proto__", "valueOf")
    )
    definition = f"version: v1\ntype: flow\nsteps: [{{type: pass, name: p, outputMappings: [{mappings}]}}]\n"
    rest.put(f"/v1/flows/{unique}", json={"definition": definition}).raise_for_status()
    page.goto(f"/flows/{unique}")
    page.get_by_role("button", name="Start…").click()
    dialog = page.get_by_role("dialog")
    for name in ("constructor", "toString", "valueOf", "__proto__"):
        dialog.get_by_label(name).fill(name[:3])
    dialog.get_by_label("Name").fill("run")
    dialog.get_by_role("button", name="Start").click()
    expect(page).to_have_url(f"/executions/{unique}/run")
    given = rest.get(f"/v1/flows/{unique}/executions/run").json()["input"]
    assert given == {"constructor": "con", "toString": "toS", "valueOf": "val", "__proto__": "__p"}


def test_all_that_match_are_selected_page_by_page(page: Page, rest: httpx.Client, unique: str) -> None:
    rest.put(f"/v1/flows/{unique}", json={"definition": PASS}).raise_for_status()
    for number in range(130):
        rest.post(f"/v1/flows/{unique}/executions", json={"name": f"e{number:03}"}).raise_for_status()
    page.goto(f"/executions?flow={unique}")
    expect(page.get_by_text("50+ executions")).to_be_visible()
    assert page.get_by_role("row").count() < 60  # only those on screen exist
    page.get_by_label("Select all rows that are loaded").click()
    expect(page.get_by_text("50 selected")).to_be_visible()
    page.get_by_role("button", name="Select all that match").click()
    expect(page.get_by_text("130 selected")).to_be_visible()
    expect(page.get_by_role("button", name="Stop…")).to_be_disabled()
    page.keyboard.press("Escape")
    page.keyboard.press("End")
    expect(page.get_by_role("row").filter(has_text="e000")).to_be_visible()
    expect(page.get_by_text("These are all.")).to_be_visible()


def test_search_and_jumps_by_keyboard(page: Page, rest: httpx.Client, unique: str) -> None:
    _keep(rest, f"{unique}-order", FAIL, "order-4711", "order-4712")
    page.goto("/flows")
    expect(page.get_by_role("link", name=f"{unique}-order")).to_be_visible()
    page.keyboard.press("/")
    search = page.get_by_role("combobox", name="Search")
    page.keyboard.type(f"{unique}-order/order-4711")
    expect(page.get_by_role("option")).to_contain_text(["order-4711"])
    search.fill(unique)
    expect(page.get_by_role("option")).to_contain_text(
        [f"{unique}-order", f"Executions whose names begin with {unique}"]
    )
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"/executions?prefix={unique}")
    page.keyboard.press("g")
    page.keyboard.press("f")
    expect(page).to_have_url("/flows")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_contain_text("Start the flow of the row")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_flow_is_found_and_started(page: Page, rest: httpx.Client, complaints: Complaints, unique: str) -> None:
    _keep(rest, f"{unique}-a", FAIL, "one")
    _keep(rest, f"{unique}-b", PASS)
    page.goto(f"/flows?prefix={unique}")
    rows = page.get_by_role("grid", name="Flows").get_by_role("row")
    expect(rows).to_contain_text(["Name", "Failed", "never"])
    page.get_by_label("Name begins with").fill(f"{unique}-b")
    expect(rows).to_have_count(2)
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("s")
    dialog = page.get_by_role("dialog", name=f"Start {unique}-b")
    dialog.get_by_label("Name").fill("by-hand")
    dialog.get_by_role("button", name="Start", exact=True).click()
    expect(page).to_have_url(f"/executions/{unique}-b/by-hand")
    rest.put(f"/v1/flows/{unique}-c", json={"definition": WAIT}).raise_for_status()
    complaints.allow("ERR_FAILED")
    page.goto(f"/flows?prefix={unique}-c")
    page.route("**/executions", lambda route: (route.fetch(), route.abort()))  # the answer is lost
    page.get_by_role("button", name=f"Start {unique}-c").click()
    dialog = page.get_by_role("dialog", name=f"Start {unique}-c")
    dialog.get_by_role("button", name="Start", exact=True).click()
    expect(dialog.get_by_role("alert")).to_contain_text("may have been made all the same")
    expect(dialog.get_by_label("Name")).to_have_value(re.compile("run-[0-9a-f]{20}"))
    page.unroute_all()
    dialog.get_by_role("button", name="Start", exact=True).click()
    (run,) = rest.get(f"/v1/flows/{unique}-c/executions").json()["executions"]
    expect(page).to_have_url(f"/executions/{unique}-c/{run['name']}")
    assert len(rest.get(f"/v1/flows/{unique}-c/executions").json()["executions"]) == 1


def _follow_after_signing_in(page: Page) -> None:
    """Signs out, which asks the server once, and in again on the page of an execution: it is painted and followed."""
    page.goto("/executions/night/run")
    painted = page.get_by_role("group", name="Steps of the flow").get_by_role("button", name="sleep, Waiting")
    expect(painted).to_be_visible()
    refused: list[str] = []
    page.on("response", lambda answer: refused.append(answer.url) if answer.status == 401 else None)
    with page.expect_response(lambda answer: answer.status == 401):
        page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("dialog", name="Sign in").get_by_label("Bearer token")).to_be_focused()
    expect(painted).to_have_count(0)
    with page.expect_request("**/events/stream*"):
        page.keyboard.type(TOKEN)
        page.keyboard.press("Enter")
    expect(painted).to_be_visible()
    assert len(refused) == 1, refused
    page.evaluate("sessionStorage.clear()")
    page.reload()
    expect(page.get_by_role("dialog", name="Sign in").get_by_label("Bearer token")).to_be_focused()
    page.keyboard.type(TOKEN)
    page.keyboard.press("Enter")
    expect(painted).to_be_visible()
    expect(page.get_by_role("listbox", name="Events").get_by_role("option").first).to_be_visible()
    page.goto("/executions")


def test_a_key_signs_in_until_it_is_disabled(
    opened: Callable[..., Page], complaints: Complaints, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/keys.db"
    create_database_with_key(url)
    with ServerProcess(url) as server:
        complaints.serve_at(server.url)
        complaints.allow("status of 401")
        page = opened(base_url=server.url)
        page.clock.install()
        page.goto("/executions")
        dialog: Any = page.get_by_role("dialog", name="Sign in")
        expect(dialog.get_by_label("Bearer token")).to_be_focused()
        page.keyboard.press("Escape")
        page.keyboard.type("\N{CYRILLIC SMALL LETTER A}BC")
        page.keyboard.press("Enter")
        expect(dialog.get_by_role("alert")).to_contain_text("This is no bearer token")
        page.keyboard.type("wrong")
        page.keyboard.press("Enter")
        expect(dialog.get_by_role("alert")).to_contain_text("unknown or disabled")
        page.keyboard.type(TOKEN)
        page.keyboard.press("Enter")
        expect(dialog).to_have_count(0)
        expect(page.locator("header.top")).to_contain_text("tests")
        page.reload()
        expect(page.locator("header.top")).to_contain_text("tests")
        with httpx.Client(base_url=server.url, trust_env=False, headers={"Authorization": f"Bearer {TOKEN}"}) as rest:
            _keep(rest, "night", WAIT, "run")
        _follow_after_signing_in(page)
        database = Database(url)
        with database.write() as connection:
            disable_access_key(connection, ACCESS_KEY_ID, 1)
        database.close()
        while not dialog.is_visible():  # the server looks again after a second
            page.clock.run_for(POLL_MS)
        expect(dialog).to_contain_text("The server no longer takes your token")


def test_a_token_is_forgotten_where_the_server_wants_none(opened: Callable[..., Page]) -> None:
    page = opened(token="left-over")
    page.goto("/executions")
    page.get_by_role("button", name="Sign out").click()
    expect(page.locator("header.top")).to_contain_text("no keys")
    expect(page.get_by_role("button", name="Sign out")).to_have_count(0)
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("grid", name="Executions")).to_be_visible()
