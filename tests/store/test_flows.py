"""Flows: unique names, definitions that stay, listings in one order on every database."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select, text

from flowserver.store.flows import (
    FlowRow,
    count_flows,
    definition_id_of,
    delete_flow,
    find_flow,
    find_flows,
    insert_flow,
    list_flows,
    load_definition,
    put_definition,
    update_flow,
)
from flowserver.store.schema.all_tables import metadata
from flowserver.store.schema.metadata import Name
from flowserver.store.schema.tables import definitions, flows
from flowserver.store.sql.bounded_pages import bytes_of
from flowserver.store.sql.database import Database
from tests.store.rows import flow_row, keep_flow

AWKWARD = "version: v1 # ~*+/&=中\r\n\ttabs and\nnewlines 🚀\n"
ORDER = ["A", "B", "Z", "_", "a", "a-b", "a0", "a_b", "aa", "b"]
"""By code points, which keeps apart what locales mix (cases, punctuation)."""


def test_a_flow_is_read_as_it_was_written(database: Database) -> None:
    row = flow_row("f", definition=AWKWARD, description="d 中", role_arn="r", environment="{}", created_at=2**41)
    with database.write() as connection:
        assert insert_flow(connection, row)
    with database.read() as connection:
        assert find_flow(connection, "f") == row
        assert load_definition(connection, row.definition_id) == AWKWARD
        assert find_flow(connection, "F") is None
        assert load_definition(connection, "unknown") is None


def test_a_live_name_is_taken(database: Database) -> None:
    with database.write() as connection:
        keep_flow(connection, "f", "one")
        assert not insert_flow(connection, flow_row("f", "two"))
        keep_flow(connection, "g", "three")  # the failure left the transaction usable
        assert count_flows(connection) == 2
        assert load_definition(connection, flow_row("f", "two").definition_id) is None


def test_one_of_two_concurrent_creates_wins(database_url: str) -> None:
    databases = [Database(database_url), Database(database_url)]
    start, results = threading.Barrier(2), []

    def create(number: int) -> None:
        start.wait()
        with databases[number].write() as connection:
            results.append(insert_flow(connection, flow_row("f", f"id-{number}")))

    threads = [threading.Thread(target=create, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [False, True]
    with databases[0].read() as connection:
        assert count_flows(connection) == 1
    for each in databases:
        each.close()


def test_a_deleted_name_is_free_at_once_for_an_unrelated_flow(database: Database) -> None:
    with database.write() as connection:
        old = keep_flow(connection, "f", "old")
        assert delete_flow(connection, "old", 5)
        assert find_flow(connection, "f") is None
        assert not delete_flow(connection, "old", 6)
        keep_flow(connection, "f", "new")
        assert delete_flow(connection, "new", 7)
        assert not update_flow(connection, old)
        deleted = select(flows.c.flow_id, flows.c.deleted_at).order_by(flows.c.deleted_at)
        assert [tuple(row) for row in connection.execute(deleted)] == [("old", 5), ("new", 7)]
        assert load_definition(connection, old.definition_id) is not None


def test_updating_keeps_older_definitions(database: Database) -> None:
    with database.write() as connection:
        first = keep_flow(connection, "f")
        second = replace(first, definition=AWKWARD, definition_id=definition_id_of(first.flow_id, AWKWARD))
        second = replace(second, description="new", role_arn="new", modified_at=9)
        assert update_flow(connection, second)
        assert find_flow(connection, "f") == second
        assert load_definition(connection, first.definition_id) == first.definition
        assert update_flow(connection, replace(first, modified_at=10))
        assert len(connection.execute(select(definitions)).all()) == 2


def test_a_flow_is_locked_while_it_changes(postgres_database: Database) -> None:
    """Otherwise two nodes that change different fields would undo each other's change."""
    with postgres_database.write() as connection:
        row = keep_flow(connection, "f")
    with postgres_database.write() as ours, postgres_database.write() as theirs:
        assert find_flow(ours, "f", lock=True) == row
        assert theirs.execute(select(flows.c.name).with_for_update(skip_locked=True)).all() == []
        assert find_flow(theirs, "f") == row  # readers are not blocked


