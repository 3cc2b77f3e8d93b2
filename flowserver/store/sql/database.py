"""Database: engines, pragmas, and transactions.

SQLite: WAL, full fsync, one writer, many readers, incremental vacuum from the first table on.
PostgreSQL: READ COMMITTED; the rows that a turn changes are locked when they are loaded.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError

from flowserver.store.sql.connection_cache import ConnectionCache
from flowserver.store.sql.prepared import commit_waiting, execute_plain, forget_waiting, send_waiting
from flowserver.store.sql.sqlite_files import SqliteFiles
from flowserver.store.sql.unreadable import decode_text

READERS_MAX = 9
"""Connections of reading threads: three for lists, the rest for loops and counts, which seldom read together. A thread
that finds none free waits for one."""

SHORT_READERS_MAX = 1
"""A connection for short queries only: slow lists may hold all the readers."""

SQLITE_WRITERS_MAX = 2
"""One is cached for the committer; of two transactions one waits for the other in any case."""

POSTGRES_WRITERS_MAX = 3
"""Connections that readers never take: every execution waits for the writer."""

CONNECT_SECONDS = 10
"""Limit for connecting to PostgreSQL; the driver would wait for minutes if the machine does not answer."""

WRITER_CACHE_KIB = 8_192
READER_CACHE_KIB = 1_024
"""Page caches of SQLite connections. The operating system caches the rest; hot are the last pages of each index."""

BUSY_TIMEOUT_MS = 30_000
KEEPALIVE = {"keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3, "tcp_user_timeout": 10_000}
"""A PostgreSQL machine that disappears is noticed after about ten seconds (`tcp_user_timeout` is in ms)."""

SESSIONS_MAX = 2
"""Connections of a node outside transactions: one listens and beats, one sends notices."""

LOCK_TIMEOUT_MS = 300
"""How long such a session may wait for a lock, so that its next beat is in time."""

AUTO_VACUUM_INCREMENTAL = 2
CLOSE_SECONDS = 10.0
"""How long closing waits for open transactions, which normally take milliseconds."""

T = TypeVar("T")


class DatabaseUrlInvalid(ValueError):
    """The database URL is neither sqlite:///… nor postgresql://…, or its driver is not installed."""


def parse_url(text: str) -> URL:
    """The URL for SQLAlchemy, with psycopg as the driver for PostgreSQL. Raises DatabaseUrlInvalid."""
    try:
        url = make_url(text)
    except ArgumentError:
        raise DatabaseUrlInvalid("the database URL must be sqlite:///FILE or postgresql://…") from None
    if url.drivername in ("postgresql", "postgres", "postgresql+psycopg"):
        return url.set(drivername="postgresql+psycopg")
    if url.drivername == "sqlite" and url.database not in (None, "", ":memory:"):
        return url
    raise DatabaseUrlInvalid("the database URL must be sqlite:///FILE or postgresql://…")


