"""Finds flow test files and loads them with their definitions, each read once."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from flowserver.base.limits import Limits
from flowserver.flowtests.cases import Source, TestFile
from flowserver.flowtests.file_names import SUFFIX
from flowserver.flowtests.reading import read_test_file
from flowserver.language.parser import parse


class Loader:
    """Loads files under the limits of a server."""

    def __init__(self, limits: Limits, *, lenient: bool = False) -> None:
        self._limits = limits
        self._lenient = lenient
        self._sources: dict[Path, Source] = {}

    def load(self, file: Path, text: str) -> TestFile:
        """Check the text of a file; raises DefinitionRejected, which has its mistakes."""
        return read_test_file(file, text, self._limits, self)

    def of_flow(self, file: Path) -> Source:
        """The definition in a file; raises OSError, UnicodeDecodeError or DefinitionRejected."""
        resolved = file.resolve()
        if resolved not in self._sources:
            text = file.read_text("utf-8")
            flow = parse(text, self._limits, allow_ref_tags=True, lenient=self._lenient).flow
            self._sources[resolved] = Source(file, text, flow)
        return self._sources[resolved]

    of_sub_flow = of_flow


def files_in(paths: Iterable[Path]) -> Iterator[Path]:
    """The files, and those of folders, but not of hidden ones, in order of their names."""
    for path in dict.fromkeys(paths):
        if path.is_dir():
            found = (file for file in path.rglob(f"*{SUFFIX}") if file.is_file())
            yield from sorted(file for file in found if not _is_hidden(file.relative_to(path)))
        else:
            yield path


def _is_hidden(file: Path) -> bool:
    return any(part.startswith(".") or part == "node_modules" for part in file.parts)
