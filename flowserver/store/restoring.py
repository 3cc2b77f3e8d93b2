"""Puts a backup in the place of a SQLite database, so that an interruption leaves the old one whole or the new one.

The backup is copied beside the database, checked there, and renamed. Before the rename the note about the log
(`sqlite_files`) gets the new file's header, too: if the process is killed between the rename and the deletion of the
old `-wal`, the next one that opens the database finds the new file, and deletes the `-wal` instead of replaying it.

The old database is kept under another name. Its log is brought into it first, so that it is one file. A second hard
link holds that file during the rename, under a name that nothing opens: as long as the database has not been replaced,
the link is the database itself, and opening it would look for a log of another name.
"""

import os
import secrets
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from flowserver.store.integrity.deep_checks import find_damage
from flowserver.store.integrity.violations import list_violations
from flowserver.store.keys import KEYS_SEEN, Admission, keep_secret
from flowserver.store.schema.revision import REVISIONS, SchemaTooNew, revision_of
from flowserver.store.sql.database import Database
from flowserver.store.sql.errors import reason_of
from flowserver.store.sql.sqlite_files import (
    LogOfAnotherFile,
    Origin,
    log_of,
    origin_of,
    read_header,
    read_log,
    read_origin,
    remove_logs,
    require_own_log,
    write_origin,
)

FINDINGS_MAX = 20
"""Findings that are shown of a file; a damaged one may have any number."""


class BackupUnusable(Exception):
    """The file cannot take the database's place; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What is to be said about a restore."""

    findings: list[str]
    """What is wrong with the database now."""

    admission: Admission | None
    """Who may call, as far as the database knows now; None if it is damaged there."""

    keys_unknown: bool
    """Whether the old database, or its log, could not be read: it may have had access keys."""

    kept: Path | None
    """Where the old database is now; None if there was none, or if it could not be kept."""

    not_kept: str | None
    """Why the old database could not be kept."""


@dataclass(frozen=True, slots=True)
class _Old:
    """What is known of the database that is replaced."""

    admission: Admission | None
    """None if it cannot be read."""

    log_is_own: bool


def restore_file(backup: Path, file: Path, *, accepts_damage: bool = False) -> Restored:
    """Put a copy of the backup in the place of the database, for its owner only; returns what is to be said about it.

    The caller has the sole use of the database. `backup` may be the database file itself; its log is then left out,
    because it is another file's. If the old database had an access key once, so has the new one: no restore opens a
    server. The old one is kept as `kept_of` says. Raises OSError, and BackupUnusable for a file that is no database of
    flowserver's or, unless `accepts_damage`, does not pass every check; SchemaTooNew.
    """
    with _beside(file) as fresh:
        _copy(backup, file, fresh)
        findings = _check(fresh, backup)
        if findings and not accepts_damage:
            raise BackupUnusable("\n  ".join([f"{backup} is damaged, and nothing was changed:", *findings]))
        old = _settle(file)
        with _told(backup):
            _mark(fresh, keys_seen=old.admission in (Admission.KEYED, Admission.LOST))
        _keep_owner(file, fresh)
        _synchronize(fresh)
        _note(file, fresh)
        not_kept = _hold(file)
        fresh.replace(file)
        _synchronize(file.parent)
        kept = _keep(file, old)
        remove_logs(file)
        _synchronize(file.parent)
    findings, admission = _check(file, file), None
    with suppress(sqlite3.Error), closing(_connect(file, "mode=rw")) as connection:
        admission = _read_admission(connection)
    unknown = old.admission is None or not old.log_is_own
    return Restored(findings=findings, admission=admission, keys_unknown=unknown, kept=kept, not_kept=not_kept)


def kept_of(file: Path) -> Path:
    """Where a restore keeps the database that it replaces."""
    return Path(f"{file}.before-restore")


def _held_of(file: Path) -> Path:
    return Path(f"{kept_of(file)}-new")


