"""The files of a SQLite database: checks that they belong together and that they are still the opened ones.

SQLite replays any `-wal` that it finds beside a database file. If a backup is copied beside a `-wal` that a crash left,
SQLite mixes newer pages of another file into it. So a writer notes in a small file beside the database (`-origin`)
which log belongs to which file.

- A log is identified by its salt, which SQLite changes when it restarts the log. At that moment all earlier changes
  are in the file and on the disk.
- A file is identified by numbers in the header of page 1: the user version, which a writer sets to a random value with
  its first change in each second; the schema version, which VACUUM raises; the numbers of pages and of free pages.
- So a file belongs to a log if its header is noted with the log's salt or is in the log. Without a
  note for this salt nothing is refused, so there are no false alarms.

If the files of a running server are deleted or replaced, its commits are lost. So after each COMMIT, before any reply,
the path is compared with the opened file, and the open log must still have a name.
"""

import json
import logging
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy.exc import InterfaceError

log = logging.getLogger(__name__)

MARK_SECONDS = 1.0
"""How often a busy writer marks page 1, so that an older copy of the file can be recognized."""

LOG_MAGIC = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")
LOG_HEADER_BYTES = 32
FRAME_HEADER_BYTES = 24
SALT = slice(16, 24)
"""The salt in a log's header; each frame repeats it at 8."""

NUMBERS = {"user_version": 60, "schema_version": 40, "page_count": 28, "freelist_count": 36}
"""The compared numbers: the pragma that reads each, and its offset in page 1 (four bytes)."""

Header = tuple[int, ...]
"""The values of NUMBERS, in their order."""

NO_FILE: Header = (0,) * len(NUMBERS)


class FilesReplaced(InterfaceError):
    """The database's files were deleted or replaced while open; what this process writes would be lost."""

    def __init__(self, reason: str) -> None:
        super().__init__("COMMIT", None, Exception(reason))


class LogOfAnotherFile(Exception):
    """The database file was replaced by hand, and a `-wal` of the old file is still beside it."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The note about a log: the header of its file, and of the file that a running `restore` puts in its place."""

    salt: str
    header: Header | None
    restored: Header | None = None


def log_of(file: Path) -> Path:
    """The write-ahead log of a database file."""
    return Path(f"{file}-wal")


def origin_of(file: Path) -> Path:
    """The file with the note about the log."""
    return Path(f"{file}-origin")


def read_header(file: Path) -> Header | None:
    """The numbers in the file itself, without its log; zeros if it is empty or missing, None if it is no database."""
    if not file.exists() or file.stat().st_size == 0:
        return NO_FILE
    # Not with open(): closing that descriptor would drop the locks of this process's connections.
    try:
        connection = sqlite3.connect(f"file:{quote(str(file))}?mode=ro&immutable=1", uri=True)
    except sqlite3.Error:
        return None
    try:
        return tuple(int(connection.execute(f"PRAGMA {name}").fetchone()[0]) for name in NUMBERS)
    except sqlite3.Error:
        return None
    finally:
        connection.close()


def read_log(file: Path) -> tuple[str, set[Header]] | None:
    """The salt of the file's log and the headers in the log; None if there is no log that SQLite would replay."""
    try:
        with log_of(file).open("rb") as content:
            head = content.read(LOG_HEADER_BYTES)
            if len(head) < LOG_HEADER_BYTES or head[:4] not in LOG_MAGIC:
                return None
            page_bytes = int.from_bytes(head[8:12], "big")
            headers: set[Header] = set()
            while len(frame := content.read(FRAME_HEADER_BYTES)) == FRAME_HEADER_BYTES and frame[8:16] == head[SALT]:
                if int.from_bytes(frame[:4], "big") == 1:
                    headers.add(_header_of(content.read(page_bytes)))
                else:
                    content.seek(page_bytes, os.SEEK_CUR)
            return head[SALT].hex(), headers
    except FileNotFoundError:
        return None


def _header_of(page: bytes) -> Header:
    return tuple(int.from_bytes(page[place : place + 4], "big", signed=True) for place in NUMBERS.values())


def read_origin(file: Path) -> Origin | None:
    """The note; None if there is none or it cannot be read, for example because a power cut truncated it."""
    try:
        noted = json.loads(origin_of(file).read_text())
        header, restored = (None if each is None else tuple(map(int, each)) for each in noted["headers"])
        return Origin(str(noted["salt"]), header, restored)
    except (OSError, ValueError, LookupError, TypeError):
        return None


