"""What holds for every page: anybody can use it, it is painted soon, and what came from users is text."""

import gzip
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import Page, Request, expect

from flowserver.api.console import FOLDER
from tests.console.browser.settled import wait_until_settled
from tests.console.seeded.shop import EMOJI, HOSTILE_TEXT, LARGE_CHARACTERS, PAGES, RIGHT_TO_LEFT, Shop, answer
from tests.support.function_server import FunctionServer
from tests.support.server import ServerProcess

AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
AUDIT = """(runOnly) => axe.run(document, {
  runOnly, preload: false, resultTypes: ["violations"], selectors: false, ancestry: false, xpath: false,
})"""
CONTRAST = {"type": "rule", "values": ["color-contrast"]}
FIRST_PAINT_BYTES_MAX = 64_000
WIDE = {"width": 1440, "height": 900}
NARROW = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def functions() -> Iterator[FunctionServer]:
    with FunctionServer(answer) as running:
        yield running


@pytest.fixture(scope="module")
def rest(server: ServerProcess, functions: FunctionServer) -> Iterator[httpx.Client]:
    """A client of a server that a shop has filled."""
    with httpx.Client(base_url=server.url, trust_env=False, timeout=60) as client:
        Shop(client, functions).seed()
        yield client


def violations(page: Page, rules: object) -> list[str]:
    """What these rules of axe-core find wrong, with the elements that it finds wrong."""
    found = page.evaluate(AUDIT, rules)
    return [
        f"{each['id']}: {each['help']}: {node['html'][:200]} {node['failureSummary'][:300]}"
        for each in found["violations"]
        for node in each["nodes"]
    ]


@pytest.mark.usefixtures("rest")
def test_axe_finds_no_violation_on_any_page(page: Page) -> None:
    """All rules on the wide page, contrast in the dark, too; and the narrow page is not wider than its window."""
    found = {}
    for name, path in PAGES.items():
        page.emulate_media(color_scheme="light")
        page.set_viewport_size(WIDE)
        page.goto(path)
        wait_until_settled(page)
        page.evaluate(AXE.read_text("utf-8"))
        found[name] = violations(page, RULES)
        page.emulate_media(color_scheme="dark")
        found[f"{name}, dark"] = violations(page, CONTRAST)
        page.set_viewport_size(NARROW)
        wait_until_settled(page)
        width = page.evaluate("document.documentElement.scrollWidth")
        found[f"{name}, narrow"] = [f"{width} px wide"] if width > NARROW["width"] else []
    assert "\n".join(f"{name}: {each}" for name, wrong in found.items() for each in wrong) == ""


@pytest.mark.usefixtures("rest")
def test_what_came_from_users_is_text(page: Page) -> None:
    for path in ("/executions/hostile/e", "/flows/hostile", "/executions?flow=hostile", "/flows", "/", "/queues"):
        page.goto(path)
        wait_until_settled(page)
        assert "owned" not in page.title()
        assert page.locator("main img, main script, main b:text-is('Broken')").count() == 0
    page.goto("/executions/hostile/e")
    expect(page.get_by_text("<b>Broken</b>").first).to_be_visible()
    page.goto("/executions/hostile/e?tab=input")
    for text in (HOSTILE_TEXT, RIGHT_TO_LEFT.split()[0], EMOJI.split()[0][0]):
        expect(page.get_by_text(text).first).to_be_visible()
    assert "\u202e" not in page.get_by_role("main").inner_text()  # it would turn the text that follows
    page.goto(PAGES["execution-large"])
    wait_until_settled(page)
    expect(page.get_by_role("listbox", name="Events").get_by_text("TaskSucceeded").first).to_be_visible()
    assert len(page.get_by_role("main").inner_text()) < LARGE_CHARACTERS / 2  # a long text is cut until it is asked for
    assert "owned" not in page.title()


@pytest.mark.usefixtures("rest")
def test_only_little_is_loaded_before_the_first_paint(page: Page) -> None:
    """What the overview loads: its modules and styles, not the editor's, and what is asked for later."""
    requested: list[str] = []

    def note(request: Request) -> None:
        path = urlsplit(request.url).path
        if path.startswith("/console/"):
            requested.append(path.split("/", 3)[3])  # after the digest

    page.on("request", note)
    page.add_init_script(
        "window.painted = new Promise((done) => new PerformanceObserver((list) =>"
        " list.getEntriesByName('first-contentful-paint').length && done())"
        ".observe({ type: 'paint', buffered: true }))"
    )
    page.goto("/", wait_until="commit")
    page.evaluate("window.painted")
    sizes = {name: len(gzip.compress((FOLDER / name).read_bytes())) for name in sorted(set(requested))}
    assert "vendor/preact.js" in sizes
    assert sum(sizes.values()) <= FIRST_PAINT_BYTES_MAX, sizes