def test_a_flow_is_found_after_waiting_for_its_change(postgres_database: Database) -> None:
    """A lock that joined the definition would not find the flow, because the change gave it another definition."""
    with postgres_database.write() as connection:
        first = keep_flow(connection, "f")
    second = replace(first, definition=AWKWARD, definition_id=definition_id_of(first.flow_id, AWKWARD))
    with ThreadPoolExecutor(1) as threads:
        with postgres_database.write() as ours:
            find_flow(ours, "f", lock=True)
            waiting = threads.submit(find_locked, postgres_database, "f")
            await_lock_wait(postgres_database)
            assert update_flow(ours, second)
        assert waiting.result() == second


def test_two_nodes_store_one_definition(database_url: str) -> None:
    databases = [Database(database_url), Database(database_url)]
    row, start = flow_row("f"), threading.Barrier(2)

    def put(database: Database) -> None:
        start.wait()
        with database.write() as connection:
            put_definition(connection, row)

    with ThreadPoolExecutor(2) as threads:
        for done in [threads.submit(put, database) for database in databases]:
            done.result()
    with databases[0].read() as connection:
        assert load_definition(connection, row.definition_id) == row.definition
    for each in databases:
        each.close()


def find_locked(database: Database, name: str) -> FlowRow | None:
    with database.write() as connection:
        return find_flow(connection, name, lock=True)


def await_lock_wait(database: Database) -> None:
    """Return once a transaction waits for a lock that another holds."""
    waiting = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
    while not database.run_read(lambda connection: connection.execute(waiting).scalar_one()):
        pass


def test_equal_texts_of_different_flows_are_different_definitions() -> None:
    assert definition_id_of("a", "x") == definition_id_of("a", "x")
    assert len({definition_id_of("a", "x"), definition_id_of("b", "x"), definition_id_of("a", "y")}) == 3


@pytest.mark.parametrize("size", [1, 3, len(ORDER)])
def test_pages_follow_code_points(database: Database, size: int) -> None:
    with database.write() as connection:
        for name in reversed(ORDER):
            keep_flow(connection, name)
        delete_flow(connection, keep_flow(connection, "gone").flow_id, 1)
    seen: list[str] = []
    following: str | None = ""
    with database.read() as connection:
        while following is not None:
            rows, following = list_flows(connection, from_name=following, limit=size, bytes_max=9_999)
            assert len(rows) == size or following is None
            seen += [row.name for row in rows]
    assert seen == ORDER == sorted(ORDER)


@pytest.mark.parametrize(("documents", "expected"), [(True, [3, 3, 1]), (False, [7])])
def test_a_page_is_limited_by_bytes(
    database: Database, documents: bool, expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Little more than the page is read. Definitions are not read unless they are shown."""
    read: list[str] = []

    def bytes_read(row: Any) -> int:
        read.append(row.definition)
        return bytes_of(row)

    monkeypatch.setattr("flowserver.store.sql.bounded_pages.bytes_of", bytes_read)
    with database.write() as connection:
        for number in range(7):
            insert_flow(connection, flow_row(f"f{number}", definition=f"{number}{'é' * 15_000}"))
    sizes: list[int] = []
    following: str | None = ""
    with database.read() as connection:
        while following is not None:
            rows, following = list_flows(
                connection, from_name=following, limit=99, bytes_max=100_000, documents=documents
            )
            sizes.append(len(rows))
    assert sizes == expected
    assert len(read) == sum(expected) + len(expected) - 1
    assert {text[1:2] for text in read} == ({"é"} if documents else {""})


def test_several_flows_are_found_at_once(database: Database) -> None:
    with database.write() as connection:
        rows = {name: keep_flow(connection, name) for name in ("a", "b", "c")}
        delete_flow(connection, rows["c"].flow_id, 1)
    with database.read() as connection:
        assert find_flows(connection, {"a", "b", "c", "d"}) == {"a": rows["a"], "b": rows["b"]}
        assert find_flows(connection, []) == {}


def test_names_are_ordered_alike_in_every_locale(postgres_database: Database) -> None:
    """This PostgreSQL has only one locale; its columns must not depend on it."""
    query = text(
        "SELECT table_name || '.' || column_name FROM information_schema.columns"
        " WHERE table_schema = 'public' AND collation_name = 'C'"
    )
    with postgres_database.read() as connection:
        fixed = set(connection.execute(query).scalars())
    columns = [(table.name, column) for table in metadata.tables.values() for column in table.columns]
    assert fixed == {f"{table}.{column.name}" for table, column in columns if column.type is Name}
    assert {"flows.name", "executions.name", "functions.service", "functions.function", "queues.name"} <= fixed
