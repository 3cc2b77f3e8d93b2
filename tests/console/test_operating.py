"""What an operator does in the console: look at the whole server, approve, and look after what serves the flows."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect
from sqlalchemy import select

from flowserver.api.console import FOLDER
from flowserver.operations.permissions import PERMISSIONS, ROLES
from flowserver.store.executions.saving import park_execution
from flowserver.store.invocations.parking import park_invocation
from flowserver.store.invocations.rows import insert_invocations
from flowserver.store.schema.tables import executions
from flowserver.store.sql.database import Database
from tests.console.conftest import Opened
from tests.store.rows import NODE, invocation_row
from tests.support.function_server import FunctionServer
from tests.support.server import ServerProcess

HOSTILE = "<img src=x onerror=alert(1)> \u202eدفع 💳"
APPROVAL = """\
version: v1
type: flow
steps:
  - type: task
    name: manager
    resourceArn: acs:fc:::services/shop/functions/ask
    pattern: waitForCallback
    inputMappings:
      - {target: token, source: $context.task.token}
    outputMappings:
      - {target: answer, source: $local}
"""
WAIT = "version: v1\ntype: flow\nsteps:\n  - {type: wait, name: w, duration: 3600}\n"


@pytest.fixture(scope="module")
def database_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The database of the module's server."""
    return f"sqlite:///{tmp_path_factory.mktemp('operating')}/flowserver.db"


@pytest.fixture(scope="module")
def server(database_url: str) -> Iterator[ServerProcess]:
    """The module's server."""
    with ServerProcess(database_url) as running:
        yield running


def put_flow(rest: httpx.Client, name: str, definition: str) -> None:
    rest.put(f"/v1/flows/{name}", json={"definition": definition}).raise_for_status()


def start(rest: httpx.Client, flow: str, name: str, given: Any, wait: int = 0) -> None:
    body = {"name": name, "input": given}
    rest.post(f"/v1/flows/{flow}/executions?wait={wait}", json=body, timeout=90).raise_for_status()


def approvals(rest: httpx.Client, functions: FunctionServer, server: ServerProcess, flow: str, count: int) -> None:
    """Executions that wait for people, and do so by now."""
    functions.register(server.url, "shop/ask")
    put_flow(rest, flow, APPROVAL)
    for number in range(count):
        start(rest, flow, f"{flow}-{number}", {"from": HOSTILE, "amount": 9007199254740993 + number})
    while len(rest.get("/v1/tasks", params={"flow": flow}).json()["tasks"]) < count:
        time.sleep(0.02)


def answer_of(rest: httpx.Client, flow: str, number: int) -> dict[str, Any]:
    return rest.get(f"/v1/flows/{flow}/executions/{flow}-{number}?wait=60", timeout=90).json()


def test_a_fresh_server_says_what_to_do_first_and_counts_lead_to_lists(
    page: Page, rest: httpx.Client, functions: FunctionServer, server: ServerProcess, unique: str
) -> None:
    page.goto("/")
    expect(page.get_by_role("heading", name="This server has no flows yet")).to_be_visible()
    expect(page.get_by_text("flowserver apply flow.yaml")).to_be_visible()
    fails = "version: v1\ntype: flow\nsteps:\n  - {type: fail, name: stop, error: Broken, cause: %s}\n"
    put_flow(rest, unique, fails % json.dumps(HOSTILE, ensure_ascii=False))
    start(rest, unique, "e1", {}, wait=60)
    tile = page.get_by_role("link", name="Failed today")
    expect(tile).to_contain_text("1")
    row = page.get_by_role("grid", name="Needs a look").get_by_role("row", name=f"{unique}/e1")
    expect(row).to_contain_text(HOSTILE)
    expect(page.get_by_role("img", name="1 started, 1 failed")).to_be_visible()
    tile.click()
    expect(page).to_have_url(re.compile("status=failed&ended=today"))
    page.go_back()
    row.click()
    expect(page).to_have_url(re.compile(f"/executions/{unique}/e1$"))


