"""A database with every valid shape of execution, and every way to break a rule."""

from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from flowserver.base.derived_ids import child_execution_id
from flowserver.machine.state import Status, WaitKind
from flowserver.store.executions.saving import park_execution
from flowserver.store.schema.tables import execution_documents, executions, finished_items, flows, scopes
from flowserver.store.sql.database import Database
from tests.store.rows import end, keep_flow, new_execution, save_new, scope

WAITING = {"step_input": {}, "wait_id": 1}


def keep(connection: Connection, execution_id: str, *kept: Any, **header: Any) -> Any:
    """An execution of a flow that exists, with counters above those of all scopes."""
    flow = keep_flow(connection, f"flow-of-{execution_id}")
    counters = {"next_event_id": 100, "next_scope_id": 100, "next_wait_id": 100}
    stored = new_execution(execution_id, flow.flow_id, **counters, **header)
    stored.definition_id = flow.definition_id
    return save_new(connection, stored, *kept)


def keep_one_of_each(database: Database) -> None:
    """One valid execution of every shape."""
    child = child_execution_id("waits-for-child", 1, 1)
    with database.write() as connection:
        keep(connection, "timer", scope(1, WaitKind.TIMER, wake_at=5, **WAITING))
        keep(connection, "task", scope(1, WaitKind.TASK, **WAITING))
        keep(connection, "token", scope(1, WaitKind.TOKEN, wake_at=5, **WAITING))
        keep(connection, "ready", scope(1, WaitKind.READY))
        keep(connection, "waits-for-redrive", scope(1, WaitKind.REDRIVE, wait_id=1), waiting_steps=1)
        keep(connection, "waits-for-child", scope(1, WaitKind.CHILD, **WAITING))
        keep(connection, child, scope(1, WaitKind.READY), callback_token="token")
        fan_out = scope(1, next_item=2, open_items=1, **WAITING)
        keep(connection, "joins", fan_out, scope(3, WaitKind.READY, parent_id=1, item=1))
        connection.execute(insert(finished_items), finished("joins", 1, 0))
        keep(connection, "chooses", scope(1, option=0, **WAITING), scope(2, WaitKind.READY, parent_id=1))
        keep(connection, "parked")
        park_execution(connection, "parked", "a bug")
        stored = keep(connection, "ended", callback_token="token", status=Status.FAILED, stopped_at=9)
        end(stored, Status.FAILED)


def finished(execution_id: str, scope_id: int, item: int) -> dict[str, Any]:
    return {"execution_id": execution_id, "scope_id": scope_id, "item": item, "local": "{}"}


def change(table: Any, execution_id: str, **values: Any) -> Any:
    return update(table).where(table.c.execution_id == execution_id).values(values)


def of_scope(execution_id: str, scope_id: int, **values: Any) -> Any:
    return change(scopes, execution_id, **values).where(scopes.c.scope_id == scope_id)


def another(connection: Connection, execution_id: str, like: str, **values: Any) -> None:
    row = connection.execute(select(scopes).where(scopes.c.execution_id == like)).mappings().first()
    assert row is not None
    connection.execute(insert(scopes), {**row, "execution_id": execution_id, **values})


