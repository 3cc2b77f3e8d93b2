"""`flowserver test --watch`: runs tests again when a file changes that they were made from.

What has changed is decided by size and time of the files themselves, as they were when they were read. A notice of the
system only says when to look; so a change during a run is not missed, and neither is one before the system watches.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import typer
from watchfiles import watch

from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed
from flowserver.cli.printable import printable
from flowserver.flowtests.file_names import SUFFIX
from flowserver.flowtests.loading import Stamp, is_passed_over, stamp_of

FIRST_LOOK_MS: Final = 200
"""How long after the system has begun to watch the files are looked at, if it notices no change before."""

FOLDERS_MAX: Final = 5_000
"""Folders that are watched: the system counts them, too."""

_CLEAR: Final = "\x1b[H\x1b[2J\x1b[3J"

MadeFrom = Mapping[Path, Stamp]
"""Files, as they were when they were read."""

Run = Callable[[list[Path]], Mapping[Path, MadeFrom]]
"""Runs these test files and shows them; returns of all test files what they were made from."""

Find = Callable[[], list[Path]]
"""The test files that there are now."""


def watch_tests(paths: Iterable[Path], find: Find, run: Run) -> None:
    """Run all test files, then those again that a change touches, until Ctrl-C; then raises typer.Exit."""
    watched = _Watched(find, run)
    try:
        watched.run(find())
        while True:
            _wait(watched, list(paths))
    except KeyboardInterrupt:
        typer.echo(err=True)
        raise typer.Exit(ExitCode.DETACHED) from None


def _wait(watched: "_Watched", paths: list[Path]) -> None:
    """Run what changes touch, until other folders are to be watched."""
    folders = folders_of(paths, watched.files())
    options = {"recursive": False, "rust_timeout": FIRST_LOOK_MS, "yield_on_timeout": True, "watch_filter": None}
    is_first = True
    for changes in watch(*folders, **options):  # type: ignore[arg-type]
        if changes or is_first:  # what has changed before the system watched is seen by the first look
            watched.look()
            if folders_of(paths, watched.files()) != folders:
                return
        is_first = False


class _Watched:
    """The test files with what they were made from, as that was."""

    def __init__(self, find: Find, run: Run) -> None:
        self._find = find
        self._run = run
        self._tests: list[Path] = []
        self._made_from: Mapping[Path, MadeFrom] = {}

    def files(self) -> set[Path]:
        """All files that tests were made from."""
        return {file for made_from in self._made_from.values() for file in made_from}

    def run(self, tests: list[Path]) -> None:
        """Run these files."""
        self._made_from = self._run(tests)
        self._tests = list(self._made_from)
        count = len(self._tests)
        typer.echo(f"watching {count} test file{'' if count == 1 else 's'}; Ctrl-C ends", err=True)

    def look(self) -> None:
        """Run what has changed."""
        found = self._find()
        changed = {file for file, stamp in self._stamps() if stamp_of(file) != stamp}
        touched = [test for test in found if not changed.isdisjoint(self._made_from.get(test, {}))]
        new = set(found) - set(self._tests)
        gone = set(self._tests) - set(found)
        if changed or new or gone:
            clear()
            for what, files in (("changed", {*changed, *new} - gone), ("gone", gone)):
                if files:
                    typer.echo(printable(f"{what}: {', '.join(sorted(map(str, files)))}"), err=True)
            self.run([*touched, *new])

    def _stamps(self) -> Iterator[tuple[Path, Stamp]]:
        return (item for made_from in self._made_from.values() for item in made_from.items())


def clear() -> None:
    """Clear the screen, if the output is one."""
    if sys.stdout.isatty():
        typer.echo(_CLEAR, nl=False)


def folders_of(paths: Iterable[Path], files: Iterable[Path]) -> list[Path]:
    """The folders to watch: those below the paths in which test files may be, and those of the files.

    Raises CommandFailed if there are too many.
    """
    found: set[Path] = set()
    for folder in (*(each for path in paths for each in _folders_below(path)), *(file.parent for file in files)):
        if folder.is_dir():
            found.add(folder)
        if len(found) > FOLDERS_MAX:
            message = f"more than {FOLDERS_MAX} folders would be watched; name those that hold files *{SUFFIX}"
            raise CommandFailed(message, ExitCode.USAGE)
    return sorted(found)


def _folders_below(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path.parent
        return
    yield path
    todo = [path]
    for folder in todo:
        try:
            inner = [each for each in folder.iterdir() if each.is_dir() and not is_passed_over(each.name)]
        except OSError:
            continue
        todo += inner
        yield from inner
