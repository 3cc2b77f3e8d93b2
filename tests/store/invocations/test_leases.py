"""Leases of asynchronous invocations: holders, takeover, due work, and deletion."""

from collections.abc import Sequence

import pytest
from sqlalchemy import select, update

from flowserver.machine.invocations.lifecycle import AttemptBegan, AttemptFailed, AttemptSucceeded, Dequeued, StopAsked
from flowserver.store.cluster.nodes import register_node
from flowserver.store.invocations.leases import (
    invocations_of_node,
    next_pause_end,
    orphaned_invocations,
    release_all_but,
    release_invocations,
    take_over_due,
    take_over_invocations,
)
from flowserver.store.invocations.listing import count_waiting
from flowserver.store.invocations.retention import delete_ended_invocations
from flowserver.store.invocations.rows import (
    InvocationRow,
    find_invocations,
    insert_invocations,
    set_destination_status,
)
from flowserver.store.invocations.stop_marks import (
    mark_unwanted,
    mark_unwanted_of,
    stopping_of_node,
    unwanted_invocations,
)
from flowserver.store.invocations.untold_results import clear_invocation_callbacks, invocations_with_callback_due
from flowserver.store.schema.invocation_tables import invocations
from flowserver.store.sql.database import Database
from tests.store.rows import invocation_row

BEGUN = (Dequeued(), AttemptBegan())
RETURNED = AttemptSucceeded(b"{}", 7)
BROKE = AttemptFailed("KeyError", "why", 7)


@pytest.fixture(autouse=True)
def nodes(database: Database) -> None:
    with database.write() as connection:
        for node_id in ("us", "living"):
            register_node(connection, node_id, "session", 0)


def keep(database: Database, *rows: InvocationRow) -> None:
    with database.write() as connection:
        insert_invocations(connection, rows)


def holder(database: Database, *keys: str) -> list[str | None]:
    found = database.run_read(lambda connection: find_invocations(connection, keys))
    return [found[key].node_id for key in keys]


def keys(rows: Sequence[object]) -> list[str]:
    return [row.invocation_key for row in rows]  # type: ignore[attr-defined]


def test_invocations_of_dead_nodes_are_taken_over(database: Database) -> None:
    keep(
        database,
        invocation_row("gone", "gone"),
        invocation_row("nobody's", ""),
        invocation_row("running", "gone", *BEGUN),
        invocation_row("living", "living"),
        invocation_row("ours", "us"),
        invocation_row("over", "gone", *BEGUN, RETURNED),
        invocation_row("pausing", "gone", *BEGUN, BROKE),
    )
    with database.write() as connection:
        assert orphaned_invocations(connection, 10)
        taken = take_over_invocations(connection, "us", 10)
        assert sorted(keys(taken)) == ["gone", "nobody's", "running"]
        assert {each.invocation_key: each.status for each in taken}["running"] == "Running"
        assert take_over_invocations(connection, "us", 10) == []
        assert orphaned_invocations(connection, 10) == []
    assert holder(database, "gone", "nobody's", "running", "living") == ["us", "us", "us", "living"]


def test_takeover_is_bounded_and_in_order(database: Database) -> None:
    keep(database, *(invocation_row(str(number), "gone") for number in range(4, -1, -1)))
    with database.write() as connection:
        taken = [keys(take_over_invocations(connection, "us", 2)) for _ in range(4)]
    assert taken == [["0", "1"], ["2", "3"], ["4"], []]


def test_two_nodes_do_not_take_over_the_same_invocation(postgres_database: Database) -> None:
    keep(postgres_database, *(invocation_row(str(number), "gone") for number in range(4)))
    with postgres_database.write() as one, postgres_database.write() as two:
        ours = set(keys(take_over_invocations(one, "one", 2)))
        theirs = set(keys(take_over_invocations(two, "two", 10)))
    assert len(ours) == 2
    assert theirs == {"0", "1", "2", "3"} - ours


def test_a_pause_ends_at_its_instant(database: Database) -> None:
    keep(database, invocation_row("soon", "us", *BEGUN, BROKE), invocation_row("waiting", "us"))
    with database.write() as connection:
        assert next_pause_end(connection) == 502
        assert take_over_due(connection, "us", 501, 10) == []
        assert keys(take_over_due(connection, "us", 502, 10)) == ["soon"]
        assert next_pause_end(connection) is None
        assert [each.status for each in invocations_of_node(connection, "us", "", 10)] == ["Retrying", "Enqueued"]


