"""The console opens at its URLs, directly and behind a proxy that adds a prefix; from a server of two processes."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime

import httpx
import pytest
from playwright.sync_api import Page, Route, expect

from tests.console.browser.complaints import Complaints
from tests.console.browser.prefix_proxy import prefix_proxy
from tests.support.server import ServerProcess

GROUND = {"light": "rgb(245, 246, 248)", "dark": "rgb(15, 18, 22)"}
NO_CLIPBOARD = """() => {
  navigator.clipboard.writeText = () => Promise.reject(new Error("no"));
  document.execCommand = () => false;
}"""
PASS = "version: v1\ntype: flow\nsteps: [{type: pass, name: p}]\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """Its front process serves the console's files."""
    url = f"sqlite:///{tmp_path_factory.mktemp('shell')}/flowserver.db"
    with ServerProcess(url, "--processes", "2") as running:
        yield running


def test_the_console_behind_a_proxy_that_adds_a_prefix(
    page: Page, server: ServerProcess, rest: httpx.Client, complaints: Complaints, unique: str
) -> None:
    """A page below the root is opened first, then others by links, then one is reloaded, and a change is made."""
    rest.put(f"/v1/flows/{unique}", json={"definition": PASS}).raise_for_status()
    rest.post(f"/v1/flows/{unique}/executions?wait=60", json={"name": "first"}).raise_for_status()
    with prefix_proxy(server.url, "/ops/flows") as url:
        complaints.serve_at(url)
        page.goto(f"{url}/executions?flow={unique}")
        places = page.get_by_role("navigation", name="Places")
        expect(page.get_by_role("link", name="first")).to_be_visible()
        places.get_by_role("link", name="Flows").click()
        expect(page).to_have_url(f"{url}/flows")
        expect(page.get_by_text(unique).first).to_be_visible()
        places.get_by_role("link", name="Executions").click()
        expect(page).to_have_url(f"{url}/executions")
        page.reload()
        expect(page.get_by_role("link", name="first")).to_be_visible()
        page.go_back()
        expect(page).to_have_url(f"{url}/flows")
        page.goto("about:blank")  # ends its streams before the proxy ends


def test_unknown_addresses_say_so(page: Page) -> None:
    page.goto("/flows/a/b/c/d")
    expect(page.get_by_text("There is no page at this address.")).to_be_visible()


def test_a_mistyped_address_is_a_page_with_status_404(page: Page, complaints: Complaints) -> None:
    complaints.allow("status of 404")
    answer = page.goto("/nope")
    assert answer is not None
    assert answer.status == 404
    expect(page.get_by_text("There is no page at this address.")).to_be_visible()


def test_a_page_that_could_not_be_loaded_promises_no_further_try(page: Page, complaints: Complaints) -> None:
    complaints.allow("Failed to load resource")
    page.clock.install()
    page.goto("/")
    expect(page.get_by_text("As of")).to_be_visible()
    page.route("**/pages/queues.*", lambda route: route.abort("connectionrefused"))
    page.route("**/v1/**", lambda route: route.abort("connectionrefused"))
    page.clock.fast_forward(60_000)
    banner = page.get_by_role("status").filter(has_text="The server cannot be reached.")
    expect(banner).to_have_text("The server cannot be reached. This page tries again.")
    places = page.get_by_role("navigation", name="Places")
    places.get_by_role("link", name="Queues").click()
    expect(page.get_by_role("heading", name="This page could not be loaded")).to_be_visible()
    expect(banner).to_have_text("The server cannot be reached.")
    places.get_by_role("link", name="Overview").click()
    expect(banner).to_have_text("The server cannot be reached. This page tries again.")


def test_a_browser_may_forbid_what_pages_remember(page: Page) -> None:
    for storage in ("localStorage", "sessionStorage"):
        page.add_init_script(f"Object.defineProperty(window, '{storage}', {{get() {{ throw new Error('no') }}}})")
    page.goto("/executions")
    page.get_by_role("button", name="Theme: system").click()
    expect(page.get_by_role("button", name="Theme: light")).to_be_visible()


def test_a_theme_is_chosen_and_kept(page: Page) -> None:
    page.goto("/flows")
    for choice, by_system in (("system", True), ("light", False), ("dark", False), ("system", True)):
        button = page.get_by_role("button", name=f"Theme: {choice}")
        expect(button).to_be_visible()
        page.reload()
        expect(button).to_be_visible()
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            ground = GROUND[scheme if by_system else choice]
            expect(page.locator("body")).to_have_css("background-color", ground)
        button.click()


def test_a_page_that_fails_keeps_that_to_itself(page: Page, complaints: Complaints) -> None:
    complaints.allow("TypeError")
    is_broken = True
    page.route("**/v1/overview*", lambda route: route.fulfill(json={"flows": None}) if is_broken else route.continue_())
    page.goto("/")
    expect(page.get_by_role("heading", name="This page has failed")).to_be_visible()
    expect(page.get_by_role("alert")).to_contain_text("null")
    places = page.get_by_role("navigation", name="Places")
    places.get_by_role("link", name="Server").click()
    expect(page.get_by_role("grid", name="Nodes")).to_contain_text("Alive")
    is_broken = False
    places.get_by_role("link", name="Overview").click()
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_text("As of")).to_be_visible()


