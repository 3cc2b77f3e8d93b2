"""URLs, pragmas, and the limits of transactions."""

import sqlite3
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest
from sqlalchemy import Insert, func, insert, select, text
from sqlalchemy.exc import DatabaseError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from flowserver.store.schema.tables import secrets
from flowserver.store.sql.database import READERS_MAX, Database, DatabaseUrlInvalid, parse_url
from flowserver.store.sql.errors import is_away


def keep(name: str) -> Insert:
    return insert(secrets).values(name=name, value="v")


def count(database: Database) -> int:
    return database.run_read(lambda connection: connection.execute(select(func.count(secrets.c.name))).scalar_one())


@pytest.mark.parametrize("url", ["postgresql://u@h/d", "postgres://u@h/d", "postgresql+psycopg://u@h/d"])
def test_postgres_is_reached_through_psycopg(url: str) -> None:
    assert parse_url(url).render_as_string() == "postgresql+psycopg://u@h/d"


@pytest.mark.parametrize(
    "url", ["", "flows.db", "sqlite://", "sqlite:///", "sqlite:///:memory:", "mysql://h/d", "postgresql+asyncpg://h/d"]
)
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(DatabaseUrlInvalid):
        parse_url(url)


@pytest.mark.parametrize(
    ("pragma", "value"),
    [
        ("journal_mode", "wal"),
        ("synchronous", 2),  # FULL
        ("auto_vacuum", 2),  # INCREMENTAL
        ("busy_timeout", 30_000),
    ],
)
def test_pragmas_apply_to_writers_and_readers(sqlite_url: str, pragma: str, value: object) -> None:
    database = Database(sqlite_url)
    for transaction in (database.write, database.read):
        with transaction() as connection:
            assert connection.execute(text(f"PRAGMA {pragma}")).scalar_one() == value
    database.close()


def test_a_block_that_raises_is_rolled_back(database: Database) -> None:
    with pytest.raises(ZeroDivisionError), database.write() as connection:
        connection.execute(keep("a"))
        raise ZeroDivisionError
    assert count(database) == 0


def test_a_savepoint_fails_alone(database: Database) -> None:
    with database.write() as connection:
        connection.execute(keep("a"))
        with pytest.raises(ZeroDivisionError), connection.begin_nested():
            connection.execute(keep("b"))
            raise ZeroDivisionError
        connection.execute(keep("c"))
    with database.read() as connection:
        assert list(connection.execute(select(secrets.c.name).order_by(secrets.c.name)).scalars()) == ["a", "c"]


def test_readers_do_not_wait_for_the_writer(database: Database) -> None:
    with database.write() as connection:
        connection.execute(keep("a"))
        assert count(database) == 0
    assert count(database) == 1


def test_the_writer_does_not_wait_for_readers(database: Database) -> None:
    with ExitStack() as readers:
        for _ in range(READERS_MAX):
            readers.enter_context(database.read()).execute(select(1))
        with database.write() as connection:
            connection.execute(keep("a"))
    assert count(database) == 1


@pytest.mark.parametrize(("query", "expected"), [("", b"10"), ("&connect_timeout=3", b"3")])
def test_connecting_to_postgres_takes_a_bounded_time(shared_postgres_url: str, query: str, expected: bytes) -> None:
    database = Database(shared_postgres_url + query)
    with database.write() as writer, database.read() as reader:
        for connection in (writer, reader):
            driver = connection.connection.driver_connection
            assert driver is not None
            given = {option.keyword: option.val for option in driver.pgconn.info}
            assert given[b"connect_timeout"] == expected
    database.close()


def test_a_sqlite_reader_sees_one_snapshot(sqlite_url: str) -> None:
    database = Database(sqlite_url)
    with database.read() as reader:
        assert reader.execute(select(func.count(secrets.c.name))).scalar_one() == 0
        with database.write() as connection:
            connection.execute(keep("a"))
        assert reader.execute(select(func.count(secrets.c.name))).scalar_one() == 0
    assert count(database) == 1
    database.close()


def test_a_second_sqlite_writer_waits_its_turn(sqlite_url: str) -> None:
    first, second = Database(sqlite_url), Database(sqlite_url)
    begun = threading.Event()

    def write_too() -> None:
        begun.set()
        with second.write() as connection:
            assert connection.execute(select(func.count(secrets.c.name))).scalar_one() == 1
            connection.execute(keep("b"))

    thread = threading.Thread(target=write_too)
    with first.write() as connection:
        thread.start()
        begun.wait()
        connection.execute(keep("a"))
    thread.join()
    assert count(first) == 2
    first.close()
    second.close()


def test_closing_waits_for_readers_of_other_threads(sqlite_url: str) -> None:
    """Otherwise their connections stay open, and Python 3.13 warns."""
    database = Database(sqlite_url)
    reading, closing = threading.Event(), threading.Event()
    results: list[int] = []

    def read() -> None:
        with database.read() as connection:
            reading.set()
            assert closing.wait(20)
            results.append(connection.execute(select(func.count(secrets.c.name))).scalar_one())

    thread = threading.Thread(target=read)
    thread.start()
    assert reading.wait(20)
    closing.set()
    database.close()
    assert results == [0]
    thread.join()


def test_all_commits_are_in_the_file_when_all_is_closed(sqlite_url: str, tmp_path: Path) -> None:
    database = Database(sqlite_url)
    with database.write() as connection:
        connection.execute(keep("a"))
    database.close()
    assert not list(tmp_path.glob("*-wal"))
    plain = sqlite3.connect(tmp_path / "flowserver.db")
    assert plain.execute("SELECT name FROM secrets").fetchall() == [("a",)]
    plain.close()


def test_errors_of_a_database_that_is_down(sqlite_database: Database, postgres_database: Database) -> None:
    """A full disk and a cut connection are temporary; an invalid statement is not."""
    for database in (sqlite_database, postgres_database):
        with pytest.raises(DatabaseError) as nonsense, database.read() as connection:
            connection.exec_driver_sql("SELECT nothing FROM nowhere")
        assert not is_away(nonsense.value)
    with pytest.raises(OperationalError) as full, sqlite_database.write() as connection:
        connection.exec_driver_sql("PRAGMA max_page_count = 1")
        connection.exec_driver_sql("INSERT INTO secrets VALUES ('n', hex(zeroblob(9000000)))")
    assert is_away(full.value)
    with pytest.raises(OperationalError) as cut, postgres_database.write() as connection:
        connection.exec_driver_sql("SELECT pg_terminate_backend(pg_backend_pid())")
    assert is_away(cut.value)
    assert is_away(PoolTimeout())
    assert not is_away(ValueError())
