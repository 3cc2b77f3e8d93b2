"""Finds flow test files and loads them with their definitions, each read once."""

import errno
import stat
from collections.abc import Iterable, Iterator
from os.path import realpath
from pathlib import Path
from typing import Final

from flowserver.base.json_values import JsonObject
from flowserver.base.lazy_import import load
from flowserver.base.limits import Limits
from flowserver.flowtests.cases import Source, TestFile
from flowserver.flowtests.file_names import SUFFIX
from flowserver.flowtests.reading import read_test_file
from flowserver.flowtests.real_calls import Callee, OpenCallee, open_none
from flowserver.flowtests.schemas import Schema
from flowserver.language.parser import parse

_COMPILED: Final = "flowserver.flowtests.json_schemas:compiled"
"""Loaded for a file with a schema."""

Stamp = tuple[int, int] | None
"""Time of change and size of a file; None if it is not there."""


def schema_of(document: JsonObject) -> Schema:
    """The JSON Schema; raises SchemaInvalid."""
    compiled: Schema = load(_COMPILED)(document)
    return compiled


class Loader:
    """Loads files under the limits of a server."""

    def __init__(self, limits: Limits, *, lenient: bool = False, callees: OpenCallee = open_none) -> None:
        """`callees` opens what real calls reach."""
        self._limits = limits
        self._callees = callees
        self._lenient = lenient
        self._sources: dict[Path, Source] = {}
        self._stamps: dict[Path, Stamp] = {}
        self.named: dict[Path, Stamp] = {}
        """The files that the test file which was loaded last names, as they were before they were read."""

    def load(self, file: Path, text: str) -> TestFile:
        """Check the text of a file; raises DefinitionRejected, which has its mistakes."""
        self.named = {}
        return read_test_file(file, text, self._limits, self)

    def of_flow(self, file: Path) -> Source:
        """The definition in a file; raises OSError, UnicodeDecodeError or DefinitionRejected."""
        self._note(file)
        resolved = Path(realpath(file))
        if resolved not in self._sources:
            text = read_bounded(file, self._limits.definition_bytes_max)
            flow = parse(text, self._limits, allow_ref_tags=True, lenient=self._lenient).flow
            self._sources[resolved] = Source(file, text, flow)
        return self._sources[resolved]

    of_sub_flow = of_flow

    def of_callee(self, name: str, folder: Path) -> Callee:
        """What a real call reaches; raises NotAvailable."""
        file, colon, _ = name.rpartition(":")
        if colon and file.endswith(".py"):
            self._note(folder / file)
        return self._callees(name, folder)

    of_schema = staticmethod(schema_of)

    def _note(self, file: Path) -> None:
        if file not in self._stamps:
            self._stamps[file] = stamp_of(file)
        self.named[file] = self._stamps[file]


def read_bounded(file: Path, bytes_max: int) -> str:
    """The text of a file; raises UnicodeDecodeError, and OSError also for what is larger or can wait for a writer."""
    mode = file.stat().st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode):
        raise OSError(errno.EINVAL, "this is no regular file", str(file))
    with file.open(encoding="utf-8") as opened:
        text = opened.read(bytes_max + 1)
    if len(text) > bytes_max:
        raise OSError(errno.EFBIG, f"this file has more than {bytes_max} bytes", str(file))
    return text


def stamp_of(file: Path) -> Stamp:
    """By which a change of the file is noticed."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def files_in(paths: Iterable[Path]) -> Iterator[Path]:
    """The files, and those of folders, but not of hidden ones, in order of their names."""
    for path in dict.fromkeys(paths):
        if path.is_dir():
            found = (file for file in path.rglob(f"*{SUFFIX}") if file.is_file())
            yield from sorted(file for file in found if not _is_hidden(file.relative_to(path)))
        else:
            yield path


def _is_hidden(file: Path) -> bool:
    return any(map(is_passed_over, file.parts))


def is_passed_over(name: str) -> bool:
    """Whether files and folders of this name are left out of what is in a folder."""
    return name.startswith(".") or name == "node_modules"
