"""The console with a key of each role: it asks for nothing, and offers nothing, that the key may not have."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import httpx
import pytest
from fastapi.routing import APIRoute
from playwright.sync_api import Locator, Page, Response, expect

from flowserver.api.rest.needs import NEEDS
from flowserver.api.rest.router import ROUTERS
from flowserver.operations.access import make_access_key
from flowserver.operations.callers import Flows
from flowserver.operations.permissions import ROLES
from flowserver.store.access_keys import insert_access_key
from flowserver.store.sql.database import Database
from tests.console.browser.settled import wait_until_settled
from tests.console.conftest import Opened
from tests.console.seeded.shop import Shop, answer
from tests.support.function_server import FunctionServer
from tests.support.server import ServerProcess

PLACES: Final = {
    "Overview": "server.read",
    "Executions": "executions.list",
    "Flows": "flows.read",
    "Waiting": "tasks.read",
    "Schedules": "flows.read",
    "Functions": "functions.read",
    "Queues": "queues.read",
    "Server": None,
}
"""The rail, with what each place needs."""


@dataclass(frozen=True)
class Visit:
    """A page, what it needs, and the buttons that it has, each with the permission of what it does."""

    path: str
    needs: str | None
    offers: tuple[tuple[str, str], ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    chosen: str | None = None
    """A row that is chosen first, or selected if it is one of executions."""


VISITS: Final = (
    Visit("/", "server.read"),
    Visit(
        "/executions?flow=order&status=failed", "executions.list", (("Redrive…", "executions.redrive"),), chosen="o-9"
    ),
    Visit("/executions?status=running", "executions.list", (("Stop…", "executions.stop"),), chosen="waits-for-stock"),
    Visit("/executions/order/o-9a4d17?step=charge", "executions.read", (("Redrive…", "executions.redrive"),)),
    Visit("/executions/order/waits-for-stock", "executions.read", (("Stop…", "executions.stop"),)),
    Visit("/compare?left=order/o-8f0c2a&right=order/o-9a4d17", "executions.read"),
    Visit("/flows", "flows.read", (("Start order", "executions.start"),), (("New flow", "flows.write"),)),
    Visit(
        "/flows/order",
        "flows.read",
        (("Start…", "executions.start"), ("Publish…", "versions.publish"), ("Delete…", "flows.delete")),
        (("Edit", "flows.write"),),
    ),
    Visit(
        "/flows/order/edit",
        "flows.read",
        (("Start…", "executions.start"), ("Save as new version…", "versions.publish")),
    ),
    Visit("/flows/-/new", "flows.read", (("Create", "flows.write"),)),
    Visit("/waiting?flow=order", "tasks.read", (("Approve", "tasks.report"),), chosen="order/waits-for-stock"),
    Visit(
        "/schedules?schedule=order/nightly",
        "flows.read",
        (("Pause…", "schedules.write"), ("Start now…", "schedules.run"), ("Backfill…", "schedules.run")),
    ),
    Visit(
        "/functions?function=shop/charge",
        "functions.read",
        (
            ("Register a function…", "functions.write"),
            ("Edit…", "functions.write"),
            ("Unregister…", "functions.write"),
        ),
    ),
    Visit("/queues?name=labels", "queues.read", (("Send…", "queues.send"), ("Purge…", "queues.purge"))),
    Visit("/queues?kind=topics&name=parcels", "queues.read", (("Publish…", "topics.publish"),)),
    Visit("/server", None, (), (("Audit: who did what", "audit.read"),)),
    Visit("/audit", "audit.read"),
)


@pytest.fixture(scope="module")
def database_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('roles')}/flowserver.db"


@pytest.fixture(scope="module")
def server(database_url: str) -> Iterator[ServerProcess]:
    with ServerProcess(database_url) as running:
        yield running


@pytest.fixture(scope="module")
def tokens(server: ServerProcess, database_url: str) -> Iterator[dict[tuple[str, str], str]]:
    """The token of a key of each role, for all flows and for those that begin with `order`, of a server with a shop."""
    with FunctionServer(answer) as functions, httpx.Client(base_url=server.url, trust_env=False, timeout=60) as rest:
        Shop(rest, functions).seed()
        database = Database(database_url)
        made = {}
        with database.write() as connection:
            for role in ROLES:
                for flows in ("", "order"):
                    key = make_access_key(role, 0, role=role, flows=flows)
                    insert_access_key(connection, key.key)
                    made[role, flows] = key.token
        database.close()
        while rest.get("/v1/permissions").status_code == 200:
            pass  # until it has noticed that it has keys, a second later at most
        yield made


CASES: Final = [*((role, "") for role in ROLES), ("viewer", "order"), ("worker", "order")]


@pytest.mark.parametrize(("role", "flows"), CASES)
def test_a_key_is_offered_what_it_may_do(
    opened: Opened, tokens: dict[tuple[str, str], str], role: str, flows: str
) -> None:
    page = opened(token=tokens[role, flows])
    refused: list[str] = []

    def note(response: Response) -> None:
        if response.status >= 400:
            refused.append(f"{response.status} {response.request.method} {response.url}")

    page.on("response", note)
    page.goto("/server")
    wait_until_settled(page)
    shown = page.get_by_role("navigation", name="Places").get_by_role("link")
    mine = [place for place, needed in PLACES.items() if allows(role, needed) and not (flows and place == "Overview")]
    expect(shown).to_have_text(mine)
    for visit in VISITS:
        _go(page, visit.path)
        wait_until_settled(page)
        if visit.path == "/" and "Overview" not in mine and mine[0] != "Server":
            expect(page).to_have_url(f"/{mine[0].lower()}")
            continue
        if not allows(role, visit.needs) or (flows and visit.path == "/"):
            expect(page.get_by_role("heading", name="not with this key")).to_be_visible()
            continue
        _choose(page, visit)
        main = page.get_by_role("main")
        for name, permission in visit.offers:
            _expect_offer(main.get_by_role("button", name=name, exact=True).first, role, permission)
        for name, permission in visit.links:
            link = main.get_by_role("link", name=name, exact=True)
            expect(link).to_have_count(1 if allows(role, permission) else 0)
        expect(page.get_by_role("alert")).to_have_count(0)
    assert refused == []


def allows(role: str, permission: str | None) -> bool:
    return permission is None or permission in ROLES[role]


def _go(page: Page, path: str) -> None:
    """As a link does, without loading the document again."""
    page.evaluate("path => { history.pushState(null, '', path); dispatchEvent(new PopStateEvent('popstate')); }", path)


def _choose(page: Page, visit: Visit) -> None:
    if visit.chosen is None:
        return
    row = page.get_by_role("row", name=visit.chosen).first
    if visit.path.startswith("/executions"):
        row.get_by_role("checkbox").check()
    else:
        row.click()


def _expect_offer(button: Locator, role: str, permission: str) -> None:
    if allows(role, permission):
        expect(button).to_be_enabled()
    elif button.count():
        expect(button).to_be_disabled()


def test_who_may_not_list_opens_an_execution_by_its_name(opened: Opened, tokens: dict[tuple[str, str], str]) -> None:
    page = opened(token=tokens["starter", "order"])
    page.goto("/")
    expect(page.get_by_text("executions.start, ").or_(page.get_by_text("executions.read, ")).first).to_be_visible()
    page.get_by_label("Execution").fill("order/o-9a4d17")
    page.get_by_role("button", name="Open").click()
    expect(page.get_by_role("heading", name="o-9a4d17")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("order/o-8f0c2a")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="o-8f0c2a")).to_be_visible()


def test_the_console_knows_what_each_read_needs(opened: Opened, tokens: dict[tuple[str, str], str]) -> None:
    page = opened(token=tokens["admin", ""])
    wanted = {}
    for route in (route for router in ROUTERS for route in router.routes):
        if isinstance(route, APIRoute) and route.methods == {"GET"}:
            wanted[re.sub(r"\{.*?\}", "x", route.path)[1:]] = NEEDS[route.name].permission
    page.goto("/server")
    module = page.locator("link[href$='/store/needs.js']").get_attribute("href")
    found: Any = page.evaluate(
        "async ([module, paths]) => { const { permissionOf } = await import(new URL(module, document.baseURI).href);"
        " return Object.fromEntries(paths.map((path) => [path, permissionOf(path)])); }",
        [module, list(wanted)],
    )
    assert found == wanted
    of_all = [name for name, need in NEEDS.items() if need.flow is Flows.ALL]
    assert of_all == ["get_overview"]