class Database:
    """The engines of one database. On SQLite one thread at a time uses `write()`; any thread may use `read()`.

    Making it raises DatabaseUrlInvalid.
    """

    def __init__(self, url_text: str) -> None:
        self.url = parse_url(url_text)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self.session_name = f"flowserver {uuid4()}"
        """The name of this process's sessions in PostgreSQL, by which another node can terminate them."""
        self.files = SqliteFiles(Path(self.url.database or "")) if self.is_sqlite else None
        """Guards the SQLite files; None on PostgreSQL."""
        if self.is_sqlite:
            self._writer = self._sqlite_engine("BEGIN IMMEDIATE", SQLITE_WRITERS_MAX, WRITER_CACHE_KIB)
            self._reader = self._sqlite_engine("BEGIN", READERS_MAX, READER_CACHE_KIB)
            self._looker = self._sqlite_engine("BEGIN", SHORT_READERS_MAX, READER_CACHE_KIB)
        else:
            self._writer = self._postgres_engine(POSTGRES_WRITERS_MAX)
            event.listen(self._writer, "connect", _prepare_writer)
            self._reader = self._postgres_engine(READERS_MAX)
            self._looker = self._postgres_engine(SHORT_READERS_MAX)
            self._sessions = self._postgres_engine(SESSIONS_MAX).execution_options(isolation_level="AUTOCOMMIT")
            event.listen(self._sessions, "connect", _prepare_session)
        self._spare_writer = ConnectionCache(self._writer, may_die=not self.is_sqlite)
        self._spare_reader = ConnectionCache(self._reader, may_die=not self.is_sqlite)
        self._spare_looker = ConnectionCache(self._looker, may_die=not self.is_sqlite)
        self._transactions = 0
        self._changed = threading.Condition()

    @property
    def sqlite_file(self) -> Path | None:
        """The database file; None on PostgreSQL."""
        return Path(self.url.database or "") if self.is_sqlite else None

    @property
    def is_lost(self) -> bool:
        """Whether the SQLite file was deleted or replaced while open; then every write is refused."""
        return self.files is not None and self.files.lost is not None

    def on_loss(self, act: Callable[[], object]) -> None:
        """Call `act` when the SQLite file is found to be deleted or replaced, in the thread that finds it."""
        if self.files is not None:
            self.files.on_loss = act

    def make_folder(self) -> None:
        """Create a missing folder of the SQLite file, for its owner only: it will hold keys and secrets."""
        if self.sqlite_file is not None:
            self.sqlite_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)

    @property
    def engine(self) -> Engine:
        """The engine that writes, for migrations."""
        return self._writer

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that may write; committed durably when the block ends, rolled back if it raises.

        Raises FilesReplaced when the SQLite file has been deleted or replaced: what was committed is then lost.
        """
        with self._under_way():
            if self.files is None:
                with self._spare_writer.begin() as connection:
                    yield connection
                return
            self.files.require()
            with self._spare_writer.begin() as connection:
                driver: Any = connection.connection.driver_connection
                changes = driver.total_changes
                yield connection
                if driver.total_changes != changes:
                    self.files.mark(driver)
            self.files.committed()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that only reads, from one consistent snapshot on SQLite."""
        with self._under_way(), self._spare_reader.begin() as connection:
            yield connection

    @contextmanager
    def look(self) -> Iterator[Connection]:
        """Like `read`, on a connection of its own, for short queries of one thread at a time."""
        with self._under_way(), self._spare_looker.begin() as connection:
            yield connection

    @contextmanager
    def session(self) -> Iterator[Connection]:
        """A PostgreSQL connection on which every statement commits by itself, without waiting for the disk."""
        with self._under_way(), self._sessions.connect() as connection:
            yield connection

    def run_read(self, query: Callable[[Connection], T]) -> T:
        """Run one query function in a reading transaction of its own."""
        with self.read() as connection:
            return query(connection)

    def checkpoint(self) -> None:
        """Copy the write-ahead log into the SQLite file as far as readers allow, without waiting for them.

        A file shortened by a vacuum shrinks on the disk only then.
        """
        with self._under_way(), self._reader.connect() as connection:
            driver: Any = connection.connection.driver_connection
            driver.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def close(self) -> None:
        """Close all connections when the transactions of other threads have ended.

        Connections to SQLite files that were replaced stay open: closing the last one deletes the log by name, and the
        name may belong to another file's log now.
        """
        if self.is_lost:
            return
        with self._changed:
            self._changed.wait_for(lambda: self._transactions == 0, CLOSE_SECONDS)
        for spare in (self._spare_writer, self._spare_reader, self._spare_looker):
            spare.close()
        for engine in (self._writer, self._reader, self._looker):
            engine.dispose()
        if self.files is not None:
            self.files.close()
        else:
            self._sessions.dispose()

    @contextmanager
    def _under_way(self) -> Iterator[None]:
        """Count an open transaction: a connection returned after the pool is closed would stay open."""
        with self._changed:
            self._transactions += 1
        try:
            yield
        finally:
            with self._changed:
                self._transactions -= 1
                self._changed.notify_all()

    def _sqlite_engine(self, begin: str, connections: int, cache_kib: int) -> Engine:
        engine = create_engine(
            self.url,
            hide_parameters=True,
            pool_size=connections,
            max_overflow=0,
            connect_args={"check_same_thread": False, "timeout": BUSY_TIMEOUT_MS / 1000},
        )
        files = self.files
        assert files is not None

        def open_file(_dialect: object, _record: object, arguments: list[str], _options: object) -> None:
            files.connecting()
            _make_private_file(Path(arguments[0]))

        def opened_file(connection: Any, _record: object) -> None:
            files.connected()
            _prepare_sqlite(connection, _record)

        event.listen(engine, "do_connect", open_file)
        event.listen(engine, "connect", opened_file)

        def set_cache(connection: Any, _record: object) -> None:
            connection.execute(f"PRAGMA cache_size = -{cache_kib}")

        event.listen(engine, "connect", set_cache)

        def begin_transaction(connection: Connection) -> None:
            execute_plain(connection, begin)

        event.listen(engine, "begin", begin_transaction)
        return engine

    def _postgres_engine(self, connections: int) -> Engine:
        # Options in the URL take precedence, so that an operator can set other time-outs.
        defaults: dict[str, int | str] = {"connect_timeout": CONNECT_SECONDS, **KEEPALIVE}
        options = {name: value for name, value in defaults.items() if name not in self.url.query}
        options["application_name"] = self.session_name
        try:
            engine = create_engine(
                self.url,
                hide_parameters=True,
                isolation_level="READ COMMITTED",
                pool_size=connections,
                max_overflow=0,
                pool_pre_ping=True,
                connect_args={**options, "prepare_threshold": None},
            )
        except ModuleNotFoundError as error:
            raise DatabaseUrlInvalid(
                f"PostgreSQL needs the package {error.name}: pip install 'flowserver[postgres]'"
            ) from None
        event.listen(engine, "before_cursor_execute", lambda connection, *_: send_waiting(connection))
        event.listen(engine, "commit", commit_waiting)
        event.listen(engine, "rollback", forget_waiting)
        return engine


