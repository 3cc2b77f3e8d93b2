"""`python -m tests.console.seeded.screenshots FOLDER [PAGE...]`: pictures of pages, light and dark, wide and narrow.

The server and its data are made for it (`tests/console/seeded/shop.py`). `make screenshots` runs it.
"""

import sys
import tempfile
from pathlib import Path

import httpx
from playwright.sync_api import Browser

from tests.console.browser.chromium import running_chromium
from tests.console.browser.settled import wait_until_settled
from tests.console.seeded.shop import PAGES, Shop, answer
from tests.support.function_server import FunctionServer
from tests.support.server import ServerProcess

WIDTHS = {"wide": {"width": 1440, "height": 900}, "narrow": {"width": 390, "height": 844}}
SETTLED_MS = 700
"""How long a page has for what it draws after its data."""


def take(browser: Browser, server_url: str, folder: Path, names: list[str]) -> None:
    """Write FOLDER/PAGE-WIDTH-SCHEME.png for these pages."""
    for scheme in ("light", "dark"):
        for width, viewport in WIDTHS.items():
            context = browser.new_context(
                base_url=server_url, viewport=viewport, color_scheme=scheme, locale="en-GB", timezone_id="Europe/Berlin"
            )
            page = context.new_page()
            for name in names:
                page.goto(PAGES[name])
                wait_until_settled(page)
                page.wait_for_timeout(SETTLED_MS)
                page.screenshot(path=folder / f"{name}-{width}-{scheme}.png")
                overflow = page.evaluate("document.documentElement.scrollWidth - innerWidth")
                print(f"{name}-{width}-{scheme}" + (f": {overflow} px too wide" if overflow > 0 else ""), flush=True)
            context.close()


def main(folder: Path, names: list[str]) -> None:
    """Make the server, and take the pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as data,
        FunctionServer(answer) as functions,
        ServerProcess(f"sqlite:///{data}/flowserver.db") as server,
        httpx.Client(base_url=server.url, trust_env=False, timeout=120) as rest,
        running_chromium() as browser,
    ):
        shop, names = Shop(rest, functions), names or list(PAGES)
        shop.seed_shop()
        take(browser, server.url, folder, [name for name in names if "hostile" not in name])
        shop.seed_attacks()
        take(browser, server.url, folder, [name for name in names if "hostile" in name])


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