def _settle(file: Path) -> _Old:
    """Read who may call, and bring the log into the file if it is the file's own; if that fails, the log stays."""
    if not file.exists() and read_log(file) is None:
        return _Old(Admission.OPEN, log_is_own=True)
    try:
        require_own_log(file)
    except LogOfAnotherFile:
        options, is_own = "mode=ro&immutable=1", False
    else:
        options, is_own = "mode=rw", True
    admission = None
    with suppress(sqlite3.Error), closing(_connect(file, options)) as connection:
        admission = _read_admission(connection)
        if is_own:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return _Old(admission, is_own)


def _connect(file: Path, options: str) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(str(file))}?{options}", uri=True)


def _read_admission(connection: sqlite3.Connection) -> Admission:
    """As `keys.read_admission`, of a schema of any version, or of none."""
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if "access_keys" in tables and connection.execute("SELECT 1 FROM access_keys").fetchone():
        return Admission.KEYED
    seen = "SELECT 1 FROM secrets WHERE name = ?"
    if "secrets" in tables and connection.execute(seen, [KEYS_SEEN]).fetchone():
        return Admission.LOST
    return Admission.OPEN


def _hold(file: Path) -> str | None:
    """Give the old file a second name, so that it outlives the rename; returns why it could not have one."""
    held = _held_of(file)
    held.unlink(missing_ok=True)
    if not file.exists():
        return None
    try:
        os.link(file, held)
    except OSError as error:  # a file system without hard links
        return str(error.strerror)
    return None


def _keep(file: Path, old: _Old) -> Path | None:
    """Keep the old file, now that it is replaced, in the place of one that was kept before.

    Its log goes with it, if that is its own and could not be brought into it. The log comes first: a file that is kept
    never stands without its log, nor beside another's.
    """
    kept, held = kept_of(file), _held_of(file)
    if not held.exists():
        return None
    for path in (kept, log_of(kept), Path(f"{kept}-shm")):
        path.unlink(missing_ok=True)
    if old.log_is_own and read_log(file) is not None:
        _make_private(log_of(file))
        log_of(file).replace(log_of(kept))
    _make_private(held)
    held.replace(kept)
    return kept


def _make_private(path: Path) -> None:
    with suppress(PermissionError):  # it is another user's, as the database was
        path.chmod(0o600)


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


def _check(file: Path, name: Path) -> list[str]:
    """What is wrong with the file; raises BackupUnusable if it is no database of flowserver's; errors give the name."""
    with _told(name), closing(sqlite3.connect(file)) as connection:
        rows = connection.execute(f"PRAGMA integrity_check({FINDINGS_MAX})").fetchall()
        is_ours = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchone()
    if not is_ours:
        raise BackupUnusable(f"{name} holds no tables of flowserver's")
    findings = [str(row[0]) for row in rows if row != ("ok",)]
    with _told(name), _opened(file) as database:
        if database.run_read(revision_of) != REVISIONS[-1]:
            return findings  # what its rows should be is not known before it is migrated
        with database.read() as connection:
            breaches = list_violations(connection, FINDINGS_MAX)
            findings += [f"execution {each.execution_id}: {each.rule.name}" for each in breaches]
            damage = (f"{each.place}: {each.problem}" for each in find_damage(connection))
            findings += [each for each, _ in zip(damage, range(FINDINGS_MAX), strict=False)]
    return findings


@contextmanager
def _told(name: Path) -> Iterator[None]:
    """Errors name the file that the user knows, not the copy of it."""
    try:
        yield
    except sqlite3.Error as error:
        raise BackupUnusable(f"{name}: {error}") from None
    except DBAPIError as error:
        raise BackupUnusable(f"{name}: {reason_of(error)}") from None
    except SchemaTooNew as error:
        raise SchemaTooNew(f"{name}: {error}") from None


@contextmanager
def _opened(file: Path) -> Iterator[Database]:
    database = Database(f"sqlite:///{file}")
    try:
        yield database
    finally:
        database.close()


def _mark(fresh: Path, *, keys_seen: bool) -> None:
    """Give it a header that no other file has, and the memory of keys; bring both into the file itself."""
    with _opened(fresh) as database, database.write() as connection:
        connection.execute(text(f"PRAGMA user_version = {secrets.randbits(31)}"))
        if keys_seen:
            keep_secret(connection, KEYS_SEEN, "yes")
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