def test_a_nodes_invocations_are_read_in_pages(database: Database) -> None:
    keep(database, *(invocation_row(key, "us") for key in "dbca"), invocation_row("other", "living"))
    with database.read() as connection:
        assert keys(invocations_of_node(connection, "us", "", 3)) == ["a", "b", "c"]
        assert keys(invocations_of_node(connection, "us", "c", 3)) == ["d"]
        assert count_waiting(connection) == 5


def test_releasing_a_lease(database: Database) -> None:
    keep(database, *(invocation_row(key, "us") for key in "abc"), invocation_row("other", "living"))
    with database.write() as connection:
        release_invocations(connection, "us", ["a", "other"])
    assert holder(database, "a", "b", "c", "other") == ["", "us", "us", "living"]
    with database.write() as connection:
        release_all_but(connection, "us", ["b"])
    assert holder(database, "a", "b", "c", "other") == ["", "us", "", "living"]
    with database.write() as connection:
        release_all_but(connection, "us", [])
    assert holder(database, "b", "other") == ["", "living"]


def test_invocations_without_a_waiting_step(database: Database) -> None:
    keep(
        database,
        invocation_row("named", "us", *BEGUN),
        invocation_row("its", "us", execution_id="e"),
        invocation_row("over", "us", *BEGUN, RETURNED, execution_id="e"),
        invocation_row("stopping", "us", *BEGUN, StopAsked()),
        invocation_row("other", "us", execution_id="other"),
    )
    with database.write() as connection:
        mark_unwanted(connection, ["named", "unknown"])
        mark_unwanted_of(connection, ["e"])
        assert sorted(unwanted_invocations(connection, 10)) == ["its", "named"]
        mine = stopping_of_node(connection, "us", ["named", "its", "over", "stopping", "other"])
        assert sorted(mine) == ["its", "named", "stopping"]
        assert stopping_of_node(connection, "living", ["named"]) == []


def test_invocations_whose_waiting_task_has_no_result_yet(database: Database) -> None:
    due = [invocation_row(key, "us", *BEGUN, RETURNED, callback_token="t", callback_due=True) for key in "ab"]
    keep(database, *due, invocation_row("c", "us", *BEGUN, RETURNED))
    with database.write() as connection:
        assert sorted(invocations_with_callback_due(connection, 10)) == ["a", "b"]
        assert len(invocations_with_callback_due(connection, 10, skip=1)) == 1
        clear_invocation_callbacks(connection, ["a"])
        assert invocations_with_callback_due(connection, 10) == ["b"]


def test_the_outcome_of_a_results_delivery(database: Database) -> None:
    keep(database, invocation_row("k", "us", *BEGUN, RETURNED))
    with database.write() as connection:
        set_destination_status(connection, "k", "Succeeded")
        assert find_invocations(connection, ["k"])["k"].destination_status == "Succeeded"


def test_old_invocations_are_deleted_after_their_results_are_delivered(database: Database) -> None:
    ended = (*BEGUN, RETURNED)
    keep(
        database,
        *(invocation_row(key, "us", *ended) for key in "abc"),
        invocation_row("untold", "us", *ended, callback_token="t", callback_due=True),
        invocation_row("running", "us", *BEGUN),
    )
    with database.write() as connection:
        assert delete_ended_invocations(connection, 2, 10, 1_000) == 0
        assert delete_ended_invocations(connection, 3, 2, 1_000) == 2
        assert delete_ended_invocations(connection, 3, 2, 1_000) == 1
        assert delete_ended_invocations(connection, 3, 2, 1_000) == 0
        assert sorted(connection.execute(select(invocations.c.invocation_key)).scalars()) == ["running", "untold"]


def test_a_limited_number_of_bytes_is_deleted_at_once_but_at_least_one_row(database: Database) -> None:
    ended = (*BEGUN, RETURNED)
    sizes = {"a": 10, "b": 20, "c": 500, "d": 10}
    keep(database, *(invocation_row(key, "us", *ended, payload=b"x" * size) for key, size in sizes.items()))
    with database.write() as connection:
        for number, key in enumerate(sizes):
            of_key = update(invocations).where(invocations.c.invocation_key == key)
            connection.execute(of_key.values(ended_at=number, result=b"y" * 10))
        assert [delete_ended_invocations(connection, 9, 10, 100) for _ in range(4)] == [2, 1, 1, 0]


def test_rows_that_another_node_is_deleting_are_left_to_it(postgres_database: Database) -> None:
    keep(postgres_database, *(invocation_row(key, "us", *BEGUN, RETURNED) for key in "ab"))
    with postgres_database.write() as one:
        assert delete_ended_invocations(one, 9, 1, 100) == 1
        with postgres_database.session() as other:
            assert delete_ended_invocations(other, 9, 2, 100) == 1