def _prepare_writer(connection: Any, _record: object) -> None:
    """Force index scans: every written row is found by its key.

    Otherwise a plan prepared while a table is small would read it whole, and would stay in use while the table grows.
    """
    connection.execute("SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off")
    connection.commit()


def _prepare_session(connection: Any, _record: object) -> None:
    """Sessions do not wait for the disk: their writes (beats) mean nothing after a power cut."""
    connection.execute(f"SET synchronous_commit = off; SET lock_timeout = {LOCK_TIMEOUT_MS}")
    connection.commit()


def _make_private_file(file: Path) -> None:
    """Create a missing database file readable by its owner only; SQLite gives -wal and -shm the same mode.

    An existing file keeps its mode. If the folder is missing, SQLite reports it.
    """
    if file.parent.is_dir() and not file.exists():
        file.touch(mode=0o600)


def _prepare_sqlite(connection: Any, _record: object) -> None:
    """Pragmas of every connection; auto_vacuum takes effect only before the first table exists."""
    connection.isolation_level = None  # SQLAlchemy's begin event opens transactions, not the driver
    connection.text_factory = decode_text  # the driver's own fails the whole query for one bad byte
    connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
    if connection.execute("PRAGMA auto_vacuum").fetchone() != (AUTO_VACUUM_INCREMENTAL,):
        # Only if necessary: setting it writes, so a new reader would wait for the writer.
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    for pragma in (
        "journal_mode = WAL",
        "synchronous = FULL",
        "temp_store = MEMORY",
        "secure_delete = ON",  # as in Debian's builds: a secret that was encrypted or deleted is not left in the file
    ):
        connection.execute(f"PRAGMA {pragma}")
