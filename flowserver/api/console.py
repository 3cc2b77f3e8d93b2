"""The console's files for browsers: its one page, at every URL that a person may open, and its assets.

The page's URLs are also paths of other APIs: `/` is RPC's, `/queues` the message service's. Only a browser that opens a
page says `application/xhtml+xml` and signs nothing, so only such requests are the console's. For `/`, where RPC needs
an `Action`, a request for `text/html` is enough.

All URLs in the page are relative to its `<base>`, which is relative to the page's own URL. So the console works behind
a proxy that adds a path prefix, and the server need not know the prefix.

The page names its assets below a digest of all of them, `/console/~4f0c…/main.js`, and they name each other by relative
URLs. So a browser keeps them for good, and a page that is opened again asks for none. While nodes of two versions run
beside each other, one may be asked for a digest that it does not have: it then answers with its own file, to be asked
for again next time.
"""

import gzip
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

import flowserver
from flowserver.api.console_modules import PageModules, version_of
from flowserver.api.large_bodies import Header, send_pieces
from flowserver.api.security_headers import CONSOLE_POLICY, POLICY
from flowserver.base.errors import FlowServerError
from flowserver.base.request_context import set_route
from flowserver.concurrency.threads import run_aside

FOLDER: Final = Path(flowserver.__file__).with_name("console")
PAGE: Final = "index.html"

PAGES: Final = re.compile(
    r"/(?:(?:executions|flows|compare|waiting|schedules|functions|queues|audit|server|sign-in)(?:/[^/]*){0,7})?\Z"
)
"""Paths of pages. The console itself shows what each is, or that there is no such page."""

UNKNOWN: Final = re.compile(
    r"/(?!(?:v1|docs|console|healthz|readyz|metrics|queues|topics|\d{4}-\d\d-\d\d)(?:/|\Z))[^/.]+(?:/[^/]*){0,7}\Z"
)
"""Other paths that no API has: a person who mistypes an address gets the page that says so, with status 404."""

ASSETS: Final = re.compile(
    r"/console/(?:~([0-9a-f]{16})/)?(?=.{1,100}\Z)((?:[A-Za-z0-9_-]+/)*[A-Za-z0-9_-]+(?:\.[a-z]+)*)\Z"
)
"""Paths of assets: a digest, or none, and the name. They have no part that begins with a dot, so they lead nowhere but
into the folder. No file system refuses to look for so short a name."""

TYPES: Final = {
    ".css": b"text/css; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".png": b"image/png",
    ".svg": b"image/svg+xml",
    "": b"text/plain; charset=utf-8",  # LICENSES
}
"""The media type of every asset, by the end of its name. Other files are not shown."""

METHODS: Final = ("GET", "HEAD")
OF_OTHER_APIS: Final = frozenset(("action", "signature", "accesskeyid", "accountmeta"))
"""Parameters of RPC and of the message service, in lower case."""

BASE: Final = b'<base href="./">'
HEAD_END: Final = b"  </head>"

_POLICY: Final[Header] = (POLICY.encode(), CONSOLE_POLICY.encode())
LOOK_AGAIN: Final[Header] = (b"cache-control", b"no-cache")
FOR_GOOD: Final[Header] = (b"cache-control", b"max-age=31536000, immutable")


def is_page(scope: Scope) -> bool:
    """Whether a browser opens a page of the console with this request."""
    if not (PAGES.match(scope["path"]) or UNKNOWN.match(scope["path"])):
        return False
    headers = dict(scope["headers"])
    accepted = headers.get(b"accept", b"")
    if b"application/xhtml+xml" not in accepted and not (scope["path"] == "/" and b"text/html" in accepted):
        return False
    if headers.get(b"authorization", b"basic ")[:6].lower() != b"basic ":  # that of a proxy, which browsers repeat
        return False
    fields = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    return all(name.lower() not in OF_OTHER_APIS for name, _ in fields)


def fault_response(fault: FlowServerError, _request_id: str) -> ASGIApp:
    """Says to a person why there is no page; ends the connection."""
    return PlainTextResponse(fault.message, fault.status, {"Connection": "close", POLICY: CONSOLE_POLICY})