def test_the_overview_says_that_new_work_is_refused(page: Page, complaints: Complaints) -> None:
    def answer(route: Route) -> None:
        shown = route.fetch().json()
        assert shown["newWorkRefused"] is None
        route.fulfill(json={**shown, "newWorkRefused": "the disk has 100 MiB left"})

    page.route("**/v1/overview*", answer)
    page.goto("/")
    expect(page.get_by_role("alert")).to_contain_text("New work is refused: the disk has 100 MiB left.")


def test_a_page_does_not_wait_for_ever_for_a_style_sheet(page: Page) -> None:
    page.route("**/server.css", lambda _: None)
    page.goto("/flows")
    page.get_by_role("navigation", name="Places").get_by_role("link", name="Server").click()
    expect(page.get_by_role("grid", name="Nodes")).to_contain_text("Alive")


def test_a_text_is_copied_or_the_page_says_that_it_was_not(page: Page) -> None:
    page.clock.install(time=datetime(2030, 1, 1, tzinfo=UTC))
    page.goto("/server")
    copy = page.get_by_role("button", name="Copy").first
    expect(copy).to_be_visible()
    page.clock.pause_at(datetime(2030, 1, 2, tzinfo=UTC))  # what is said stays
    copy.click()
    expect(page.get_by_role("status").filter(has_text="Copied")).to_have_count(1)
    page.evaluate(NO_CLIPBOARD)
    copy.click()
    expect(page.get_by_text("The browser does not let this page copy")).to_be_visible()


def test_a_search_in_a_hurry_finds_what_was_typed(page: Page, rest: httpx.Client, unique: str) -> None:
    rest.put(f"/v1/flows/{unique}", json={"definition": PASS}).raise_for_status()
    page.goto("/flows")
    expect(page.get_by_text(unique).first).to_be_visible()
    page.keyboard.press("/")
    expect(page.get_by_role("combobox", name="Search")).to_be_focused()
    page.keyboard.type(unique)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"/flows/{unique}$"))


def test_what_is_typed_while_the_search_is_loading_is_looked_for(page: Page, rest: httpx.Client, unique: str) -> None:
    rest.put(f"/v1/flows/{unique}", json={"definition": PASS}).raise_for_status()

    def type_meanwhile(route: Route) -> None:
        expect(page.get_by_text(unique).first).to_be_visible()
        page.keyboard.press("/")
        page.keyboard.type(f"{unique}x")
        page.keyboard.press("Backspace")
        page.keyboard.press("Enter")
        route.continue_()

    page.route("**/search.js", type_meanwhile)
    page.goto("/flows")
    expect(page).to_have_url(re.compile(f"/flows/{unique}$"))


def test_a_search_that_is_given_up_while_it_is_loading_takes_no_more_keys(page: Page) -> None:
    page.route("**/search.js", lambda _: None)
    page.goto("/flows")
    prefix = page.get_by_label("Name begins with")
    expect(prefix).to_be_visible()
    page.keyboard.press("/")
    page.get_by_role("button", name="Help").click()
    page.get_by_role("dialog", name="Keys").get_by_role("button", name="Close").click()
    prefix.press_sequentially("ab")
    expect(prefix).to_have_value("ab")
    prefix.fill("")
    prefix.blur()
    page.keyboard.press("/")
    page.keyboard.press("Escape")
    prefix.press_sequentially("c")
    expect(prefix).to_have_value("c")


def test_a_page_that_is_seen_takes_keys(page: Page) -> None:
    """A key is pressed as soon as the page is built, before the browser has painted it."""
    page.add_init_script("""new MutationObserver((_, observer) => {
      if (!document.querySelector("button.find")) return;
      observer.disconnect();
      document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "/", bubbles: true, cancelable: true}));
    }).observe(document, {childList: true, subtree: true})""")
    page.goto("/flows")
    expect(page.get_by_role("combobox", name="Search")).to_be_focused()


def test_keys_of_a_single_character_are_turned_off_and_on(page: Page) -> None:
    """On a telephone, too: a keyboard can be connected to it."""
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/flows")
    help_button = page.get_by_role("button", name="Help")
    help_button.click()
    box = page.get_by_role("dialog", name="Keys").get_by_label("Single characters are keys")
    box.uncheck()
    page.keyboard.press("Escape")
    page.reload()
    expect(help_button).to_be_visible()
    page.keyboard.press("/")
    help_button.click()
    expect(box).not_to_be_checked()
    box.check()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    expect(page.get_by_role("dialog")).to_be_visible()


def test_complaints_are_found(page: Page, complaints: Complaints) -> None:
    page.goto("/flows")
    page.evaluate(
        "document.body.insertAdjacentHTML('beforeend', '<p style=\"color: red\">x</p><img src=\"/metrics\">')"
    )
    page.evaluate("setTimeout(() => { throw new Error('thrown') })")
    page.evaluate("fetch('http://127.0.0.2:9/').catch(() => {})")
    expect(page.locator("img")).to_have_js_property("complete", value=True)
    found = "\n".join(complaints.unexpected)
    for words in ("inline style", "requested GET", "/metrics", "thrown", "127.0.0.2"):
        assert words in found, found
    complaints.allow("")
