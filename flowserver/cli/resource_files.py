"""Which files of folders describe flows, their settings, functions and schedules."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed
from flowserver.flowtests.file_names import SUFFIX as FLOW_TEST_SUFFIX

FLOWS_FILE: Final = "flows.yaml"
FUNCTIONS_FILE: Final = "functions.yaml"
SCHEDULES_FILE: Final = "schedules.yaml"

NO_DEFINITIONS: Final = (FLOWS_FILE, FUNCTIONS_FILE, SCHEDULES_FILE)
"""Files of folders that hold no definition."""

SUFFIXES: Final = (".yaml", ".yml", ".json")


def files_in(paths: Iterable[Path]) -> Iterator[Path]:
    """The files, and those of folders.

    Raises CommandFailed for a folder without any, for a name such as `flows.yml`, which must end in `.yaml`, and for
    `schedule.yaml` if it holds schedules.
    """
    for path in dict.fromkeys(paths):
        if not path.is_dir():
            yield _well_named(path)
            continue
        found = sorted(file for file in path.rglob("*") if _is_described_in(file, path))
        if not found:
            raise CommandFailed(f"{path} holds no definition: files {', '.join(SUFFIXES)}", ExitCode.NOT_FOUND)
        yield from map(_well_named, found)


def _well_named(file: Path) -> Path:
    for name in NO_DEFINITIONS:
        if file.stem == Path(name).stem and file.name != name:
            raise CommandFailed(f"{file}: call it {name}", ExitCode.USAGE)
        if file.stem == Path(name).stem[:-1] and _has_key(file, Path(name).stem):
            raise CommandFailed(f"{file} holds {Path(name).stem}: call it {name}", ExitCode.USAGE)
    return file


def _has_key(file: Path, key: str) -> bool:
    """Whether the file is there and has this key at its beginning or in a line of its own."""
    try:
        return re.search(rf"""^[{{ ]*["']?{key}["']?\s*:""", file.read_text("utf-8-sig"), re.MULTILINE) is not None
    except (OSError, UnicodeDecodeError):
        return False


def _is_described_in(file: Path, folder: Path) -> bool:
    return file.suffix in SUFFIXES and not file.name.endswith(FLOW_TEST_SUFFIX) and _is_visible(file, folder)


def _is_visible(file: Path, folder: Path) -> bool:
    return file.is_file() and not any(part.startswith(".") for part in file.relative_to(folder).parts)
