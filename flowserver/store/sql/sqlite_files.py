"""The files of a SQLite database: whether they are the ones that were opened, and whether they belong together.

SQLite replays a `-wal` that it finds beside a file into that file, whichever file it is: a backup copied beside a
`-wal` that a crash left gets the newer pages of another file. So a writer notes, in a small file beside the database,
which log goes with which file. The numbers that it compares are in the header of page 1: the user version, which a
writer sets to a new random value with its first change in each second; the schema version, which VACUUM raises; and how
many pages there are and how many of them are free.
A log is known by the salt that SQLite gives it when it begins the log anew. At that moment everything before is in the
file and on the disk. So a file that goes with a log has the header that was noted then, or one that the log holds.
There is no false alarm: without a note for just this log nothing is refused.

A running server loses what it acknowledges if its files are deleted or replaced. So after each COMMIT, before anybody
hears of it, the path is compared with the file that was opened, and the open log must still have a name.
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
"""How often a busy writer marks page 1: a copy that is older than the last mark before a log began is told from it."""

LOG_MAGIC = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")
LOG_HEADER_BYTES = 32
FRAME_HEADER_BYTES = 24
SALT = slice(16, 24)
"""Where a log's header holds the salt; each of its frames repeats it at 8."""

NUMBERS = {"user_version": 60, "schema_version": 40, "page_count": 28, "freelist_count": 36}
"""What is compared: the pragma that tells it, and where page 1 holds it, in four bytes."""

Header = tuple[int, ...]
"""These numbers, in their order."""

NO_FILE: Header = (0,) * len(NUMBERS)


class FilesReplaced(InterfaceError):
    """The database's files were deleted or replaced under this process; nothing it writes would be kept."""

    def __init__(self, reason: str) -> None:
        super().__init__("COMMIT", None, Exception(reason))


class LogOfAnotherFile(Exception):
    """The database file was replaced by hand while a `-wal` of the file before it waits."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What was noted of a log: the header of the file that it began with, and of one that `restore` puts there."""

    salt: str
    header: Header | None
    restored: Header | None = None


def log_of(file: Path) -> Path:
    """The write-ahead log of a database file."""
    return Path(f"{file}-wal")


def origin_of(file: Path) -> Path:
    """Where the note about the log is."""
    return Path(f"{file}-origin")


def read_header(file: Path) -> Header | None:
    """The numbers in the file itself, without its log; zeros for an empty file or none, None if it is no database."""
    if not file.exists() or file.stat().st_size == 0:
        return NO_FILE
    # Never through a descriptor of our own: closing that would drop the locks of this process's connections.
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
    """The salt of the file's log and the headers that it holds; None without a log that SQLite would replay."""
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
    """What was noted last; None if nothing was, or nothing that can be read: after a power cut it may be cut short."""
    try:
        noted = json.loads(origin_of(file).read_text())
        header, restored = (None if each is None else tuple(map(int, each)) for each in noted["headers"])
        return Origin(str(noted["salt"]), header, restored)
    except (OSError, ValueError, LookupError, TypeError):
        return None


def write_origin(file: Path, origin: Origin, *, durably: bool = False) -> None:
    """Note it, in one step. Raises OSError."""
    fresh = Path(f"{origin_of(file)}.new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as content:
        json.dump({"salt": origin.salt, "headers": [origin.header, origin.restored]}, content)
        content.flush()
        if durably:
            os.fsync(content.fileno())
    fresh.replace(origin_of(file))


def require_own_log(file: Path) -> None:
    """Before the first connection: raises LogOfAnotherFile if the log that waits is known to be of another file.

    A restore that was interrupted after it had put the new file in its place is finished here.
    """
    waiting, origin = read_log(file), read_origin(file)
    if waiting is None or origin is None or origin.salt != waiting[0]:
        return
    header = read_header(file)
    if header is None or header == origin.header or header in waiting[1]:
        return
    if header == origin.restored:
        log.warning("a restore had been interrupted, and is complete now")
        remove_logs(file)
        return
    raise LogOfAnotherFile(
        f"{file} was replaced or deleted by hand, and {log_of(file).name} still holds changes of the file before it, "
        f"which would be mixed into it. To use a backup: flowserver restore FILE "
        f"(FILE may be {file} itself; {log_of(file).name} is then deleted)"
    )


def remove_logs(file: Path) -> None:
    """Delete the log, its index, and the note, in this order: while there is a log, the note says whose it is."""
    for path in (log_of(file), Path(f"{file}-shm"), Path(f"{origin_of(file)}.new"), origin_of(file)):
        path.unlink(missing_ok=True)


class SqliteFiles:
    """The files of one open database, for all threads of a process."""

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
        """Why nothing is written any more; None while all is well."""
        self.on_loss: Callable[[], object] = lambda: None
        """Called once, in the thread that finds out."""

    def connecting(self) -> None:
        """Before each connection. Raises LogOfAnotherFile, FilesReplaced."""
        with self._lock:
            if self._identity is None:
                require_own_log(self._file)
            else:
                self._require_same()

    def connected(self) -> None:
        """After each connection, when there is a file. Raises FilesReplaced."""
        with self._lock:
            if self._identity is None:
                status = self._file.stat()
                self._identity = status.st_dev, status.st_ino
            self._require_same()

    def mark(self, driver: Any) -> None:
        """Within a transaction that has changed something: give page 1 a new random number, once in MARK_SECONDS."""
        now = self._seconds()
        if now - self._marked_at >= MARK_SECONDS:
            self._marked_at = now
            driver.execute(f"PRAGMA user_version = {secrets.randbits(31)}")

    def committed(self) -> None:
        """After each COMMIT and before its answers. Raises FilesReplaced if what was committed is not kept."""
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
        """Before each writing transaction. Raises FilesReplaced once it was noticed."""
        if self.lost is not None:
            raise FilesReplaced(self.lost)

    def close(self) -> None:
        """Once all connections are closed."""
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
        """SQLite has begun the log anew. If the file has a header of this log already, it is too late to note."""
        try:
            noted, waiting, header = read_origin(self._file), read_log(self._file), read_header(self._file)
            if waiting is None or waiting[0] != salt or header is None or header in waiting[1]:
                return
            if noted is None or noted.salt != salt:
                write_origin(self._file, Origin(salt, header))
        except OSError as error:
            log.warning("what file a log belongs to could not be noted: %s", error)
