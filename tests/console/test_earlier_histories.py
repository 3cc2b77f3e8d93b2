"""Histories of a version whose choices did not record their options: what is not recorded is not guessed."""

from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.console.before.earlier_histories import earlier_histories
from tests.console.test_graph_layout import graph_of
from tests.console.test_graph_ways import ask
from tests.support.server import ServerProcess

TAKEN = {
    "poll": ["init next count", "count next check ×3", "more next", "done end"],
    "caught": ["charge catch refund", "refund iteration which ×3", "refund next", "one next", "other next ×2"],
    "redriven": ["first next once", "once next"],
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server of today with executions that 743398d5 has run."""
    with earlier_histories(tmp_path_factory.mktemp("before")) as running:
        yield running


@pytest.mark.parametrize("flow", list(TAKEN))
def test_no_option_of_theirs_is_drawn_as_taken(rest: httpx.Client, flow: str) -> None:
    run = f"/v1/flows/{flow}/executions/run"
    steps = rest.get(f"{run}/steps").json()["steps"]
    assert all(step["options"] == {} for step in steps)
    assert ask(graph_of(rest.get(run).json()["definition"]), steps, [])[1] == TAKEN[flow]


def test_the_page_says_that_the_option_is_not_recorded(page: Page) -> None:
    page.goto("/executions/poll/run")
    check = page.get_by_role("group", name="Steps of the flow").get_by_role("button", name="check, Succeeded")
    expect(check).to_have_attribute("aria-label", "check, Succeeded, 3 succeeded · option not recorded, choice")
    expect(page.locator(".graph-way.taken[data-edge='1 next -']")).to_contain_text("×3")
    assert page.locator(".graph-way.taken[data-edge*='option'], .graph-way.taken[data-edge*='default']").count() == 0
    page.goto("/compare?left=poll/run&right=poll/run")
    expect(page.get_by_role("row", name="check").first).to_contain_text("option not recorded")