class Console:
    """An ASGI application for the requests that it `serves`. Files are read when they are first asked for."""

    def __init__(self, *, is_on: bool, folder: Path = FOLDER) -> None:
        self._is_on = is_on
        self._folder = folder
        self._modules = PageModules(folder)
        self._known: dict[tuple[str, bytes], _File] = {}
        """At most the files of the folder, and a page for each route and depth."""

    def serves(self, scope: Scope) -> bool:
        """Whether the request is for a page, or for an asset that exists; other requests are for other APIs."""
        is_read = self._is_on and scope["method"] in METHODS
        return is_read and (self._asset_of(scope) is not None or is_page(scope))

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        """Serve one request."""
        set_route("console", "")
        asset = self._asset_of(scope)
        if asset is None:
            page = await run_aside(partial(self._page, _path(scope)))
            status = 200 if PAGES.match(scope["path"]) else 404
            await _answer(
                scope, send, page, b"text/html; charset=utf-8", b"accept, accept-encoding", LOOK_AGAIN, status
            )
            return
        digest, name = asset
        file = await self._read(name)
        is_lasting = digest is not None and await self._is_part_of(digest, name, file)
        lasting = FOR_GOOD if is_lasting else LOOK_AGAIN
        await _answer(scope, send, file, TYPES[Path(name).suffix], b"accept-encoding", lasting)

    def _asset_of(self, scope: Scope) -> tuple[str | None, str] | None:
        """The digest and the name in the path, if there is such a file."""
        found = ASSETS.match(scope["path"])
        if found and Path(found[2]).suffix in TYPES and (self._folder / found[2]).is_file():
            return found[1], found[2]
        return None

    async def _is_part_of(self, digest: str, name: str, file: "_File") -> bool:
        if not self._modules.has_digest:  # another node has sent the page
            await run_aside(self._modules.digest)
        return self._modules.is_part_of(digest, name, file.version)

    async def _read(self, name: str) -> "_File":
        """The file as it is now."""
        version = version_of(self._folder / name)
        known = self._known.get((name, b""))
        if known is None or known.version != version:
            known = await run_aside(partial(_File.read, self._folder / name, version))
            self._known[name, b""] = known
        return known

    def _page(self, path: bytes) -> "_File":
        """The page as it is at this path, as the files are now."""
        beginning = self._modules.beginning_of(path.decode("latin-1"))
        base = b"../" * (path.count(b"/") - 1) or b"./"
        name = next(iter(beginning.names), PAGE)
        version = (version_of(self._folder / PAGE), beginning.versions, self._modules.digest())
        known = self._known.get((name, base))
        if known is None or known.version != version:
            body = (self._folder / PAGE).read_bytes()
            links = beginning.links(body)
            body = body.replace(BASE, b'<base href="%b">' % base, 1).replace(HEAD_END, links + HEAD_END, 1)
            body = body.replace(b'="console/', b'="console/~%b/' % self._modules.digest().encode())
            known = self._known[name, base] = _File.of(body, version)
        return known


@dataclass(frozen=True, slots=True)
class _File:
    version: object
    body: bytes
    compressed: bytes
    etag: bytes

    @classmethod
    def read(cls, path: Path, version: object) -> "_File":
        return cls.of(path.read_bytes(), version)

    @classmethod
    def of(cls, body: bytes, version: object) -> "_File":
        return cls(version, body, gzip.compress(body, mtime=0), hashlib.sha256(body).hexdigest()[:32].encode())


def _path(scope: Scope) -> bytes:
    """The page's path, still encoded: slashes in names do not count for the browser, which does not decode them."""
    path: bytes = scope.get("raw_path") or scope["path"].encode()
    return path


async def _answer(
    scope: Scope, send: Send, file: _File, media_type: bytes, vary: bytes, lasting: Header, status: int = 200
) -> None:
    headers: Mapping[bytes, bytes] = dict(scope["headers"])
    is_compressed = _takes_gzip(headers)
    etag = b'"%b%b"' % (file.etag, b"-gzip" if is_compressed else b"")
    common = [_POLICY, lasting, (b"etag", etag), (b"vary", vary)]
    if status == 200 and etag in headers.get(b"if-none-match", b""):
        await send({"type": "http.response.start", "status": 304, "headers": common})
        await send({"type": "http.response.body", "body": b""})
        return
    encoding: list[Header] = [(b"content-encoding", b"gzip")] if is_compressed else []
    body = file.compressed if is_compressed else file.body
    await send_pieces(send, status, [(b"content-type", media_type), *common, *encoding], [body])


def _takes_gzip(headers: Mapping[bytes, bytes]) -> bool:
    return re.search(rb"\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|\Z))", headers.get(b"accept-encoding", b"")) is not None
