"""Replaces a SQLite database with a backup. An interruption leaves either the old database or the new one, complete.

The backup is copied beside the database, checked there, and renamed. Before the rename, the new file's header is added
to the note about the log (`sqlite_files`). If the process is killed between the rename and the deletion of the old
`-wal`, the next process that opens the database recognizes the new file and deletes the `-wal` instead of replaying it.

The old database is kept under another name. First its log is copied into it, so that it is one file. During the rename
a second hard link holds it, under a name that nothing opens: until the database is replaced, the link is the database
itself, and SQLite would look for a log beside the link.
"""

import os
import secrets
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from sqlalchemy import delete, inspect, text
from sqlalchemy.exc import DBAPIError

from flowserver.store.access_keys import KEYS_SEEN, Admission, keep_secret
from flowserver.store.fencing import SHOWN_MAX, CalledSince, Callers
from flowserver.store.integrity.damage import find_damage
from flowserver.store.integrity.violations import list_violations
from flowserver.store.schema.foreign_databases import ForeignDatabase
from flowserver.store.schema.revision import REVISIONS, SchemaTooNew, revision_of
from flowserver.store.schema.sign_in_tables import sign_in_links
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
"""How many findings are shown; a damaged file may have any number."""


class BackupUnusable(Exception):
    """The file cannot replace the database; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """The result of a restore."""

    findings: list[str]
    """What is wrong with the new database."""

    admission: Admission | None
    """Which callers the new database allows; None if that cannot be read."""

    keys_unknown: bool
    """Whether the old database or its log could not be read, so that access keys may be lost."""

    stays_disabled: bool
    """Whether keys that were disabled since the backup are disabled in the new database; else they may be enabled.

    False, too, if the old database had no keys, as on a new machine.
    """

    kept: Path | None
    """Where the old database is now; None if there was none or it could not be kept."""

    not_kept: str | None
    """Why the old database could not be kept."""

    called_since: CalledSince | None
    """What has called functions since the backup; None if the old database could not be compared."""


@dataclass(frozen=True, slots=True)
class _Old:
    """What is known of the old database."""

    admission: Admission | None
    """None if the database cannot be read."""

    log_is_own: bool

    is_carried_over: bool = False
    """Whether it has keys, and the copy what must not be undone of them (`_carry_over`)."""


def restore_file(backup: Path, file: Path, *, accepts_damage: bool = False) -> Restored:
    """Replace the database with a copy of the backup, readable by its owner only.

    No other process may use the database. `backup` may be the database file itself; then its log, which belongs to
    another file, is dropped. If the old database ever had an access key, the new one requires keys too: a restore never
    opens a server. The old database is kept at `kept_of`.

    Raises OSError, SchemaTooNew, and BackupUnusable if the file is not a database of flowserver or, unless
    `accepts_damage`, fails a check.
    """
    with _beside(file) as fresh:
        _copy(backup, file, fresh)
        findings = _check(fresh, backup)
        if findings and not accepts_damage:
            raise BackupUnusable("\n  ".join([f"{backup} is damaged, and nothing was changed:", *findings]))
        old = _settle(file, fresh)
        with _errors_naming(backup):
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
    return Restored(
        findings=findings,
        admission=admission,
        keys_unknown=old.admission is None or not old.log_is_own,
        stays_disabled=old.is_carried_over and old.log_is_own,
        kept=kept,
        not_kept=not_kept,
        called_since=None if kept is None or not old.log_is_own else _called_since(file, kept),
    )


def _called_since(file: Path, kept: Path) -> CalledSince | None:
    """Compare the restored file with the one before it; None if that one cannot be read, or its tables are others."""
    try:
        with closing(_connect(file, "mode=rw")) as connection:
            connection.execute("ATTACH ? AS before", [f"file:{quote(str(kept))}?mode=ro&immutable=1"])
            return CalledSince(_callers(connection, _CALLING_EXECUTIONS), _callers(connection, _CALLING_INVOCATIONS))
    except sqlite3.Error:
        return None


def _callers(connection: sqlite3.Connection, query: str) -> Callers:
    rows = connection.execute(query, [SHOWN_MAX]).fetchall()
    return Callers(rows[0][0] if rows else 0, ["/".join(names) for _, *names in rows])


_CALLING_EXECUTIONS: Final = """
SELECT count(*) OVER (), flow_name, name FROM before.executions AS old
LEFT JOIN (SELECT execution_id, version, next_event_id FROM main.executions) AS new USING (execution_id)
WHERE new.version IS NOT old.version AND EXISTS (
  SELECT 1 FROM before.histories AS history
  WHERE history.execution_id = old.execution_id AND history.last_event_id >= coalesce(new.next_event_id, 0)
  AND history.events LIKE '%,"TaskScheduled",%'
)
ORDER BY flow_name, name LIMIT ?
"""
_CALLING_INVOCATIONS: Final = """
SELECT count(*) OVER (), service, function, invocation_id FROM before.invocations AS old
LEFT JOIN (SELECT invocation_key, attempt FROM main.invocations) AS new USING (invocation_key)
WHERE old.execution_id IS NULL AND old.attempt > coalesce(new.attempt, 0)
ORDER BY service, function, invocation_id LIMIT ?
"""


def kept_of(file: Path) -> Path:
    """Where a restore keeps the old database."""
    return Path(f"{file}.before-restore")


def _held_of(file: Path) -> Path:
    return Path(f"{kept_of(file)}-new")


def _settle(file: Path, fresh: Path) -> _Old:
    """Read which callers the old database allows, and carry over to the copy what must not be undone.

    Then copy the old database's log into it, if the log is its own and readable.
    """
    if not file.exists() and read_log(file) is None:
        return _Old(Admission.OPEN, log_is_own=True)
    try:
        require_own_log(file)
    except LogOfAnotherFile:
        options, is_own = "mode=ro&immutable=1", False
    else:
        options, is_own = "mode=rw", True
    admission, is_carried_over = None, False
    with suppress(sqlite3.Error), closing(_connect(file, options)) as connection:
        admission = _read_admission(connection)
        is_carried_over = _carry_over(connection, fresh) and admission is Admission.KEYED
        if is_own:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return _Old(admission, is_own, is_carried_over)


def _carry_over(old: sqlite3.Connection, fresh: Path) -> bool:
    """Disable in the copy the keys that the old database has disabled, and add the nonces that were used.

    Returns whether that was possible, also with tables of an older version.
    """
    try:
        with closing(sqlite3.connect(fresh)) as copy:
            for found, change in _CARRIED_OVER:
                with copy:
                    copy.executemany(change, old.execute(found))
    except sqlite3.Error:
        return False
    return True


_CARRIED_OVER: Final = (
    (
        "SELECT disabled_at, access_key_id FROM access_keys WHERE disabled_at IS NOT NULL",
        "UPDATE access_keys SET disabled_at = ? WHERE access_key_id = ? AND disabled_at IS NULL",
    ),
    (
        "SELECT access_key_id, nonce, expires_at FROM nonces",
        "INSERT OR IGNORE INTO nonces (access_key_id, nonce, expires_at) VALUES (?, ?, ?)",
    ),
)


def _connect(file: Path, options: str) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(str(file))}?{options}", uri=True)


def _read_admission(connection: sqlite3.Connection) -> Admission:
    """Like `keys.read_admission`, for a schema of any version or none."""
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if "access_keys" in tables and connection.execute("SELECT 1 FROM access_keys").fetchone():
        return Admission.KEYED
    seen = "SELECT 1 FROM secrets WHERE name = ?"
    if "secrets" in tables and connection.execute(seen, [KEYS_SEEN]).fetchone():
        return Admission.LOST
    return Admission.OPEN


def _hold(file: Path) -> str | None:
    """Link the old file to a second name, so that the rename does not delete it; returns why that failed, or None."""
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
    """Move the replaced file to `kept_of`, over one kept before.

    If its own log could not be copied into it, the log moves too, and first: a kept file is never without its log or
    beside another file's.
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
    with suppress(PermissionError):  # it belongs to another user, as the database did
        path.chmod(0o600)