def write_origin(file: Path, origin: Origin, *, durably: bool = False) -> None:
    """Replace the note atomically. Raises OSError."""
    fresh = Path(f"{origin_of(file)}.new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as content:
        json.dump({"salt": origin.salt, "headers": [origin.header, origin.restored]}, content)
        content.flush()
        if durably:
            os.fsync(content.fileno())
    fresh.replace(origin_of(file))


def require_own_log(file: Path) -> None:
    """Call before the first connection. Raises LogOfAnotherFile if the log is known to belong to another file.

    Also finishes a restore that was interrupted after it had replaced the file.
    """
    waiting, origin = read_log(file), read_origin(file)
    if waiting is None or origin is None or origin.salt != waiting[0]:
        return
    header = read_header(file)
    if header is None or header == origin.header or header in waiting[1]:
        return
    if header == origin.restored:
        log.warning("finished a restore that had been interrupted")
        remove_logs(file)
        return
    raise LogOfAnotherFile(
        f"{file} was replaced or deleted by hand, and {log_of(file).name} still holds changes of the file before it, "
        f"which would be mixed into it. To use a backup: flowserver restore FILE "
        f"(FILE may be {file} itself; {log_of(file).name} is then deleted)"
    )


def remove_logs(file: Path) -> None:
    """Delete the log, its index and the note, in this order, so that a log never lacks its note."""
    for path in (log_of(file), Path(f"{file}-shm"), Path(f"{origin_of(file)}.new"), origin_of(file)):
        path.unlink(missing_ok=True)


class SqliteFiles:
    """Watches the files of one open database, for all threads of a process."""

    def __init__(self, file: Path, seconds: Callable[[], float] = time.monotonic) -> None:
        self._file = file
        self._name = str(file)
        self._seconds = seconds
        self._lock = threading.Lock()
        self._identity: tuple[int, int] | None = None
        self._log: int | None = None
        self._salt = b""
        self._marked_at = -MARK_SECONDS
        self.lost: str | None = None
        """Why writes are refused; None normally."""
        self.on_loss: Callable[[], object] = lambda: None
        """Called once, in the thread that finds the loss."""

    def connecting(self) -> None:
        """Call before each connection. Raises LogOfAnotherFile, FilesReplaced."""
        with self._lock:
            if self._identity is None:
                require_own_log(self._file)
            else:
                self._require_same()

    def connected(self) -> None:
        """Call after each connection, when the file exists. Raises FilesReplaced."""
        with self._lock:
            if self._identity is None:
                status = self._file.stat()
                self._identity = status.st_dev, status.st_ino
            self._require_same()

    def mark(self, driver: Any) -> None:
        """Call in a transaction with changes: writes a new random number to page 1, once in MARK_SECONDS."""
        now = self._seconds()
        if now - self._marked_at >= MARK_SECONDS:
            self._marked_at = now
            driver.execute(f"PRAGMA user_version = {secrets.randbits(31)}")

    def committed(self) -> None:
        """Call after each COMMIT and before its replies. Raises FilesReplaced if the commit is lost."""
        with self._lock:
            self._require_same()
            if self._log is None:
                with suppress(FileNotFoundError):
                    self._log = os.open(log_of(self._file), os.O_RDONLY | getattr(os, "O_BINARY", 0))
            if self._log is None:
                return
            if os.fstat(self._log).st_nlink == 0:
                self._lose(f"{log_of(self._file)} was deleted or replaced under the running server")
            os.lseek(self._log, SALT.start, os.SEEK_SET)  # Windows has no pread
            salt = os.read(self._log, 8)
            if salt != self._salt:
                self._salt = salt
                self._note_origin(salt.hex())

    def require(self) -> None:
        """Call before each writing transaction. Raises FilesReplaced if a loss was found."""
        if self.lost is not None:
            raise FilesReplaced(self.lost)

    def close(self) -> None:
        """Call when all connections are closed."""
        with self._lock:
            if self._log is not None:
                os.close(self._log)
            self._log, self._identity, self._salt = None, None, b""

    def _require_same(self) -> None:
        self.require()
        try:
            status = os.stat(self._name)  # noqa: PTH116 - every commit pays, and a Path costs as much again
        except FileNotFoundError:
            self._lose(f"{self._file} was deleted under the running server")
        if (status.st_dev, status.st_ino) != self._identity:
            self._lose(f"{self._file} was replaced under the running server")

    def _lose(self, reason: str) -> None:
        self.lost = reason
        log.critical("%s; nothing is written any more", reason)
        self.on_loss()
        raise FilesReplaced(reason)

    def _note_origin(self, salt: str) -> None:
        """SQLite has restarted the log. If the file has a header of this log already, it is too late for the note."""
        try:
            noted, waiting, header = read_origin(self._file), read_log(self._file), read_header(self._file)
            if waiting is None or waiting[0] != salt or header is None or header in waiting[1]:
                return
            if noted is None or noted.salt != salt:
                write_origin(self._file, Origin(salt, header))
        except OSError as error:
            log.warning("cannot write the note that says which file the log belongs to: %s", error)
