"""What a page of the console begins with: its modules and style sheets, named in the page.

So a browser asks for all of them at once. It would find them one level of imports after another, each after a round
trip, and the page's own only when the frame runs.
"""

import hashlib
import os
import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

ROUTES: Final = "routes.js"
"""Has the table of pages."""

ROUTE: Final = re.compile(r'pattern: "([^"]+)".*load: page\("([^"]+)"\)')
COMMENT: Final = re.compile(r"/\*.*?\*/", re.S)
IMPORT: Final = re.compile(r"""^(?:import|export)\b[^;"]*"(\.{1,2}/[^"]+)";""", re.M)
"""A static import; a page is imported when it is shown."""

SHEET: Final = re.compile(r"""stylesheet\(new URL\("(\.{1,2}/[^"]+)", import\.meta\.url\)\)""")

Version = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Beginning:
    """What a page begins with, as the files were when they were read."""

    names: tuple[str, ...] = ()
    """Its own module first; then modules and style sheets, level by level."""
    versions: tuple[tuple[str, Version | None], ...] = ()

    def links(self, page: bytes) -> bytes:
        """Links to what the page does not name itself."""
        return b"".join(_link(name) for name in self.names if b'="console/%b"' % name.encode() not in page)


class PageModules:
    """What the pages begin with. It reads files: use it beside the event loop."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, Beginning] = {}
        self._digest = ""
        self._digested: dict[str, Version | None] = {}

    @property
    def has_digest(self) -> bool:
        """Whether the digest was made before."""
        return bool(self._digest)

    def digest(self) -> str:
        """Names the contents of all files of the console, as they are now: 16 hexadecimal digits."""
        versions = {name: version_of(self._folder / name) for name in sorted(_files_in(self._folder))}
        if versions != self._digested:
            made = hashlib.sha256()
            for name in versions:
                made.update(hashlib.sha256((self._folder / name).read_bytes()).digest())
            self._digest, self._digested = made.hexdigest()[:16], versions
        return self._digest

    def is_part_of(self, digest: str, name: str, version: object) -> bool:
        """Whether the last digest that was made is this one, and has the file in this version."""
        return digest == self._digest and version == self._digested.get(name)

    def beginning_of(self, path: str) -> Beginning:
        """What the page at this path, still encoded, begins with; nothing if there is no such page."""
        try:
            routes = ROUTE.findall((self._folder / ROUTES).read_text("utf-8"))
        except FileNotFoundError:
            return Beginning()
        page = next((f"pages/{page}.js" for pattern, page in routes if _fits(path, pattern)), None)
        if page is None:
            return Beginning()
        known = self._known.get(page)
        if known is None or any(version_of(self._folder / name) != version for name, version in known.versions):
            known = self._known[page] = self._read(page)
        return known

    def _read(self, page: str) -> Beginning:
        names: dict[str, Version | None] = {}
        waiting = deque([page])
        while waiting:
            name = waiting.popleft()
            file = self._folder / name
            version = None if name in names else version_of(file)
            if version is not None:
                names[name] = version
                text = COMMENT.sub("", file.read_text("utf-8")) if name.endswith(".js") else ""
                waiting += _beside(name, [*IMPORT.findall(text), *SHEET.findall(text)])
        return Beginning(tuple(names), tuple(names.items()))


def _files_in(folder: Path, below: str = "") -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _files_in(folder / entry.name, f"{below}{entry.name}/")
            else:
                yield below + entry.name


def version_of(path: Path) -> Version | None:
    """Changes with the file; None if there is none."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_mtime_ns, status.st_size


def _fits(path: str, pattern: str) -> bool:
    parts, wanted = path.split("/"), pattern.split("/")
    return len(parts) == len(wanted) and all(
        want.startswith("{") or part == want for part, want in zip(parts, wanted, strict=True)
    )


def _beside(name: str, references: Iterable[str]) -> Iterator[str]:
    """The names of what a module refers to, without the ways up."""
    for reference in references:
        parts = list(PurePosixPath(name).parent.parts)
        for part in PurePosixPath(reference).parts:
            if part != "..":
                parts.append(part)
            elif parts:
                parts.pop()
        yield "/".join(parts)


def _link(name: str) -> bytes:
    kind = 'rel="preload" as="style"' if name.endswith(".css") else 'rel="modulepreload"'
    return f'<link {kind} href="console/{name}">\n    '.encode()
