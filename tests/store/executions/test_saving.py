"""Saving and loading executions: loading returns what was saved, and an older copy never overwrites a newer one."""

from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from sqlalchemy import insert, select, text, update
from sqlalchemy.exc import IntegrityError

from flowserver.base.json_values import dump_json
from flowserver.machine.commands import StopInvocation
from flowserver.machine.invocations.lifecycle import StopAsked
from flowserver.machine.state import Scope, Status, WaitKind
from flowserver.store.executions.history import list_events
from flowserver.store.executions.loading import load_executions
from flowserver.store.executions.saving import Changes, park_execution, save_changes
from flowserver.store.executions.saving_headers import VersionConflict
from flowserver.store.executions.shown_executions import find_execution
from flowserver.store.executions.stored_execution import StoredExecution
from flowserver.store.invocations.rows import insert_invocations
from flowserver.store.invocations.stop_marks import unwanted_invocations
from flowserver.store.schema.tables import execution_documents, executions, scopes
from flowserver.store.sql.database import Database
from tests.store.rows import NODE, end, event, invocation_row, keep_flow, new_execution, save_new, scope
from tests.store.strategies import counters, headers, trees

FIXED = ("parent_id", "list_id", "item")


def load(database: Database, execution_id: str) -> StoredExecution:
    with database.write() as connection:
        found, broken = load_executions(connection, [execution_id])
    assert broken == {}
    return found[execution_id]


def save(database: Database, *batch: Changes, node_id: str = NODE) -> None:
    with database.write() as connection:
        save_changes(connection, batch, node_id)


@given(header=headers(), first=trees(), second=trees(), later=counters())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_loading_returns_what_was_saved(
    database: Database, header: dict[str, Any], first: dict[int, Scope], second: dict[int, Scope], later: dict[str, int]
) -> None:
    stored = new_execution(str(uuid4()), **header)
    stored.input_text = dump_json(stored.execution.input)
    stored.execution.scopes = first
    save(database, Changes(stored, touched=set(first)))
    loaded = load(database, stored.execution.execution_id)
    assert loaded == replace(stored, version=1)
    for scope_id in first.keys() & second.keys():
        second[scope_id] = replace(second[scope_id], **{name: getattr(first[scope_id], name) for name in FIXED})
    for name, value in later.items():
        setattr(loaded.execution, name, value)
    loaded.execution.scopes = second
    save(database, Changes(loaded, touched=set(second), removed=set(first) - set(second)))
    assert load(database, stored.execution.execution_id) == replace(loaded, version=2)


def test_many_executions_are_saved_and_loaded_in_one_batch(database: Database) -> None:
    batch = [new_execution(f"e-{number:04}") for number in range(600)]
    for stored in batch:
        stored.execution.scopes = {1: scope(1), 2: scope(2, WaitKind.READY, parent_id=1)}
    save(database, *(Changes(stored, [event(1)], touched={1, 2}) for stored in batch))
    ids = [stored.execution.execution_id for stored in batch]
    with database.write() as connection:
        found, broken = load_executions(connection, [*ids, "unknown"])
        assert (sorted(found), broken) == (ids, {})
        for stored in found.values():
            stored.execution.scopes.pop(2)
        save_changes(connection, [Changes(each, [event(2)], removed={2}) for each in found.values()], NODE)
    with database.write() as connection:
        found, _ = load_executions(connection, ids)
    assert {(each.version, *each.execution.scopes) for each in found.values()} == {(2, 1)}


def test_an_older_copy_is_refused(database: Database) -> None:
    with database.write() as connection:
        save_new(connection, new_execution("e"), scope(1))
    ours, theirs = load(database, "e"), load(database, "e")
    theirs.execution.next_event_id = 7
    save(database, Changes(theirs))
    with pytest.raises(VersionConflict):
        save(database, Changes(ours, [event(1)]))
    loaded = load(database, "e")
    assert (loaded.version, loaded.execution.next_event_id) == (2, 7)
    with database.read() as connection:
        assert list_events(connection, "e", from_event_id=1, limit=9) == []


