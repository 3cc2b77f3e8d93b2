"""Which files of folders describe flows, their settings, functions and schedules."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed

FLOWS_FILE: Final = "flows.yaml"
FUNCTIONS_FILE: Final = "functions.yaml"
SCHEDULES_FILE: Final = "schedules.yaml"

NO_DEFINITIONS: Final = (FLOWS_FILE, FUNCTIONS_FILE, SCHEDULES_FILE)
"""Files of folders that hold no definition."""

SUFFIXES: Final = (".yaml", ".yml", ".json")


def files_in(paths: Iterable[Path]) -> Iterator[Path]:
    """The files, and those of folders.

    Raises CommandFailed for a folder without any, and for a name such as `flows.yml`: it must end in `.yaml`.
    """
    for path in dict.fromkeys(paths):
        if not path.is_dir():
            yield _well_named(path)
            continue
        found = sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES and _is_visible(file, path))
        if not found:
            raise CommandFailed(f"{path} holds no definition: files {', '.join(SUFFIXES)}", ExitCode.NOT_FOUND)
        yield from map(_well_named, found)


def _well_named(file: Path) -> Path:
    for name in NO_DEFINITIONS:
        if file.stem == Path(name).stem and file.name != name:
            raise CommandFailed(f"{file}: call it {name}", ExitCode.USAGE)
    return file


def _is_visible(file: Path, folder: Path) -> bool:
    return file.is_file() and not any(part.startswith(".") for part in file.relative_to(folder).parts)
