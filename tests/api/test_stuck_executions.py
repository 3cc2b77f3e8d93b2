"""Stuck executions: violations of the invariant, and overdue work; never executions that only wait."""

from collections.abc import Callable

import pytest
from sqlalchemy import update

from flowserver.machine.state import Status, WaitKind
from flowserver.operations.stuck_executions import OVERDUE_MS, Overdue
from flowserver.store.cluster.nodes import register_node
from flowserver.store.executions.saving import park_execution
from flowserver.store.schema.tables import executions
from flowserver.store.sql.database import Database
from tests.engine.nodes import TOKENS
from tests.store.rows import NODE, end, scope
from tests.store.spoiling import WAITING, keep

NOW = 50_000
LATER = 1_000_000
Look = Callable[[int], set[str]]


@pytest.fixture
def stuck(database: Database) -> Look:
    """The executions that look stuck at an instant."""
    overdue = Overdue(TOKENS)
    with database.write() as connection:
        register_node(connection, NODE, "session", 0)

    def look(now_ms: int) -> set[str]:
        return database.run_read(lambda connection: overdue.stuck_executions(connection, now_ms))

    return look


def test_a_wait_that_ended_long_ago(database: Database, stuck: Look) -> None:
    with database.write() as connection:
        for name, wake_at in (("late", NOW - OVERDUE_MS), ("due", NOW - OVERDUE_MS + 1), ("parked", 1)):
            keep(connection, name, scope(1, WaitKind.TIMER, wake_at=wake_at, **WAITING))
        park_execution(connection, "parked", "a bug")
    assert stuck(NOW) == {"late"}


def test_an_execution_whose_deadline_passed_long_ago(database: Database, stuck: Look) -> None:
    with database.write() as connection:
        for name, deadline_at in (("late", NOW - OVERDUE_MS), ("due", NOW)):
            keep(connection, name, scope(1, WaitKind.TASK, **WAITING), deadline_at=deadline_at)
    assert stuck(NOW) == {"late"}


def test_a_violation_of_the_invariant_is_stuck_at_once(database: Database, stuck: Look) -> None:
    with database.write() as connection:
        keep(connection, "broken", scope(1, WaitKind.JOIN, **WAITING), deadline_at=LATER)
        keep(connection, "fine", scope(1, WaitKind.TOKEN, **WAITING), deadline_at=LATER)
    assert stuck(0) == {"broken"}


def test_a_call_without_a_node_and_a_scope_that_does_not_continue(database: Database, stuck: Look) -> None:
    with database.write() as connection:
        keep(connection, "orphan", scope(1, WaitKind.TASK, **WAITING), deadline_at=LATER, name="o")
        keep(connection, "ready", scope(1, WaitKind.READY), deadline_at=LATER)
        keep(connection, "loops", scope(1, WaitKind.READY), deadline_at=LATER)
    with database.write() as connection:
        connection.exec_driver_sql("UPDATE scopes SET node_id = 'gone' WHERE execution_id = 'orphan'")
    assert stuck(NOW) == set()
    with database.write() as connection:  # a turn, so it continues
        connection.execute(update(executions).where(executions.c.execution_id == "loops").values(version=2))
    assert stuck(NOW + OVERDUE_MS - 1) == set()
    assert stuck(NOW + OVERDUE_MS) == {"orphan", "ready"}
    assert stuck(NOW + OVERDUE_MS + 1) == {"orphan", "ready"}


def test_a_callback_that_was_not_reported(database: Database, stuck: Look) -> None:
    """A task between two attempts cannot receive a report, nor can one whose execution is parked."""
    receivers = {
        "waits": scope(1, WaitKind.TOKEN, **WAITING),
        "pauses": scope(1, WaitKind.TIMER, wake_at=LATER, **WAITING),
        "parked": scope(1, WaitKind.TOKEN, **WAITING),
    }
    with database.write() as connection:
        for name, waiting in receivers.items():
            keep(connection, name, waiting, deadline_at=LATER)
            token = TOKENS.make(name, 1, 1, None)
            child = keep(connection, f"for-{name}", callback_token=token, status=Status.FAILED, stopped_at=NOW)
            end(child, Status.FAILED)
        park_execution(connection, "parked", "a bug")
    assert stuck(NOW + OVERDUE_MS - 1) == set()
    assert stuck(NOW + OVERDUE_MS) == {"for-waits"}