@pytest.mark.parametrize("older", [0, 1, 2])
def test_one_older_copy_among_many_is_detected(database: Database, older: int) -> None:
    """The drivers' row counts over many rows must add up, or the version check is incomplete."""
    with database.write() as connection:
        for name in "abc":
            save_new(connection, new_execution(name))
    copies = [load(database, name) for name in "abc"]
    save(database, Changes(load(database, "abc"[older])))
    with pytest.raises(VersionConflict):
        save(database, *(Changes(copy, [event(1)]) for copy in copies))
    assert [load(database, name).version for name in "abc"] == [2 if number == older else 1 for number in range(3)]


def test_a_deleted_execution_is_a_conflict(database: Database) -> None:
    stored = new_execution("e")
    stored.version = 1
    with pytest.raises(VersionConflict):
        save(database, Changes(stored))


def test_a_taken_name_is_an_integrity_error(database: Database) -> None:
    with database.write() as connection:
        save_new(connection, new_execution("e", name="same"))
    with pytest.raises(IntegrityError):
        save(database, Changes(new_execution("e2", name="same")))
    with database.write() as connection:
        save_new(connection, new_execution("e3", "another-flow", name="same"))


def test_calls_are_leased_while_they_are_made(database: Database) -> None:
    with database.write() as connection:
        stored = save_new(connection, new_execution("e"), scope(1, WaitKind.TASK), scope(2, WaitKind.TOKEN))
        leases = select(scopes.c.scope_id, scopes.c.node_id).order_by(scopes.c.scope_id)
        assert [tuple(row) for row in connection.execute(leases)] == [(1, NODE), (2, None)]
    loaded = load(database, stored.execution.execution_id)
    save(database, Changes(loaded, touched={1}), node_id="node-2")
    with database.read() as connection:
        assert connection.execute(leases).first() == (1, "node-2")


@pytest.mark.parametrize(
    ("wait", "wake_at", "node_id"),
    [("sleeping", None, None), ("timer", None, None), ("task", None, None), ("ready", None, "n")],
)
def test_invalid_rows_are_refused(database: Database, wait: str, wake_at: int | None, node_id: str | None) -> None:
    with database.write() as connection:
        save_new(connection, new_execution("e"), scope(1))
    change = update(scopes).values(wait=wait, wake_at=wake_at, node_id=node_id)
    with pytest.raises(IntegrityError), database.write() as connection:
        connection.execute(change)


@pytest.mark.parametrize(("status", "stopped_at"), [("Running", 5), ("Failed", None), ("Odd", 5)])
def test_invalid_headers_are_refused(database: Database, status: str, stopped_at: int | None) -> None:
    with database.write() as connection:
        save_new(connection, new_execution("e"))
    with pytest.raises(IntegrityError), database.write() as connection:
        connection.execute(update(executions).values(status=status, stopped_at=stopped_at))


def test_events_keep_their_order_and_text(database: Database) -> None:
    written = [event(2, detail='{"a":"中\\u0000"}'), event(1)]
    with database.write() as connection:
        save_changes(connection, [Changes(new_execution("e"), written), Changes(new_execution("e2"), [event(1)])], NODE)
    with database.read() as connection:
        assert list_events(connection, "e", from_event_id=1, limit=5) == written[::-1]
        assert list_events(connection, "e", from_event_id=2, limit=5) == [written[0]]
        assert list_events(connection, "e", from_event_id=1, limit=1) == [written[1]]
        assert list_events(connection, "e", from_event_id=3, limit=5) == []


def test_an_event_id_is_unique(database: Database) -> None:
    save(database, Changes(new_execution("e"), [event(1)]))
    with pytest.raises(IntegrityError):
        save(database, Changes(load(database, "e"), [event(1)]))


@pytest.mark.parametrize("at_once", [True, False])
def test_results_of_an_end_are_kept(database: Database, at_once: bool) -> None:
    with database.write() as connection:
        keep_flow(connection, "f")
    stored = new_execution("e")
    if not at_once:
        save(database, Changes(stored))
        stored = load(database, "e")
    end(stored, Status.FAILED, error="E", cause="because of 中", output={"n": 10**30})
    save(database, Changes(stored))
    with database.read() as connection:
        row = find_execution(connection, "f", "e")
    assert row is not None
    assert (row.status, row.error, row.cause, row.output) == (
        Status.FAILED,
        "E",
        "because of 中",
        '{"n":1000000000000000000000000000000}',
    )
    assert row.stopped_at == 1_005


