"""The console opens at every URL, directly and behind a proxy that adds a path prefix."""

import pytest
from playwright.sync_api import Page, expect

from tests.console.browser.complaints import Complaints


@pytest.mark.parametrize("path", ["/", "/executions/order/8f0c2a"])
def test_a_page_opens_at_its_url(page: Page, path: str) -> None:
    page.goto(path)
    expect(page.get_by_role("main")).to_be_visible()


def test_complaints_are_found(page: Page, complaints: Complaints) -> None:
    page.goto("/")
    page.evaluate(
        "document.body.insertAdjacentHTML('beforeend', '<p style=\"color: red\">x</p><img src=\"/metrics\">')"
    )
    page.evaluate("setTimeout(() => { throw new Error('thrown') })")
    page.evaluate("fetch('http://127.0.0.2:9/').catch(() => {})")
    page.evaluate("new Promise(done => setTimeout(done))")
    found = "\n".join(complaints.unexpected)
    for words in ("inline style", "requested GET", "/metrics", "thrown", "127.0.0.2"):
        assert words in found, found
    complaints.allow("")
