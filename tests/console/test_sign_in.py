"""A browser signs in by a link: to a server without keys, which the first key closes, and to a server with keys."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Request, Route, expect

from flowserver.base.limits import Limits
from flowserver.cli.sign_in_links import add_sign_in_link
from flowserver.store.schema.migrating import migrate
from flowserver.store.sql.database import Database
from tests.console.browser.complaints import Complaints
from tests.console.browser.prefix_proxy import prefix_proxy
from tests.support.access_key import create_database_with_key
from tests.support.server import ServerProcess

Opened = Callable[..., Page]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/flowserver.db"


def link_for(url: str, server: str, **key: Any) -> str:
    database = Database(url)
    new = add_sign_in_link(database, Limits(), **key)
    database.close()
    return new.url(server)


def test_the_first_key_is_made_by_the_link_that_the_server_shows(
    opened: Opened, complaints: Complaints, url: str
) -> None:
    database = Database(url)
    migrate(database)
    database.close()
    with ServerProcess(url, "--processes", "2") as server:
        complaints.serve_at(server.url)
        complaints.allow("status of 401")
        page = opened(base_url=server.url)
        requested: list[Request] = []

        def note(request: Request) -> None:
            requested.append(request)

        page.context.on("request", note)
        link = link_for(url, server.url, is_first=True)
        code = link.partition("#")[2]

        page.goto(link)
        expect(page.get_by_role("heading", name="Sign in to 127.0.0.1")).to_be_visible()
        expect(page.get_by_text("The server has no access key")).to_be_visible()
        expect(page).to_have_url(f"{server.url}/sign-in")  # nothing of the code is left in it
        page.get_by_role("button", name="Make the first key").click()
        expect(page.get_by_text("nothing shows it again")).to_be_visible()
        expect(page.get_by_role("definition").filter(has_text="fls_")).to_be_visible()
        page.get_by_role("button", name="Open the console").click()
        expect(page).to_have_url(f"{server.url}/")
        expect(page.locator("header.top")).to_contain_text("console")
        page.reload()
        expect(page.locator("header.top")).to_contain_text("console")
        page.goto("/server")
        expect(page.get_by_role("grid", name="Access keys")).to_contain_text("admin")

        other = opened(base_url=server.url)
        other.goto(link)
        other.get_by_role("button", name="Sign in").click()
        expect(other.get_by_role("alert")).to_contain_text("unknown, was used, or is over")
        expect(other.get_by_role("dialog")).to_have_count(0)
        other.goto("/flows")
        expect(other.get_by_role("dialog", name="Sign in")).to_be_visible()
        holding = [each for each in requested if code in each.url or code in str(each.headers.get("referer"))]
        assert holding == []


def test_a_link_signs_in_behind_a_proxy_with_what_its_key_may(opened: Opened, complaints: Complaints, url: str) -> None:
    create_database_with_key(url)
    with ServerProcess(url) as server, prefix_proxy(server.url, "/ops/flows") as public:
        complaints.serve_at(server.url)
        complaints.serve_at(public)
        complaints.allow("status of 401")
        page = opened(base_url=server.url)
        page.goto(link_for(url, public, label="ann", role="viewer", flows="order-"))
        expect(page.get_by_text("It works once.")).to_be_visible()
        expect(page.get_by_role("dialog")).to_have_count(0)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("definition").filter(has_text="viewer order-…")).to_be_visible()
        page.get_by_role("navigation", name="Places").get_by_role("link", name="Flows").click()
        expect(page.locator("header.top")).to_contain_text("ann")
        expect(page.get_by_text("There are no flows yet.")).to_be_visible()
        page.goto("about:blank")


def test_the_new_key_stays_on_the_page_when_an_answer_from_before_is_late(
    opened: Opened, complaints: Complaints, url: str
) -> None:
    create_database_with_key(url)
    with ServerProcess(url) as server:
        complaints.serve_at(server.url)
        complaints.allow("status of 401")
        page = opened(base_url=server.url)
        late: list[Route] = []

        def hold(route: Route) -> None:
            late.append(route)

        page.route("**/v1/permissions", hold, times=1)
        page.goto(link_for(url, server.url, label="ann", role="viewer", flows="order-"))
        page.get_by_role("button", name="Sign in").click()
        shown = page.get_by_role("definition").filter(has_text="viewer order-…")
        expect(shown).to_be_visible()
        with page.expect_response("**/v1/permissions"):
            late[0].fulfill(json={"key": None, "open": True, "role": "admin", "flows": "", "may": None})
        expect(shown).to_be_visible()
        page.get_by_role("navigation", name="Places").get_by_role("link", name="Flows").click()
        expect(page.get_by_text("There are no flows yet.")).to_be_visible()
        expect(page.locator("header.top")).to_contain_text("ann")


def test_a_link_without_its_end_says_so(page: Page) -> None:
    page.goto("/sign-in")
    expect(page.get_by_text("This address lacks the end of the link")).to_be_visible()
    expect(page.get_by_role("button", name="Sign in")).to_have_count(0)
