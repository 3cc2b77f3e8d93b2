"""The console in a real Chromium, before a real server.

A story is what a person does, with several assertions on the way:

    def test_a_failed_order_is_found_and_redriven(page: Page, rest: httpx.Client) -> None:
        rest.put("/v1/flows/order", json={"definition": ORDER}).raise_for_status()
        rest.post("/v1/flows/order/executions?wait=10", json={"name": "8f0c2a"}).raise_for_status()
        page.goto("/executions?status=failed")
        page.get_by_role("row", name="8f0c2a").click()
        expect(page.get_by_role("heading", name="8f0c2a")).to_be_visible()
        page.keyboard.press("Escape")

| fixture | what it is |
|---|---|
| `page` | Playwright's page, 1,440 × 900, light; `page.goto("/flows")` is relative to the server |
| `opened(...)` | opens a further page: `color_scheme="dark"`, `viewport={"width": 390, "height": 844}`, `token=` |
| `rest` | an httpx client of the server, for what the story finds there |
| `functions` | the functions that the server calls; a module may define its own with other answers |
| `server` | the server of the module, without keys; a module may define its own |
| `complaints` | `complaints.allow("status of 404")` for an error that belongs to the story |

At the end of each test its pages must have had no error on the console, no violation of the content security policy,
no uncaught exception, and no request for anything but pages, `/console/` and `/v1/`.

Find things as a person or a screen reader does (`get_by_role`, `get_by_label`, `get_by_text`), not by class. Wait on
what the page shows, with `expect(...)`, which waits; never sleep, and never assert seconds. A module has one browser
and one server, which take about a second to start; a page takes 50 ms. So put stories into few modules, and let each
use flows with names of its own (`unique`).

To see what a story sees: `page.screenshot(path="/tmp/story.png")`. `make screenshots` takes pictures of all pages.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any
from uuid import uuid4

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.console.browser.chromium import running_chromium
from tests.console.browser.complaints import Complaints
from tests.support.function_server import FunctionServer
from tests.support.server import PATIENCE_SECONDS, ServerProcess

expect.set_options(timeout=PATIENCE_SECONDS * 1000)

Opened = Callable[..., Page]
"""Opens a page; takes the options of Playwright's `browser.new_context`, and `token` for a signed-in page."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The module's browser. It is not one for the whole process: while Playwright runs, tests with asyncio cannot."""
    with running_chromium() as running:
        yield running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """The module's server."""
    with ServerProcess(f"sqlite:///{tmp_path_factory.mktemp('console')}/flowserver.db") as running:
        yield running


@pytest.fixture(scope="module")
def functions() -> Iterator[FunctionServer]:
    """Functions that return their input. Register them: `functions.register(server.url, "shop/charge")`."""
    with FunctionServer() as running:
        yield running


@pytest.fixture(scope="module")
def rest(server: ServerProcess) -> Iterator[httpx.Client]:
    """A client of the server."""
    with httpx.Client(base_url=server.url, trust_env=False) as client:
        yield client


@pytest.fixture
def unique() -> str:
    """A name that no other test uses."""
    return f"t{uuid4().hex[:8]}"


@pytest.fixture
def complaints(server: ServerProcess) -> Iterator[Complaints]:
    """What the pages of the test complained of; at the end there must be nothing that is not allowed."""
    found = Complaints(server.url)
    yield found
    assert found.unexpected == []


@pytest.fixture
def opened(browser: Browser, server: ServerProcess, complaints: Complaints) -> Iterator[Opened]:
    """Opens pages that are watched; each has its own session."""
    with ExitStack() as contexts:

        def open_page(*, token: str | None = None, **options: Any) -> Page:
            viewport = {"width": 1440, "height": 900}
            defaults = {"base_url": server.url, "viewport": viewport, "locale": "en-GB", "timezone_id": "Europe/Berlin"}
            context = contexts.enter_context(browser.new_context(**(defaults | options)))
            context.set_default_timeout(PATIENCE_SECONDS * 1000)
            page = context.new_page()
            complaints.watch(page)
            if token is not None:
                page.add_init_script(f"sessionStorage.setItem('flowserver.token', {token!r})")
            return page

        yield open_page


@pytest.fixture
def page(opened: Opened) -> Page:
    """The test's page."""
    return opened()
