"""Asynchronous invocations in the database: added once, found again, and changed only from the state that was read."""

import pytest
from msgspec.structs import replace
from sqlalchemy import update

from flowserver.machine.invocations.lifecycle import (
    AttemptBegan,
    AttemptFailed,
    AttemptSucceeded,
    CallEnded,
    Dequeued,
    FunctionUnavailable,
    InvocationMessage,
    StopAsked,
    advance_invocation,
)
from flowserver.machine.invocations.states import InvocationSettings, InvocationStatus
from flowserver.store.invocations.rows import (
    InvocationChanged,
    InvocationDamaged,
    InvocationRow,
    find_invocation,
    find_invocations,
    insert_invocations,
    save_invocations,
    stop_unreadable_invocation,
)
from flowserver.store.schema.invocation_tables import invocations
from flowserver.store.sql.database import Database
from tests.store.rows import invocation_row

S = InvocationStatus
BEGUN = (Dequeued(), AttemptBegan())
RETURNED = AttemptSucceeded(b"\x00\xff", 7)
BROKE = AttemptFailed("Key\0Error", "half \ud800", 7)


def keep(database: Database, *rows: InvocationRow) -> list[InvocationRow | None]:
    with database.write() as connection:
        return insert_invocations(connection, rows)


def found(database: Database, key: str) -> InvocationRow:
    return database.run_read(lambda connection: find_invocations(connection, [key]))[key]


def then(row: InvocationRow, *messages: InvocationMessage, node_id: str | None = None) -> InvocationRow:
    state = row.state
    for message in messages:
        state = advance_invocation(state, message, 5)
    return replace(row, state=state, node_id=node_id, callback_due=state.is_over and row.callback_token is not None)


def test_an_added_invocation_is_found(database: Database) -> None:
    settings = InvocationSettings(retries=0, age_seconds=5, on_success="a", on_failure="b")
    row = invocation_row(
        "k",
        settings=settings,
        payload=b"\x00\xffbytes",
        qualifier="prod",
        execution_id="e",
        flow_name="f",
        execution_name="run",
        step_name="step",
        callback_token="token",
    )
    assert keep(database, row) == [row]
    with database.read() as connection:
        assert find_invocations(connection, ["k", "unknown"]) == {"k": row}
        assert find_invocation(connection, "s", "f", "k") == row
        assert find_invocation(connection, "s", "other", "k") is None


def test_a_key_identifies_its_invocation_and_an_id_is_unique(database: Database) -> None:
    first, other = invocation_row("1", invocation_id="task"), invocation_row("2")
    keep(database, first)
    again = replace(first, payload=b"changed")
    taken = invocation_row("3", invocation_id="task")
    elsewhere = invocation_row("4", invocation_id="task", function="g")
    assert keep(database, again, taken, other, elsewhere) == [first, None, other, elsewhere]
    twins = invocation_row("5", invocation_id="twin"), invocation_row("6", invocation_id="twin")
    assert keep(database, *twins) == [twins[0], None]


@pytest.mark.parametrize(
    ("before", "messages"),
    [
        ((), (Dequeued(),)),
        ((), BEGUN),
        ((Dequeued(),), (FunctionUnavailable("FC.FunctionNotFound", "gone"),)),
        (BEGUN, (RETURNED,)),
        (BEGUN, (BROKE,)),
        (BEGUN, (AttemptBegan(),)),
        (BEGUN, (StopAsked(),)),
        ((*BEGUN, StopAsked()), (CallEnded(),)),
        ((), (StopAsked(),)),
    ],
)
def test_every_change_is_read_as_it_was_written(
    database: Database, before: tuple[InvocationMessage, ...], messages: tuple[InvocationMessage, ...]
) -> None:
    row = invocation_row("k", "node-1", *before, callback_token="token")
    rest = invocation_row("rest", "node-1", *before)
    keep(database, row, rest)
    after = then(row, *messages)
    if not after.state.is_over and after.state.wake_at is None:
        after = replace(after, node_id="node-1")
    with database.write() as connection:
        save_invocations(connection, [(row, after)])
    assert found(database, "k") == _stored(after)
    assert found(database, "rest") == rest


def _stored(row: InvocationRow) -> InvocationRow:
    """PostgreSQL's texts hold no NUL, and no text holds half a character."""
    if row.state.error is None or "\0" not in row.state.error:
        return row
    return replace(row, state=replace(row.state, error="Key�Error", cause="half ?"))


def test_an_invocation_changed_by_another_node_is_not_changed(database: Database) -> None:
    rows = [invocation_row(key, "node-1", *BEGUN) for key in ("a", "b")]
    keep(database, *rows)
    stopping = then(rows[0], StopAsked(), node_id="node-1")
    with database.write() as connection:
        save_invocations(connection, [(rows[0], stopping)])
    changes = [(row, then(row, RETURNED)) for row in rows]
    with pytest.raises(InvocationChanged), database.write() as connection:
        save_invocations(connection, changes)
    assert found(database, "a") == stopping
    assert found(database, "b") == rows[1]
    for moved in ({"node_id": "node-2"}, {"attempt": 2}):
        with database.write() as connection:
            connection.execute(update(invocations).where(invocations.c.invocation_key == "b").values(moved))
        with pytest.raises(InvocationChanged), database.write() as connection:
            save_invocations(connection, changes[1:])


@pytest.mark.parametrize(
    "spoilt",
    [{"events": "[[1]]"}, {"events": "x"}, {"settings": '{"retries":"x"}'}, {"settings": "["}],
)
def test_a_damaged_invocation_is_left_out_and_can_be_stopped(database: Database, spoilt: dict[str, str]) -> None:
    keep(database, invocation_row("bad", callback_token="token"), invocation_row("good"))
    with database.write() as connection:
        connection.execute(update(invocations).where(invocations.c.invocation_key == "bad").values(spoilt))
    with database.write() as connection:
        assert list(find_invocations(connection, ["bad", "good"])) == ["good"]
        with pytest.raises(InvocationDamaged, match="invocation bad is damaged"):
            find_invocation(connection, "s", "f", "bad")
        for key in ("bad", "unknown"):
            stop_unreadable_invocation(connection, key, 9)
    row = found(database, "bad")
    assert (row.state.status, row.state.error, row.state.ended_at) == (S.STOPPED, "FC.InvocationStopped", 9)
    assert (row.node_id, row.callback_due, row.payload) == (None, True, invocation_row("bad").payload)
    with database.write() as connection:
        stop_unreadable_invocation(connection, "bad", 10, empty_payload=True)
    assert found(database, "bad") == row, "it had ended"
