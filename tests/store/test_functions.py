"""The registry of functions and the asynchronous calls that wait to be made."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace

from sqlalchemy import insert, select

from flowserver.store.database import Database
from flowserver.store.functions import (
    InvocationRow,
    delete_function,
    delete_invocation,
    find_function,
    find_invocation,
    list_functions,
    put_function,
    service_is_known,
    take_over_invocations,
)
from flowserver.store.nodes import register_node
from flowserver.store.tables import invocations
from tests.store.rows import function_row, invocation_row


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


def test_of_two_registrations_at_once_one_is_new(database_url: str) -> None:
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


def test_a_service_is_known_by_any_of_its_functions(database: Database) -> None:
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
        while page := list_functions(connection, after=seen[-1] if seen else None, limit=3):
            seen += [(row.service, row.function) for row in page]
    assert seen == keys == sorted(keys)


def keep(database: Database, *rows: InvocationRow) -> None:
    with database.write() as connection:
        connection.execute(insert(invocations), [asdict(row) for row in rows])


def test_calls_of_nodes_that_are_gone_are_taken_over(database: Database) -> None:
    gone, living, ours = invocation_row("1", "gone"), invocation_row("2", "living"), invocation_row("3", "us")
    keep(database, gone, living, ours)
    with database.write() as connection:
        register_node(connection, "living", "session", 0)
        register_node(connection, "us", "session", 0)
        taken = take_over_invocations(connection, "us", 10)
        assert taken == [replace(gone, node_id="us", attempt=2)]
        assert take_over_invocations(connection, "us", 10) == []
        assert find_invocation(connection, "2") == living
        assert find_invocation(connection, "3") == ours


def test_taking_over_is_bounded(database: Database) -> None:
    keep(database, *(invocation_row(str(number), "gone") for number in range(5)))
    with database.write() as connection:
        register_node(connection, "us", "session", 0)
        taken = [len(take_over_invocations(connection, "us", 2)) for _ in range(4)]
    assert taken == [2, 2, 1, 0]


def test_two_nodes_do_not_take_over_the_same_call(postgres_database: Database) -> None:
    keep(postgres_database, *(invocation_row(str(number), "gone") for number in range(4)))
    with postgres_database.write() as one, postgres_database.write() as two:
        ours = {row.idempotency_key for row in take_over_invocations(one, "one", 2)}
        theirs = {row.idempotency_key for row in take_over_invocations(two, "two", 10)}
    assert len(ours) == 2
    assert theirs == {"0", "1", "2", "3"} - ours


def test_a_call_that_was_made_is_forgotten(database: Database) -> None:
    keep(database, invocation_row("1"), invocation_row("2"))
    with database.write() as connection:
        delete_invocation(connection, "1")
        delete_invocation(connection, "unknown")
        assert list(connection.execute(select(invocations.c.idempotency_key)).scalars()) == ["2"]
