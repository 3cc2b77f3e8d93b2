"""The service's two tutorials, walked in the console: create the flow, start it, look at the trace."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.examples.conftest import EXAMPLES, functions_served
from tests.support.server import ServerProcess


@pytest.fixture(scope="module")
def hosted(server: ServerProcess) -> Iterator[None]:
    """The functions of both tutorials, hosted by `flowserver functions serve`."""
    variables = {"FLOWSERVER_URL": server.url}
    with functions_served("polling", variables), functions_served("callback", variables):
        yield


def paste(field: Locator, text: str) -> None:
    """Replace what the field holds, as a person does who has copied the text from a tutorial."""
    page = field.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.evaluate("text => navigator.clipboard.writeText(text)", text)
    field.click()
    field.press("ControlOrMeta+a")
    field.press("ControlOrMeta+v")
    expect(field).to_contain_text(text.rsplit(maxsplit=1)[-1])


def create(page: Page, name: str, definition: Path) -> None:
    """Create a flow in the editor; the text is pasted, as from a tutorial's page, and has one finding.

    The editor's own text has no problems, so a wait for "No problems" could end before the pasted text is checked.
    """
    page.goto("/flows")
    page.get_by_role("link", name="New flow").click()
    page.get_by_label("Name", exact=True).fill(name)
    paste(page.get_by_role("textbox", name="Definition"), definition.read_text())
    expect(page.get_by_role("status").get_by_text("1 warning")).to_be_visible()
    page.get_by_role("button", name="Create").click()
    expect(page).to_have_url(re.compile(rf"/flows/{name}(/edit)?$"))


def start(page: Page, name: str, given: str) -> None:
    """Start the flow from its page; the page of the execution opens."""
    page.goto(f"/flows/{name}")
    page.get_by_role("button", name="Start…").click()
    dialog = page.get_by_role("dialog")
    if (as_json := dialog.get_by_role("tab", name="JSON")).is_visible():
        as_json.click()
    paste(dialog.get_by_role("textbox", name="Input"), given)
    dialog.get_by_role("button", name="Start").click()
    expect(page).to_have_url(re.compile(rf"/executions/{name}/"))


def step_in_graph(page: Page, name: str, state: str) -> Locator:
    """The step's node, once it shows this state."""
    node = page.get_by_role("group", name="Steps of the flow").get_by_role("button", name=f"{name} ")
    expect(node).to_have_accessible_name(re.compile(state))
    return node


@pytest.mark.slow
@pytest.mark.usefixtures("hosted")
def test_poll_for_task_status(page: Page) -> None:
    """The job is over when it is first asked for, so one pause of ten seconds is enough."""
    create(page, "polling", EXAMPLES / "polling" / "flow.yaml")
    start(page, "polling", '{"delay": 5}')
    step_in_graph(page, "Wait10s", "Running|Waiting")
    expect(page.get_by_role("heading", level=1)).to_contain_text("polling")
    for name in ("StartJob", "Init", "Wait10s", "CheckJobComplete", "JobSucceeded"):
        step_in_graph(page, name, "Succeeded")
    step_in_graph(page, "JobFailed", "Not reached")
    step_in_graph(page, "GetJobStatus", "Succeeded").click()
    inspector = page.get_by_role("complementary", name="Step GetJobStatus")
    inspector.get_by_role("tab", name="Output").click()
    expect(inspector.get_by_role("treeitem", name='job_status: "success"')).to_be_visible()
    expect(page.get_by_role("main").get_by_text("Succeeded").first).to_be_visible()


@pytest.mark.usefixtures("hosted")
def test_callback_for_an_asynchronous_task(page: Page) -> None:
    create(page, "fnf-demo-callback", EXAMPLES / "callback" / "flow.yaml")
    start(page, "fnf-demo-callback", "{}")
    step_in_graph(page, "mytask", "Waiting for a report").click()
    expect(page.get_by_role("option", name="TaskSubmitted mytask output {taskToken:")).to_be_visible()
    page.get_by_role("complementary", name="Step mytask").get_by_role("button", name="Report success…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("textbox", name="Output").fill('{"status": "ok"}')
    dialog.get_by_role("button", name="Report").click()
    step_in_graph(page, "mytask", "Succeeded")
    page.get_by_role("tab", name="Output", exact=True).first.click()
    expect(page.get_by_role("treeitem", name='s: "ok"').first).to_be_visible()