def test_several_are_approved_in_a_row_by_keyboard(
    page: Page, rest: httpx.Client, functions: FunctionServer, server: ServerProcess, unique: str
) -> None:
    approvals(rest, functions, server, unique, 4)
    page.goto(f"/waiting?flow={unique}")
    rows = page.get_by_role("grid", name="Waiting tasks").get_by_role("row", name=unique)
    expect(rows).to_have_count(4)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    side = page.get_by_role("complementary")
    expect(side).to_contain_text("onerror=alert(1)>")
    expect(side).to_contain_text("9007199254740993")
    assert rest.get("/v1/tasks", params={"flow": unique}).json()["tasks"][0]["taskToken"] not in page.url
    side.get_by_role("button", name="Raw").click()
    side.locator("pre").focus()
    page.keyboard.press("End")  # is for what has the focus
    page.keyboard.press("j")
    at = re.compile(f"row-{unique}/{unique}-1/[0-9]+$")
    expect(page.get_by_role("grid", name="Waiting tasks")).to_have_attribute("aria-activedescendant", at)
    page.keyboard.press("a")
    expect(side.get_by_label("Note (optional)")).to_be_focused()
    page.keyboard.type("fine")
    page.keyboard.press("Enter")
    expect(rows).to_have_count(3)
    assert answer_of(rest, unique, 0)["output"]["answer"] == {"approved": True, "note": "fine"}
    expect(side).to_have_accessible_name(re.compile(f"{unique}-1$"))
    page.keyboard.press("r")
    page.keyboard.type("too much")
    page.keyboard.press("Enter")
    expect(rows).to_have_count(2)
    rejected = answer_of(rest, unique, 1)
    assert (rejected["status"], rejected["error"], rejected["cause"]) == ("Failed", "Rejected", "too much")
    expect(side).to_have_accessible_name(re.compile(f"{unique}-2$"))
    expect(
        side.get_by_role("button", name="Approve and go on")
    ).to_be_visible()  # so that it is not rejected by mistake
    at = re.compile(f"row-{unique}/{unique}-2/[0-9]+$")  # the list shows which one the form is about
    expect(page.get_by_role("grid", name="Waiting tasks")).to_have_attribute("aria-activedescendant", at)
    page.keyboard.press("J")
    side.get_by_label("Output, a JSON object").fill("[1]")
    expect(side).to_contain_text("must be a JSON object")
    side.get_by_label("Output, a JSON object").fill('{"limit": 9007199254740993}')
    page.keyboard.press("Control+Enter")
    expect(rows).to_have_count(1)
    assert answer_of(rest, unique, 2)["output"]["answer"] == {"limit": 9007199254740993}
    page.keyboard.press("Escape")
    expect(side).to_have_count(0)
    page.goto(f"/waiting?flow={unique}&execution={unique}-3")
    side.get_by_role("button", name="Approve and go on").click()
    assert answer_of(rest, unique, 3)["output"]["answer"] == {"approved": True}
    expect(page.get_by_text("Nothing waits for people.")).to_be_visible()


