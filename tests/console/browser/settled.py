"""When a page shows what it is about."""

from playwright.sync_api import Page

IS_SETTLED = """() => {
  const main = document.querySelector("main");
  return Boolean(main?.textContent.trim()) && !main.querySelector(".loading, .event.waiting, [aria-busy=true]");
}"""

FRAMES = "async () => { for (let left = 30; left; left--) await new Promise(requestAnimationFrame); }"
"""Lets the page paint 30 times, which shows whether it asks for something again at each paint."""


def wait_until_settled(page: Page) -> None:
    """Return once the page has its data; it may still be painted anew with each change on the server."""
    page.wait_for_function(IS_SETTLED)
    page.evaluate("new Promise((painted) => requestAnimationFrame(() => requestAnimationFrame(painted)))")