def test_a_nul_in_an_error_does_not_prevent_an_execution_from_ending(database: Database) -> None:
    """PostgreSQL's texts cannot hold NUL, and a function may choose any error name."""
    with database.write() as connection:
        keep_flow(connection, "f")
    save(database, Changes(new_execution("e")))
    save(database, Changes(end(load(database, "e"), Status.FAILED, error="a\0b", cause="\0")))
    with database.read() as connection:
        row = find_execution(connection, "f", "e")
    assert row is not None
    assert (row.error, row.cause) == ("a\ufffdb", "\ufffd")


def test_requests_to_stop_running_invocations_are_saved_with_the_turn(database: Database) -> None:
    named = [invocation_row(key, execution_id="named") for key in ("wanted", "unwanted")]
    whole = [
        invocation_row("one", execution_id="whole"),
        invocation_row("ended", NODE, StopAsked(), execution_id="whole"),
    ]
    with database.write() as connection:
        insert_invocations(connection, [*named, *whole, invocation_row("stranger", execution_id="other")])
    by_name = Changes(new_execution("named"), [event(1)], [StopInvocation("unwanted"), StopInvocation("unknown")])
    of_all = Changes(new_execution("whole"), [event(1)], [StopInvocation()])
    save(database, by_name, of_all)
    assert (by_name.unwanted, of_all.unwanted) == (["unwanted"], ["one"])
    with database.read() as connection:
        assert sorted(unwanted_invocations(connection, 10)) == ["one", "unwanted"]


def test_parking_keeps_the_state(database: Database) -> None:
    with database.write() as connection:
        save_new(connection, new_execution("e"), scope(1, WaitKind.READY))
        park_execution(connection, "e", "a bug")
    loaded = load(database, "e")
    assert (loaded.parked_error, loaded.version, list(loaded.execution.scopes)) == ("a bug", 2, [1])


@pytest.mark.parametrize(
    "damage",
    [
        update(scopes).values(local="{"),
        update(scopes).values(retries="[]"),
        update(scopes).values(step_input="nonsense"),
        update(execution_documents).values(input="]"),
    ],
)
def test_damaged_rows_are_distinguished(database: Database, damage: Any) -> None:
    with database.write() as connection:
        save_new(connection, new_execution("bad"), scope(1), scope(2))
        connection.execute(damage)
        save_new(connection, new_execution("good"), scope(1))
    with database.write() as connection:
        found, broken = load_executions(connection, ["bad", "good"])
    assert sorted(found) == ["bad", "good"]
    assert (found["bad"].execution.scopes, len(found["good"].execution.scopes)) == ({}, 1)
    assert list(broken) == ["bad"]
    assert "cannot be read" in broken["bad"]


def test_an_unknown_wait_kind_is_damage(database: Database) -> None:
    """A newer version may know more kinds."""
    with database.write() as connection:
        save_new(connection, new_execution("bad"), scope(1))
        if database.is_sqlite:
            connection.execute(text("PRAGMA ignore_check_constraints = ON"))
        else:
            connection.execute(text("ALTER TABLE scopes DROP CONSTRAINT ck_scopes_wait"))
        connection.execute(update(scopes).values(wait="sleeping"))
        assert list(load_executions(connection, ["bad"])[1]) == ["bad"]
        connection.rollback()


def test_loading_locks_the_rows(postgres_database: Database) -> None:
    with postgres_database.write() as connection:
        save_new(connection, new_execution("e"))
    with postgres_database.write() as ours, postgres_database.write() as theirs:
        load_executions(ours, ["e"])
        free = select(executions.c.execution_id).with_for_update(skip_locked=True)
        assert theirs.execute(free).all() == []
        # others may still insert a document, because only the header is locked
        theirs.execute(insert(execution_documents).values(execution_id="other", input=""))