def test_functions_are_registered_and_show_how_they_fare(
    page: Page, rest: httpx.Client, functions: FunctionServer, server: ServerProcess, unique: str
) -> None:
    page.goto("/functions")
    page.get_by_role("button", name="Register a function…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill(f"{unique}/echo")
    dialog.get_by_label("Address").fill(f"{functions.url}/{unique}/echo")
    dialog.get_by_label("Calls at once").fill("3")
    dialog.get_by_label("Headers").fill("X-Shop: main")
    dialog.get_by_role("button", name="Register").click()
    side = page.get_by_role("complementary", name=f"Function {unique}/echo")
    expect(side).to_contain_text(f"acs:fc:::services/{unique}/functions/echo")
    calls = f"services/{unique}/functions/echo"
    put_flow(
        rest, unique, f"version: v1\ntype: flow\nsteps:\n  - {{type: task, name: t, resourceArn: 'acs:fc:::{calls}'}}\n"
    )
    start(rest, unique, "e1", {"a": 1}, wait=60)
    row = page.get_by_role("row", name=f"{unique}/echo")
    expect(row.get_by_role("gridcell").nth(2)).to_have_text("1")
    side.get_by_role("button", name="Edit…").click()
    page.get_by_role("dialog").get_by_label("Calls at once").fill("4")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    expect(row).to_contain_text("of 4")
    assert rest.get(f"/v1/functions/{unique}/echo").json()["headers"] == {"X-Shop": "(hidden)"}
    side.get_by_role("button", name="Unregister…").click()
    page.get_by_role("dialog").get_by_role("button", name="Unregister").click()
    expect(row).to_have_count(0)
    assert rest.get(f"/v1/functions/{unique}/echo").status_code == 404


def test_a_queue_is_looked_at_and_purged_only_by_name(page: Page, rest: httpx.Client, unique: str) -> None:
    rest.put(f"/queues/{unique}").raise_for_status()
    rest.put(f"/topics/{unique}").raise_for_status()
    rest.post(f"/v1/queues/{unique}/messages", json={"body": HOSTILE}).raise_for_status()
    page.goto("/queues")
    expect(page.get_by_role("grid", name="Queues")).to_contain_text(unique)
    page.route("**/v1/topics?*", lambda _: None)
    page.get_by_role("tab", name="Topics").click()
    expect(page.get_by_role("tab", name="Topics", selected=True)).to_be_visible()
    expect(page.get_by_role("main")).not_to_contain_text(unique)
    page.unroute_all()
    page.goto(f"/queues?name={unique}")
    side = page.get_by_role("complementary", name=f"Queue {unique}")
    expect(side).to_contain_text(HOSTILE)
    side.get_by_role("button", name="Send…").click()
    page.get_by_role("dialog").get_by_label("Body").fill("second")
    page.get_by_role("dialog").get_by_role("button", name="Send").click()
    expect(side.get_by_role("listitem")).to_have_count(2)
    depth = page.get_by_role("grid", name="Queues").get_by_role("row", name=unique).get_by_role("gridcell").nth(1)
    expect(depth).to_have_text("2")
    side.get_by_role("button", name="Purge…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Type the queue's name").fill("another")
    dialog.get_by_role("button", name="Delete all messages").click()
    expect(dialog.get_by_role("alert")).to_contain_text("not the queue's name")
    dialog.get_by_label("Type the queue's name").fill(unique)
    dialog.get_by_role("button", name="Delete all messages").click()
    expect(side).to_contain_text("No message is ready.")
    expect(depth).to_have_text("0")
    page.get_by_role("tab", name="Topics").click()
    page.get_by_role("row", name=unique).click()
    expect(page.get_by_role("complementary")).to_contain_text("not delivered yet")


def test_a_schedule_is_paused_started_and_backfilled(page: Page, rest: httpx.Client, unique: str) -> None:
    put_flow(rest, unique, WAIT)
    fields = {"name": "nightly", "cronExpression": "0 0 3 * * ?", "timeZone": "Europe/Berlin", "overlap": "AllowAll"}
    rest.post(f"/v1/flows/{unique}/schedules", json=fields).raise_for_status()
    page.goto("/schedules")
    row = page.get_by_role("row", name=f"{unique}/nightly")
    row.click()
    side = page.get_by_role("complementary", name=f"Schedule {unique}/nightly")
    expect(side.get_by_role("listitem")).to_have_count(10)
    page.keyboard.press("P")
    page.get_by_role("dialog").get_by_label("Why").fill(HOSTILE)
    page.keyboard.press("Enter")
    expect(row).to_contain_text("Paused")
    expect(side).to_contain_text(HOSTILE)
    page.keyboard.press("T")
    page.get_by_role("dialog").get_by_role("button", name="Start").click()
    expect(side.get_by_text("Started nightly-")).to_be_visible()
    page.keyboard.press("B")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("From").fill("2020-03-01T00:00")
    dialog.get_by_label("To").fill("2020-03-02T00:00")
    dialog.get_by_label("If an execution of it runs").select_option("AllowAll")
    dialog.get_by_role("button", name="Run the ticks").click()
    expect(side.get_by_role("link", name=re.compile("nightly-20200301T020000Z"))).to_be_visible()
    page.keyboard.press("P")
    page.get_by_role("dialog").get_by_role("button", name="Resume").click()
    expect(row).to_contain_text("On")
    page.goto(f"/executions/{unique}/nightly-20200301T020000Z")
    expect(page.get_by_text("by schedule nightly")).to_be_visible()


def test_the_server_shows_its_nodes_and_how_keys_are_made(opened: Opened, server: ServerProcess) -> None:
    page = opened(color_scheme="dark", viewport={"width": 390, "height": 844})
    page.goto("/server")
    expect(page.get_by_role("grid", name="Nodes")).to_contain_text("Alive")
    expect(page.get_by_text(f"{len(PERMISSIONS)} permissions")).to_be_visible()
    expect(page.get_by_text("flowserver keys create --label laptop")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys").get_by_role("heading", name="List")).to_have_count(1)


def test_the_audit_shows_who_did_what(page: Page, rest: httpx.Client, unique: str) -> None:
    put_flow(rest, unique, WAIT)
    rest.delete(f"/v1/flows/{unique}").raise_for_status()
    page.goto("/server")
    page.get_by_role("link", name="Audit: who did what").click()
    page.get_by_label("Object, such as flows/order").fill(f"flows/{unique}")
    rows = page.get_by_role("grid", name="Audit").get_by_role("row")
    expect(rows).to_have_count(3)  # with the heads
    expect(rows.nth(1)).to_contain_text("flows.delete")
    rows.nth(1).dblclick()
    expect(page.get_by_role("complementary")).to_contain_text("127.0.0.1")
    page.get_by_label("Operation", exact=True).fill("flows.put")
    expect(rows).to_have_count(2)


def test_a_parked_invocation_is_stopped(page: Page, rest: httpx.Client, database_url: str, unique: str) -> None:
    database = Database(database_url)
    with database.write() as connection:
        insert_invocations(connection, [invocation_row(unique, service=unique)])
        assert park_invocation(connection, unique, NODE, HOSTILE)
    database.close()
    page.goto("/server")
    row = page.get_by_role("grid", name="Parked invocations").get_by_role("row", name=unique)
    expect(row).to_contain_text(HOSTILE)
    row.get_by_role("button", name="Stop").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop").click()
    expect(row).to_have_count(0)
    assert rest.get(f"/v1/functions/{unique}/f/invocations/{unique}").json()["status"] == "Stopped"


def test_a_parked_execution_is_restarted(page: Page, rest: httpx.Client, database_url: str, unique: str) -> None:
    put_flow(rest, unique, WAIT)
    start(rest, unique, "e1", {})
    database = Database(database_url)
    with database.write() as connection:
        query = select(executions.c.execution_id).where(executions.c.flow_name == unique)
        park_execution(connection, connection.execute(query).scalar_one(), HOSTILE)
    database.close()
    page.goto(f"/executions?flow={unique}&status=parked")
    page.get_by_role("row", name="e1").dblclick()
    expect(page.get_by_role("alert")).to_contain_text(f"The server has set it aside: {HOSTILE}")
    expect(page.get_by_text("Parked", exact=True)).to_be_visible()
    page.get_by_role("button", name="Restart").click()
    page.get_by_role("dialog", name="Restart").get_by_role("button", name="Restart").click()
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.get_by_role("button", name="Restart")).to_have_count(0)
    found = rest.get(f"/v1/flows/{unique}/executions/e1").json()
    assert (found["status"], found["parkedError"]) == ("Running", None)


def test_a_caller_who_only_reads_is_offered_no_change(
    page: Page, rest: httpx.Client, functions: FunctionServer, server: ServerProcess, unique: str
) -> None:
    approvals(rest, functions, server, unique, 1)
    rest.put(f"/queues/{unique}").raise_for_status()
    fields = {"name": "nightly", "cronExpression": "0 0 3 * * ?"}
    rest.post(f"/v1/flows/{unique}/schedules", json=fields).raise_for_status()
    reader = {"key": "reader", "open": False, "may": sorted(ROLES["viewer"])}
    page.route("**/v1/permissions", lambda route: route.fulfill(json=reader))
    page.goto(f"/queues?name={unique}")
    expect(page.get_by_role("button", name="Read again").first).to_be_enabled()
    expect(page.get_by_role("button", name="Send…")).to_be_disabled()
    expect(page.get_by_role("button", name="Purge…")).to_be_disabled()
    page.goto(f"/schedules?schedule={unique}/nightly")
    for name in ("Pause…", "Start now…", "Backfill…"):
        expect(page.get_by_role("button", name=name)).to_be_disabled()
    page.goto("/functions?function=shop/ask")
    expect(page.get_by_role("button", name="Unregister…")).to_be_disabled()
    expect(page.get_by_role("button", name="Register a function…")).to_have_count(0)
    page.goto(f"/waiting?flow={unique}")
    page.get_by_role("row", name=f"{unique}-0").click()
    expect(page.get_by_role("complementary")).to_contain_text("Input of the execution")
    expect(page.get_by_role("button", name="Approve")).to_have_count(0)


def test_every_permission_that_a_page_asks_for_is_in_the_table() -> None:
    asked = re.compile(r"\bmay\(\s*[\"']([^\"']+)[\"']\s*\)")
    names = {name for file in FOLDER.rglob("*.js") for name in asked.findall(Path(file).read_text("utf-8"))}
    assert names
    assert names <= set(PERMISSIONS)
