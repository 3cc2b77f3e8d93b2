"""The registry of functions."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from sqlalchemy import select

from flowserver.store.functions import (
    delete_function,
    find_function,
    list_functions,
    put_function,
    service_is_known,
)
from flowserver.store.schema.tables import functions
from flowserver.store.sql.database import Database
from tests.store.rows import function_row


def test_registering_replacing_and_deleting(database: Database) -> None:
    first = function_row("s", "f", created_at=1, modified_at=1)
    second = function_row("s", "f", url="http://h/2", headers={}, timeout_seconds=5, created_at=9, modified_at=9)
    with database.write() as connection:
        assert put_function(connection, first)
        assert find_function(connection, "s", "f") == first
        assert not put_function(connection, second)
        assert find_function(connection, "s", "f") == replace(second, created_at=1)
        assert find_function(connection, "s.prod", "f") is None
        assert delete_function(connection, "s", "f")
        assert not delete_function(connection, "s", "f")
        assert find_function(connection, "s", "f") is None


def test_one_of_two_concurrent_registrations_is_new(database_url: str) -> None:
    databases = [Database(database_url), Database(database_url)]
    start = threading.Barrier(2)

    def put(database: Database) -> bool:
        start.wait()
        with database.write() as connection:
            return put_function(connection, function_row("s", "f"))

    with ThreadPoolExecutor(2) as threads:
        assert sorted(threads.map(put, databases)) == [False, True]
    for each in databases:
        each.close()


def test_a_service_exists_while_it_has_a_function(database: Database) -> None:
    with database.write() as connection:
        for service in ("plain", "only.prod", "Case", "", "lo_g"):
            put_function(connection, function_row(service, "f"))
    known = ["plain", "only", "only.prod", "Case", "", "lo_g"]
    unknown = ["pla", "onl", "only.pro", "case", "lo%", "loXg", "prod"]
    with database.read() as connection:
        assert [service for service in known + unknown if service_is_known(connection, service)] == known


def test_pages_follow_code_points(database: Database) -> None:
    keys = [("", "b"), ("A", "z"), ("a", "A"), ("a", "_"), ("a", "a"), ("a.1", "a"), ("aa", "a"), ("b", "A")]
    with database.write() as connection:
        for service, function in reversed(keys):
            put_function(connection, function_row(service, function))
    seen: list[tuple[str, str]] = []
    with database.read() as connection:
        has_more = True
        while has_more:
            after = seen[-1] if seen else None
            page, has_more = list_functions(connection, after=after, limit=3, bytes_max=9_999)
            seen += [(row.service, row.function) for row in page]
    assert seen == keys == sorted(keys)


def test_a_function_that_is_being_changed_is_locked(postgres_database: Database) -> None:
    """Else a registration that keeps a header's stored value would undo the change of the value on another node."""
    with postgres_database.write() as connection:
        put_function(connection, function_row("s", "f"))
    with postgres_database.write() as ours, postgres_database.write() as theirs:
        row = find_function(ours, "s", "f", lock=True)
        assert row is not None
        assert theirs.execute(select(functions.c.url).with_for_update(skip_locked=True)).all() == []
        assert find_function(theirs, "s", "f") == row
