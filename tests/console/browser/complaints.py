"""What must not happen in any page during any story."""

import re
from urllib.parse import urlsplit

from playwright.sync_api import ConsoleMessage, Error, Page, Request

OWN_PATHS = ("/v1/", "/console/")


class Complaints:
    """Collects errors on the browser's console, which include violations of the content security policy, uncaught
    exceptions, crashes, and requests for anything but the server's pages, the console's assets and REST.
    """

    def __init__(self, server_url: str) -> None:
        self._bases = [server_url]
        self._allowed: list[re.Pattern[str]] = []
        self._found: list[str] = []

    def watch(self, page: Page) -> None:
        """Collect those of this page, too; before it is opened."""
        page.on("console", self._on_console)
        page.on("pageerror", self._on_exception)
        page.on("crash", lambda _: self._found.append("the page crashed"))
        page.context.on("request", self._on_request)

    def serve_at(self, url: str) -> None:
        """The server is also at this URL, which does not end with a slash."""
        self._bases.append(url)

    def allow(self, pattern: str) -> None:
        """Expect complaints that this regular expression finds, such as `status of 404`."""
        self._allowed.append(re.compile(pattern))

    @property
    def unexpected(self) -> list[str]:
        """The complaints so far that are not allowed."""
        return [each for each in self._found if not any(pattern.search(each) for pattern in self._allowed)]

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "assert"):
            self._found.append(f"{message.text} ({message.location.get('url')})")

    def _on_exception(self, error: Error) -> None:
        self._found.append(f"{error.stack or error.message}")

    def _on_request(self, request: Request) -> None:
        url = urlsplit(request.url)
        is_image = url.scheme == "data" and request.resource_type in ("image", "other")
        is_page = request.is_navigation_request() and request.resource_type == "document"
        wanted = ("/",) if is_page else OWN_PATHS
        own = tuple(base + path for base in self._bases for path in wanted)
        if not is_image and not request.url.startswith(own):
            self._found.append(f"requested {request.method} {request.url[:300]}")
