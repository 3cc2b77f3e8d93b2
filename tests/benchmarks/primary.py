"""The cost of a load for the PostgreSQL server: processor time, commits, rows, bytes of WAL, fsyncs, the database's
size.
"""

from types import TracebackType
from typing import Self

import psycopg

from tests.support.processes import children_of, cpu_seconds_of, parent_of, written_bytes_of

COUNTERS = """
    SELECT d.xact_commit, d.tup_inserted + d.tup_updated + d.tup_deleted, d.tup_fetched,
           pg_current_wal_lsn() - '0/0'::pg_lsn, (SELECT sum(fsyncs) FROM pg_stat_io WHERE object = 'wal'),
           pg_database_size(current_database())
    FROM pg_stat_database AS d WHERE d.datname = current_database()
"""
NAMES = ("commits", "rows_written", "rows_fetched", "wal_bytes", "wal_fsyncs", "size_bytes")


class Primary:
    """Reads the server's counters in its own session."""

    def __init__(self, database_url: str) -> None:
        self._session = psycopg.connect(database_url, autocommit=True)
        (pid,) = self._row("SELECT pg_backend_pid()")
        self._postmaster = parent_of(int(str(pid)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: TracebackType | BaseException | None) -> None:
        self._session.close()

    def read(self) -> dict[str, float]:
        """All present counters; those of other sessions may be a second old."""
        counters = {name: float(str(value)) for name, value in zip(NAMES, self._row(COUNTERS), strict=True)}
        pids = children_of(self._postmaster)
        counters["cpu_seconds"] = sum(map(cpu_seconds_of, pids))
        counters["written_bytes"] = float(sum(map(written_bytes_of, pids)))
        return counters

    def version(self) -> str:
        """As PostgreSQL writes it, e.g. 18.1."""
        return str(self._row("SHOW server_version")[0]).split()[0]

    def _row(self, query: str) -> tuple[object, ...]:
        row = self._session.execute(query.encode()).fetchone()
        assert row is not None
        return row
