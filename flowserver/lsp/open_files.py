"""The files that an editor has open, and those beside them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from os.path import realpath
from pathlib import Path
from typing import Final

from cachetools import LRUCache
from pygls.uris import to_fs_path

from flowserver.base.limits import Limits
from flowserver.editing.files import Definition, EditedFile, FlowTest
from flowserver.flowtests.cases import Source
from flowserver.flowtests.file_names import SUFFIX
from flowserver.flowtests.loading import read_bounded, schema_of
from flowserver.flowtests.real_calls import unopened
from flowserver.language.parser import parse

_BREAK: Final = r"[\r\n\x85\u2028\u2029]"
_LIKE_A_DEFINITION: Final = re.compile(
    rf"""(?:\A\ufeff?|(?<={_BREAK}))(?:version: *["']?v1(?:beta1)?|type: *["']?flow)["']? *(?:#.*)?(?={_BREAK}|\Z)"""
    r"""|"type"\s*:\s*"flow"\s*[,}]"""
)
"""Editors send all YAML files. Others than these are left alone."""

_BLANK: Final = re.compile(r"\s{0,1000}\w{0,20}\s{0,1000}")

FILES_READ_MAX: Final = 100
"""Files that are not open and are remembered until they change."""

FOLDER_FILES_MAX: Final = 1_000
"""Flow test files of one folder that are looked at."""


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A file as the editor has it."""

    uri: str
    version: int | None
    file: EditedFile


class OpenFiles:
    """All open files that are definitions or flow tests, by their URIs."""

    def __init__(self, limits: Limits, *, lenient: bool = False) -> None:
        self._limits = limits
        self._lenient = lenient
        self._open: dict[str, OpenFile] = {}
        self._read: LRUCache[Path, tuple[tuple[int, int], EditedFile]] = LRUCache(FILES_READ_MAX)

    def put(self, uri: str, version: int | None, text: str) -> OpenFile | None:
        """Take in a file, or its new text; None for a file of another kind."""
        before = self._open.get(uri)
        file = self._file(uri, text, None if before is None else before.file)
        if file is None:
            return None
        self._open[uri] = OpenFile(uri, version, file)
        return self._open[uri]

    def _file(self, uri: str, text: str, before: EditedFile | None) -> EditedFile | None:
        if uri.endswith(SUFFIX):
            return FlowTest(text, self._limits, before if isinstance(before, FlowTest) else None)
        if isinstance(before, Definition) or _LIKE_A_DEFINITION.search(text):
            previous = before if isinstance(before, Definition) else None
            return Definition(text, self._limits, previous, lenient=self._lenient)
        return None

    def blank(self, uri: str, text: str) -> OpenFile | None:
        """A file that may become a definition: there is nothing in it yet but the beginning of a word."""
        is_new = uri.endswith((".yaml", ".yml")) and _BLANK.fullmatch(text) is not None
        return OpenFile(uri, None, Definition(text, self._limits)) if is_new else None

    def close(self, uri: str) -> None:
        """Forget a file."""
        self._open.pop(uri, None)

    def get(self, uri: str) -> OpenFile | None:
        """An open file."""
        return self._open.get(uri)

    def of_path(self, path: Path) -> tuple[str, EditedFile] | None:
        """A file by its path with its URI, open or not; None if it cannot be used."""
        if opened := self._opened(path):
            return opened.uri, opened.file
        found = self._on_disk(path)
        return None if found is None else (path.as_uri(), found)

    def tests_open_on(self, uri: str) -> Iterator[OpenFile]:
        """The open flow tests that run the definition with this URI."""
        path = path_of(uri)
        for each in [*self._open.values()]:
            own = path_of(each.uri)
            if path is None or own is None or not isinstance(each.file, FlowTest):
                continue
            if any(_same(own.parent / name, path) for name in each.file.definitions):
                yield each

    # The other files, for `flowserver.editing`

    def definition(self, file: Path) -> Definition | None:
        """The definition in a file, open or not; None if there is none."""
        if opened := self._opened(file):
            return opened.file if isinstance(opened.file, Definition) else None
        found = self._on_disk(file)
        return found if isinstance(found, Definition) else None

    def flow_tests_of(self, file: Path) -> Iterator[tuple[Path, FlowTest]]:
        """The flow test files, open or in the folder of a definition, that run it."""
        seen = set()
        for each in self.tests_open_on(file.as_uri()):
            if (path := path_of(each.uri)) is not None and isinstance(each.file, FlowTest):
                seen.add(realpath(path))
                yield path, each.file
        for path in islice(sorted(file.parent.glob(f"*{SUFFIX}")), FOLDER_FILES_MAX):
            test = None if realpath(path) in seen or self._opened(path) else self._on_disk(path)
            if isinstance(test, FlowTest) and any(_same(path.parent / name, file) for name in test.definitions):
                yield path, test

    def _on_disk(self, path: Path) -> EditedFile | None:
        """A file that is not open, read again when it changes; None if it cannot be used."""
        try:
            status = path.stat()
            stamp = (status.st_mtime_ns, status.st_size)
            known = self._read.get(path)
            if known is not None and known[0] == stamp:
                return known[1]
            file = self._file(path.as_uri(), read_bounded(path, self._limits.flow_test_bytes_max), None)
        except (OSError, ValueError):
            return None
        if file is not None:
            self._read[path] = (stamp, file)
        return file

    # What flow tests ask for when they are read

    def of_flow(self, file: Path) -> Source:
        """The definition in a file, as the editor has it; raises OSError, UnicodeDecodeError or DefinitionRejected."""
        opened = self._opened(file)
        bytes_max = self._limits.definition_bytes_max
        text = read_bounded(file, bytes_max) if opened is None else opened.file.text.text
        return Source(file, text, parse(text, self._limits, allow_ref_tags=True, lenient=self._lenient).flow)

    of_sub_flow = of_flow
    of_callee = staticmethod(unopened)
    of_schema = staticmethod(schema_of)

    def _opened(self, file: Path) -> OpenFile | None:
        for each in [*self._open.values()]:
            path = path_of(each.uri)
            if path is not None and _same(path, file):
                return each
        return None


def path_of(uri: str) -> Path | None:
    """The file of a URI; None for a text that is no file yet."""
    path = to_fs_path(uri) if uri.startswith("file:") else None
    return None if path is None else Path(path)


def _same(one: Path, other: Path) -> bool:
    try:
        return realpath(one) == realpath(other)
    except ValueError:  # a flow test can name a file with a character that no name has
        return False
