"""Due work is found by the rows alone, through indexes that hold only the rows concerned."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from sqlalchemy import Connection, text, update
from sqlalchemy.exc import OperationalError

from flowserver.machine.state import Status, WaitKind
from flowserver.store.cluster.nodes import register_node
from flowserver.store.executions.due import (
    DueCallback,
    DueTimer,
    ScopeRef,
    due_callbacks,
    due_deadlines,
    due_timers,
    leased_among,
    next_due,
    orphaned_tasks,
    ready_executions,
    running_of_deleted_flows,
    tasks_of_node,
    waits_for_call,
)
from flowserver.store.executions.lookups import count_running
from flowserver.store.executions.saving import clear_callbacks, park_execution, release_tasks
from flowserver.store.flows import count_flows, delete_flow, find_flow, list_flows
from flowserver.store.schema.tables import scopes
from flowserver.store.sql.database import Database
from tests.store.plans import plan_of
from tests.store.rows import end, keep_flow, new_execution, save_new, scope


def timer(scope_id: int, wake_at: int, wait: WaitKind = WaitKind.TIMER) -> Any:
    return scope(scope_id, wait, wake_at=wake_at, wait_id=scope_id * 10)


def refs(found: Sequence[ScopeRef | DueTimer]) -> list[tuple[str, int, int]]:
    return [(ref.execution_id, ref.scope_id, ref.wait_id) for ref in found]


@pytest.fixture
def waiting(database: Database) -> Database:
    """Executions that wait in every way; `parked` waits in all of them and must not be found."""
    with database.write() as connection:
        save_new(connection, new_execution("timers", deadline_at=500), timer(1, 300), timer(2, 100), scope(3))
        save_new(
            connection,
            new_execution("deadlines", deadline_at=150),
            timer(1, 200, WaitKind.TASK),
            timer(2, 250, WaitKind.TOKEN),
            timer(3, 260, WaitKind.CHILD),
        )
        save_new(connection, new_execution("ready"), scope(1, WaitKind.READY), scope(2, WaitKind.READY))
        save_new(connection, new_execution("elsewhere"), scope(1, WaitKind.TASK, wait_id=7), node_id="node-2")
        save_new(connection, end(new_execution("ended", deadline_at=1), Status.SUCCEEDED))
        save_new(
            connection,
            new_execution("parked", deadline_at=1),
            timer(1, 1),
            scope(2, WaitKind.READY),
            scope(3, WaitKind.TASK),
            node_id="node-3",
        )
        park_execution(connection, "parked", "a bug")
    return database


def test_due_timers(waiting: Database) -> None:
    with waiting.read() as connection:
        assert due_timers(connection, 99, 9) == []
        assert refs(due_timers(connection, 250, 9)) == [
            ("timers", 2, 20),
            ("deadlines", 1, 10),
            ("deadlines", 2, 20),
        ]
        assert refs(due_timers(connection, 250, 1)) == [("timers", 2, 20)]


def test_due_deadlines(waiting: Database) -> None:
    def due(until_ms: int, limit: int) -> list[tuple[str, int]]:
        with waiting.read() as connection:
            return [(each.execution_id, each.deadline_at) for each in due_deadlines(connection, until_ms, limit)]

    assert due(0, 9) == []
    assert due(149, 9) == [("parked", 1)]  # it is not resumed, but it must end
    assert due(500, 9) == [("parked", 1), ("deadlines", 150), ("timers", 500)]
    assert due(500, 2) == [("parked", 1), ("deadlines", 150)]


@pytest.mark.parametrize(
    ("wake_at", "deadline_at", "due"), [(None, 70, 70), (60, 70, 60), (80, 70, 70)], ids=["deadline", "timer", "both"]
)
def test_the_next_instant(database: Database, wake_at: int | None, deadline_at: int, due: int) -> None:
    with database.write() as connection:
        assert next_due(connection, 0) is None
        save_new(connection, new_execution("later", deadline_at=900), timer(1, 901))
        scopes = [] if wake_at is None else [timer(1, wake_at)]
        save_new(connection, new_execution("first", deadline_at=deadline_at), *scopes)
        assert next_due(connection, 0) == due
        park_execution(connection, "first", "a bug")
        assert next_due(connection, 0) == 70
        assert next_due(connection, 70) == 900


def test_ready_executions(waiting: Database) -> None:
    with waiting.read() as connection:
        assert ready_executions(connection, 9) == ["ready"]
        assert ready_executions(connection, 0) == []


def test_calls_by_node(waiting: Database) -> None:
    with waiting.write() as connection:
        assert refs(tasks_of_node(connection, "node-1", 9)[0]) == [("deadlines", 1, 10)]
        assert refs(tasks_of_node(connection, "node-2", 9)[0]) == [("elsewhere", 1, 7)]
        assert len(orphaned_tasks(connection, 9)) == 2
        assert len(orphaned_tasks(connection, 1)) == 1
        register_node(connection, "node-1", "session", 0)
        assert refs(orphaned_tasks(connection, 9)) == [("elsewhere", 1, 7)]
        release_tasks(connection, [("deadlines", 1, 10), ("elsewhere", 1, 7), ("gone", 1, 1)], "node-1")
        assert sorted(refs(orphaned_tasks(connection, 9))) == [("deadlines", 1, 10), ("elsewhere", 1, 7)]
        # node-1 does not hold its lease
        assert refs(tasks_of_node(connection, "node-2", 9)[0]) == [("elsewhere", 1, 7)]


def test_calls_of_a_node_in_pages(database: Database) -> None:
    with database.write() as connection:
        for name in ("a", "b"):
            waits = [scope(number, WaitKind.TASK) for number in (1, 2, 10)]
            save_new(connection, new_execution(name), *waits, node_id="node-1")
        save_new(connection, new_execution("c"), scope(1, WaitKind.TASK), node_id="node-2")
        found, after = tasks_of_node(connection, "node-1", 4)
        assert [(ref.execution_id, ref.scope_id) for ref in found] == [("a", 1), ("a", 2), ("a", 10), ("b", 1)]
        assert after == ("b", 1)
        found, after = tasks_of_node(connection, "node-1", 4, after)
        assert [(ref.execution_id, ref.scope_id) for ref in found] == [("b", 2), ("b", 10)]
        assert after is None


def test_whether_calls_are_still_leased_to_a_node(waiting: Database) -> None:
    asked = [("deadlines", 1, 10), ("deadlines", 1, 11), ("elsewhere", 1, 7), ("ended", 1, 1), ("nowhere", 1, 1)]
    with waiting.read() as connection:
        assert leased_among(connection, "node-1", asked) == {("deadlines", 1, 10)}
        assert leased_among(connection, "node-1", []) == set()


def test_due_callbacks(database: Database) -> None:
    with database.write() as connection:
        for name, status in (("ok", Status.SUCCEEDED), ("bad", Status.FAILED)):
            stored = new_execution(name, callback_token=f"token-{name}")
            save_new(connection, end(stored, status, output={"a": 1} if name == "ok" else None, error="E", cause="C"))
        save_new(connection, new_execution("running", callback_token="token"))
        save_new(connection, end(new_execution("silent"), Status.STOPPED))
    with database.write() as connection:
        found = {each.execution_id: each for each in due_callbacks(connection, 9)}
        assert found == {
            "ok": DueCallback("ok", "token-ok", Status.SUCCEEDED, '{"a":1}', "E", "C"),
            "bad": DueCallback("bad", "token-bad", Status.FAILED, None, "E", "C"),
        }
        assert len(due_callbacks(connection, 1)) == 1
        clear_callbacks(connection, [("ok", None), ("unknown", None)])
        clear_callbacks(connection, [])
        assert [each.execution_id for each in due_callbacks(connection, 9)] == ["bad"]


def test_running_executions_of_deleted_flows(database: Database) -> None:
    with database.write() as connection:
        for name in ("gone", "there"):
            keep_flow(connection, name)
            save_new(connection, new_execution(f"{name}-running", f"flow-{name}"))
            save_new(connection, end(new_execution(f"{name}-ended", f"flow-{name}"), Status.FAILED))
        save_new(connection, new_execution("parked", "flow-gone"))
        park_execution(connection, "parked", "a bug")
        assert running_of_deleted_flows(connection, 9) == []
        delete_flow(connection, "flow-gone", 5)
        assert sorted(running_of_deleted_flows(connection, 9)) == ["gone-running", "parked"]
        assert running_of_deleted_flows(connection, 0) == []


QUERIES: dict[str, tuple[Callable[[Connection], Any], set[str]]] = {
    "due_timers": (lambda c: due_timers(c, 1, 9), {"ix_scopes_wake_at"}),
    "due_deadlines": (lambda c: due_deadlines(c, 1, 9), {"ix_executions_deadline_at"}),
    "next_due": (lambda c: next_due(c, 0), {"ix_scopes_wake_at", "ix_executions_deadline_at"}),
    "ready_executions": (lambda c: ready_executions(c, 9), {"ix_scopes_ready"}),
    "tasks_of_node": (lambda c: tasks_of_node(c, "n", 9), {"ix_scopes_node_id"}),
    "leased_among": (lambda c: leased_among(c, "n", [("e", 1, 1)]), {"ix_scopes_node_id"}),
    "orphaned_tasks": (lambda c: orphaned_tasks(c, 9), {"ix_scopes_node_id"}),
    "due_callbacks": (lambda c: due_callbacks(c, 9), {"ix_executions_callback_due"}),
    "running_of_deleted_flows": (
        lambda c: running_of_deleted_flows(c, 9),
        {"ix_executions_flow_id_status", "ix_flows_deleted"},
    ),
    "count_running": (count_running, {"ix_executions_deadline_at"}),
    "find_flow": (lambda c: find_flow(c, "f"), {"uq_flows_live_name"}),
    "list_flows": (lambda c: list_flows(c, from_name="f", limit=9, bytes_max=9_999), {"uq_flows_live_name"}),
    "list_flows_by_prefix": (
        lambda c: list_flows(c, from_name="", limit=9, bytes_max=9_999, name_prefix="f"),
        {"uq_flows_live_name"},
    ),
    "count_flows": (count_flows, {"uq_flows_live_name"}),
}


@pytest.mark.parametrize("name", QUERIES)
def test_queries_use_their_partial_index(sqlite_database: Database, name: str) -> None:
    query, indexes = QUERIES[name]
    with sqlite_database.read() as connection:
        plan = plan_of(connection, query)
    assert {index for index in indexes if any(f" {index}" in line for line in plan)} == indexes
    sorts = [line for line in plan if "TEMP B-TREE" in line]
    full_scans = [line for line in plan if line.startswith("SCAN ") and "USING" not in line and "json_each" not in line]
    assert (sorts, full_scans) == ([], [])


@pytest.mark.parametrize(
    ("execution_id", "scope_id", "wait_id", "waits"),
    [
        ("elsewhere", 1, 7, True),
        ("elsewhere", 1, 8, False),
        ("elsewhere", 2, 7, False),
        ("timers", 1, 10, False),
        ("deadlines", 1, 10, True),
        ("deadlines", 2, 20, False),
        ("ended", 1, 1, False),
    ],
)
def test_whether_an_attempt_waits_for_its_call(
    waiting: Database, execution_id: str, scope_id: int, wait_id: int, waits: bool
) -> None:
    with waiting.write() as connection:
        assert waits_for_call(connection, execution_id, scope_id, wait_id) == waits


def test_an_attempt_is_locked_during_its_submission(postgres_database: Database) -> None:
    """A turn that gives the attempt up has to wait for the submission, and so finds the invocation."""
    with postgres_database.write() as connection:
        save_new(connection, new_execution("e"), scope(1, WaitKind.TASK, wait_id=7))
    with postgres_database.write() as submitting:
        assert waits_for_call(submitting, "e", 1, 7)
        with pytest.raises(OperationalError, match="lock timeout"), postgres_database.write() as turn:
            turn.execute(text("SET LOCAL lock_timeout = '50ms'"))
            turn.execute(update(scopes).values(wait_id=8))
    with postgres_database.write() as turn:
        turn.execute(update(scopes).values(wait_id=8))
        assert not waits_for_call(turn, "e", 1, 7)
