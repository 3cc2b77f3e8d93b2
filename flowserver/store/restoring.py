"""Puts a backup in the place of a SQLite database, so that an interruption leaves the old one whole or the new one.

The backup is copied beside the database, checked there, and renamed. Before the rename the note about the log
(`sqlite_files`) gets the new file's header, too: if the process is killed between the rename and the deletion of the
old `-wal`, the next one that opens the database finds the new file, and deletes the `-wal` instead of replaying it.
"""

import os
import secrets
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import text

from flowserver.store.breaches import list_breaches
from flowserver.store.database import Database
from flowserver.store.deep_checks import find_damage
from flowserver.store.schema import REVISIONS, revision_of
from flowserver.store.sqlite_files import (
    Origin,
    log_of,
    origin_of,
    read_header,
    read_log,
    read_origin,
    remove_logs,
    write_origin,
)

FINDINGS_MAX = 20
"""Findings that are shown of a file; a damaged one may have any number."""


class BackupUnusable(Exception):
    """The file cannot take the database's place; the message says why."""


def restore_file(backup: Path, file: Path, *, accepts_damage: bool = False) -> list[str]:
    """Put a copy of the backup in the place of the database, for its owner only; returns what is to be said about it.

    The caller has the sole use of the database. `backup` may be the database file itself; its log is then left out,
    because it is another file's. Raises OSError, and BackupUnusable for a file that is no database of flowserver's or,
    unless `accepts_damage`, does not pass every check.
    """
    with _beside(file) as fresh:
        _copy(backup, file, fresh)
        findings = _check(fresh)
        if findings and not accepts_damage:
            raise BackupUnusable("\n  ".join([f"{backup} is damaged, and nothing was changed:", *findings]))
        _mark(fresh)
        _keep_owner(file, fresh)
        _synchronize(fresh)
        _note(file, fresh)
        fresh.replace(file)
        _synchronize(file.parent)
        remove_logs(file)
        _synchronize(file.parent)
    return _check(file)


@contextmanager
def _beside(file: Path) -> Iterator[Path]:
    """Where the copy is made; nothing is left there, nor was anything by a process that was killed."""
    fresh = Path(f"{file}-restoring")
    _remove(fresh)
    try:
        yield fresh
    finally:
        _remove(fresh)


def _remove(fresh: Path) -> None:
    for path in (fresh, log_of(fresh), Path(f"{fresh}-shm"), origin_of(fresh)):
        path.unlink(missing_ok=True)


def _copy(backup: Path, file: Path, fresh: Path) -> None:
    os.close(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    is_itself = file.exists() and backup.samefile(file)
    if is_itself or read_log(backup) is None:
        with backup.open("rb") as source, fresh.open("wb") as target:
            shutil.copyfileobj(source, target)
        return
    with (
        _told(backup),
        closing(sqlite3.connect(f"file:{quote(str(backup))}?mode=ro", uri=True)) as source_db,
        closing(sqlite3.connect(fresh)) as target_db,
    ):
        source_db.backup(target_db)


def _check(file: Path) -> list[str]:
    """What is wrong with the file; raises BackupUnusable if it is no database of flowserver's."""
    with _told(file), closing(sqlite3.connect(file)) as connection:
        rows = connection.execute(f"PRAGMA integrity_check({FINDINGS_MAX})").fetchall()
        is_ours = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchone()
    if not is_ours:
        raise BackupUnusable(f"{file.name} holds no tables of flowserver's")
    findings = [str(row[0]) for row in rows if row != ("ok",)]
    with _opened(file) as database:
        if database.run_read(revision_of) != REVISIONS[-1]:
            return findings  # what its rows should be is not known before it is migrated
        with database.read() as connection:
            breaches = list_breaches(connection, FINDINGS_MAX)
            findings += [f"execution {each.execution_id}: {each.rule.name}" for each in breaches]
            damage = (f"{each.place}: {each.problem}" for each in find_damage(connection))
            findings += [each for each, _ in zip(damage, range(FINDINGS_MAX), strict=False)]
    return findings


@contextmanager
def _told(file: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise BackupUnusable(f"{file.name}: {error}") from None


@contextmanager
def _opened(file: Path) -> Iterator[Database]:
    database = Database(f"sqlite:///{file}")
    try:
        yield database
    finally:
        database.close()


def _mark(fresh: Path) -> None:
    """Give it a header that no other file has; bring it into the file itself."""
    with _opened(fresh) as database, database.write() as connection:
        connection.execute(text(f"PRAGMA user_version = {secrets.randbits(31)}"))
    for path in (log_of(fresh), Path(f"{fresh}-shm"), origin_of(fresh)):
        path.unlink(missing_ok=True)


def _keep_owner(file: Path, fresh: Path) -> None:
    """As the old file: a server that runs as another user must still be able to open it."""
    old = file if file.exists() else file.parent
    with suppress(PermissionError):
        os.chown(fresh, old.stat().st_uid, old.stat().st_gid)


def _synchronize(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _note(file: Path, fresh: Path) -> None:
    """Whose the log is that waits: the old file's, and never the new one's."""
    waiting, noted, restored = read_log(file), read_origin(file), read_header(fresh)
    if waiting is None:
        return
    old = noted.header if noted is not None and noted.salt == waiting[0] else read_header(file)
    write_origin(file, Origin(waiting[0], old, restored), durably=True)