@contextmanager
def _beside(file: Path) -> Iterator[Path]:
    """The path of the copy. Files are removed from it before (a killed process may have left some) and after."""
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
        _errors_naming(backup),
        closing(sqlite3.connect(f"file:{quote(str(backup))}?mode=ro", uri=True)) as source_db,
        closing(sqlite3.connect(fresh)) as target_db,
    ):
        source_db.backup(target_db)


def _check(file: Path, name: Path) -> list[str]:
    """What is wrong with the file. Raises BackupUnusable if it is not a database of flowserver; errors use `name`."""
    with _errors_naming(name), closing(sqlite3.connect(file)) as connection:
        rows = connection.execute(f"PRAGMA integrity_check({FINDINGS_MAX})").fetchall()
        is_ours = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchone()
    if not is_ours:
        raise BackupUnusable(f"{name} is not a database of flowserver")
    findings = [str(row[0]) for row in rows if row != ("ok",)]
    with _errors_naming(name), _opened(file) as database:
        if database.run_read(revision_of) != REVISIONS[-1]:
            return findings  # rows can only be checked after the migration
        with database.read() as connection:
            violations = list_violations(connection, FINDINGS_MAX)
            findings += [f"execution {each.execution_id}: {each.rule.name}" for each in violations]
            damage = (f"{each.place}: {each.problem}" for each in find_damage(connection))
            findings += [each for each, _ in zip(damage, range(FINDINGS_MAX), strict=False)]
    return findings


@contextmanager
def _errors_naming(name: Path) -> Iterator[None]:
    """Raise errors with the name of the user's file instead of the copy's."""
    try:
        yield
    except sqlite3.Error as error:
        raise BackupUnusable(f"{name}: {error}") from None
    except DBAPIError as error:
        raise BackupUnusable(f"{name}: {reason_of(error)}") from None
    except ForeignDatabase:
        raise BackupUnusable(f"{name} is not a database of flowserver") from None
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
    """Give the copy a unique header and, with `keys_seen`, the record of keys; both in the file itself, not its log.

    Sign-in links of the backup may have been used since, so they are void.
    """
    with _opened(fresh) as database, database.write() as connection:
        connection.execute(text(f"PRAGMA user_version = {secrets.randbits(31)}"))
        if inspect(connection).has_table(sign_in_links.name):
            connection.execute(delete(sign_in_links))
        if keys_seen:
            keep_secret(connection, KEYS_SEEN, "yes")
    for path in (log_of(fresh), Path(f"{fresh}-shm"), origin_of(fresh)):
        path.unlink(missing_ok=True)


def _keep_owner(file: Path, fresh: Path) -> None:
    """Set the old file's owner: a server that runs as another user must still be able to open the database."""
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
    """Note that the log belongs to the old file and not to the new one."""
    waiting, noted, restored = read_log(file), read_origin(file), read_header(fresh)
    if waiting is None:
        return
    old = noted.header if noted is not None and noted.salt == waiting[0] else read_header(file)
    write_origin(file, Origin(waiting[0], old, restored), durably=True)