VIOLATIONS: list[tuple[str, str, int | None, Callable[[Connection], Any]]] = [
    ("no-live-scope", "ready", None, lambda c: c.execute(delete(scopes).where(scopes.c.execution_id == "ready"))),
    ("no-live-scope", "parked", None, lambda c: c.execute(change(executions, "parked", parked_error=None))),
    (
        "documents-missing",
        "ready",
        None,
        lambda c: c.execute(delete(execution_documents).where(execution_documents.c.execution_id == "ready")),
    ),
    ("flow-missing", "task", None, lambda c: c.execute(delete(flows).where(flows.c.name == "flow-of-task"))),
    ("flow-missing", "task", None, lambda c: c.execute(change(executions, "task", definition_id="gone"))),
    ("wait", "ready", 1, lambda c: c.execute(of_scope("ready", 1, wake_at=5))),
    ("wait", "ready", 1, lambda c: c.execute(of_scope("ready", 1, step_input="{}"))),
    ("wait", "token", 1, lambda c: c.execute(of_scope("token", 1, wait_id=0))),
    ("wait", "timer", 1, lambda c: c.execute(of_scope("timer", 1, step_input=None))),
    ("wait", "timer", 1, lambda c: c.execute(of_scope("timer", 1, child_execution_id="x"))),
    ("wait", "waits-for-child", 1, lambda c: c.execute(of_scope("waits-for-child", 1, child_execution_id=None))),
    ("wait", "waits-for-redrive", 1, lambda c: c.execute(of_scope("waits-for-redrive", 1, wait_id=0))),
    ("wait", "waits-for-redrive", 1, lambda c: c.execute(change(executions, "waits-for-redrive", waiting_steps=0))),
    (
        "redrive",
        "waits-for-redrive",
        None,
        lambda c: c.execute(change(executions, "waits-for-redrive", waiting_steps=2)),
    ),
    ("counters", "token", 1, lambda c: c.execute(change(executions, "token", next_wait_id=1))),
    ("counters", "token", 1, lambda c: c.execute(change(executions, "token", next_scope_id=1))),
    ("counters", "token", 1, lambda c: c.execute(change(executions, "token", next_event_id=1))),
    ("parent", "token", 2, lambda c: another(c, "token", "token", scope_id=2)),
    ("parent", "token", 2, lambda c: another(c, "token", "token", scope_id=2, parent_id=1)),
    ("parent", "chooses", 2, lambda c: c.execute(of_scope("chooses", 2, parent_id=7))),
    ("parent", "chooses", 1, lambda c: c.execute(of_scope("chooses", 1, parent_id=2))),
    ("wait", "joins", 3, lambda c: c.execute(of_scope("joins", 3, wait="done"))),
    ("join", "joins", 1, lambda c: c.execute(delete(scopes).where(scopes.c.scope_id == 3))),
    ("join", "joins", 1, lambda c: c.execute(delete(finished_items))),
    ("join", "joins", 1, lambda c: c.execute(insert(finished_items), finished("joins", 1, 1))),
    ("join", "joins", 1, lambda c: c.execute(change(finished_items, "joins", item=2))),
    ("join", "chooses", 1, lambda c: c.execute(insert(finished_items), finished("chooses", 1, 0))),
    ("finished", "joins", 3, lambda c: c.execute(insert(finished_items), finished("joins", 3, 0))),
    ("finished", "joins", 7, lambda c: c.execute(change(finished_items, "joins", scope_id=7))),
    ("orphan", "ended", 1, lambda c: c.execute(insert(finished_items), finished("ended", 1, 0))),
    ("orphan", "none", 4, lambda c: c.execute(insert(finished_items), finished("none", 4, 0))),
    ("join", "joins", 1, lambda c: c.execute(of_scope("joins", 1, open_items=2))),
    ("join", "joins", 1, lambda c: c.execute(of_scope("joins", 1, next_item=3))),
    ("join", "chooses", 1, lambda c: another(c, "chooses", "ready", scope_id=3, parent_id=1)),
    ("join", "chooses", 1, lambda c: c.execute(of_scope("chooses", 1, option=None))),
    ("child", "waits-for-child", 1, lambda c: c.execute(of_scope("waits-for-child", 1, child_execution_id="none"))),
    (
        "child",
        "waits-for-child",
        1,
        lambda c: c.execute(update(executions).where(executions.c.status == "Running").values(callback_token=None)),
    ),
    ("orphan", "none", 1, lambda c: another(c, "none", "ready")),
    ("orphan", "ended", 1, lambda c: another(c, "ended", "ready")),
    ("callback", "timer", None, lambda c: c.execute(change(executions, "timer", callback_due=True))),
    ("callback", "ended", None, lambda c: c.execute(change(executions, "ended", callback_token=None))),
]
"""The rule, the execution and scope that violates it, and the statement that breaks it."""
