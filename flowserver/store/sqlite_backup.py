"""Backs a SQLite database up while a server runs on it.

SQLite's backup copies all pages in one step, as they are at one moment: in WAL mode that is a read, which delays no
writer, and no write makes it begin again. The copy gets its name only once it is whole, checked and on the disk.
"""

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final
from urllib.parse import quote

from flowserver.store.sql.sqlite_files import log_of, require_own_log

PAGES_AT_ONCE: Final = -1
"""All: with fewer, each write of another process between two steps would start the copy again."""


class BackupDamaged(Exception):
    """The copy fails SQLite's check, so the database is damaged; the message says what was found. Nothing is kept."""


def back_up(file: Path, target: Path) -> int:
    """Copy the database with its log to a new file, readable by its owner only; returns its bytes.

    Raises FileExistsError, BackupDamaged, LogOfAnotherFile, OSError, sqlite3.Error.
    """
    require_own_log(file)
    if target.exists():
        raise FileExistsError(target)
    unfinished = Path(f"{target}.unfinished")
    _remove(unfinished)
    try:
        os.close(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        with (
            closing(sqlite3.connect(f"file:{quote(str(file))}?mode=rw", uri=True)) as source,
            closing(sqlite3.connect(unfinished)) as copy,
        ):
            source.backup(copy, pages=PAGES_AT_ONCE)
        with closing(sqlite3.connect(unfinished)) as copy:
            copy.execute("PRAGMA journal_mode = DELETE").fetchall()  # one file, which needs no log beside it
            (found,) = copy.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise BackupDamaged(f"{file} is damaged, and there is no backup: {found.splitlines()[-1]}")
        _synchronize(unfinished)
        _name(unfinished, target)
        _synchronize(target.parent)
        return target.stat().st_size
    finally:
        _remove(unfinished)


def _name(unfinished: Path, target: Path) -> None:
    """Give the copy its name. Raises FileExistsError."""
    try:
        os.link(unfinished, target)  # unlike a rename, it replaces no file that has come meanwhile
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links, such as that of many USB sticks
        if target.exists():
            raise FileExistsError(target) from None
        unfinished.rename(target)


def _remove(unfinished: Path) -> None:
    for path in (unfinished, log_of(unfinished), Path(f"{unfinished}-shm"), Path(f"{unfinished}-journal")):
        path.unlink(missing_ok=True)


def _synchronize(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
