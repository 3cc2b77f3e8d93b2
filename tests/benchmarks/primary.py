"""What a load costs the PostgreSQL server: processor time of its processes, commits, rows, bytes of WAL, fsyncs."""

import os
from pathlib import Path
from types import TracebackType
from typing import Self

import psycopg

COUNTERS = """
    SELECT d.xact_commit, d.tup_inserted + d.tup_updated + d.tup_deleted, d.tup_fetched,
           pg_current_wal_lsn() - '0/0'::pg_lsn, (SELECT sum(fsyncs) FROM pg_stat_io WHERE object = 'wal')
    FROM pg_stat_database AS d WHERE d.datname = current_database()
"""
NAMES = ("commits", "rows_written", "rows_fetched", "wal_bytes", "wal_fsyncs")


def cpu_seconds_of(pid: int) -> float:
    """User and system time of a process so far; 0 if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Primary:
    """Watches the server of a database from a session of its own."""

    def __init__(self, database_url: str) -> None:
        self._session = psycopg.connect(database_url, autocommit=True)
        (pid,) = self._row("SELECT pg_backend_pid()")
        self._postmaster = _parent(int(pid))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: TracebackType | BaseException | None) -> None:
        self._session.close()

    def read(self) -> dict[str, float]:
        """All counters as they are now; other sessions may be a second late with theirs."""
        counters = dict(zip(NAMES, map(float, self._row(COUNTERS)), strict=True))
        return counters | {"cpu_ms": 1000 * sum(cpu_seconds_of(pid) for pid in _children(self._postmaster))}

    def _row(self, query: str) -> tuple[object, ...]:
        row = self._session.execute(query.encode()).fetchone()
        assert row is not None
        return row


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
