"""The files that an editor has open, and those beside them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pygls.uris import to_fs_path

from flowserver.base.limits import Limits
from flowserver.editing.files import Definition, EditedFile, FlowTest
from flowserver.flowtests.cases import Source
from flowserver.flowtests.file_names import SUFFIX
from flowserver.flowtests.real_calls import unopened
from flowserver.language.parser import parse

_LIKE_A_DEFINITION: Final = re.compile(
    r"""^(?:version:\s*["']?v1|type:\s*["']?flow\b|steps:)|"type"\s*:\s*"flow"\s*[,}]""", re.MULTILINE
)
"""Editors send all YAML files. Others than these are left alone."""

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

    def close(self, uri: str) -> None:
        """Forget a file."""
        self._open.pop(uri, None)

    def get(self, uri: str) -> OpenFile | None:
        """An open file."""
        return self._open.get(uri)

    def tests_open_on(self, uri: str) -> Iterator[OpenFile]:
        """The open flow tests that run the definition with this URI."""
        path = path_of(uri)
        for each in [*self._open.values()]:
            own = path_of(each.uri)
            if path is None or own is None or not isinstance(each.file, FlowTest):
                continue
            if any(_same(own.parent / name, path) for name in each.file.definitions):
                yield each

    # What flow tests ask for when they are read.

    def of_flow(self, file: Path) -> Source:
        """The definition in a file, as the editor has it; raises OSError, UnicodeDecodeError or DefinitionRejected."""
        opened = self._opened(file)
        text = file.read_text("utf-8") if opened is None else opened.file.text.text
        return Source(file, text, parse(text, self._limits, allow_ref_tags=True, lenient=self._lenient).flow)

    of_sub_flow = of_flow
    of_callee = staticmethod(unopened)

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
    return one.resolve() == other.resolve()
