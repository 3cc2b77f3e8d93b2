"""Tasks that wait for a report are listed page by page; a page reads a bounded number of scopes."""

from collections.abc import Generator

import pytest
from sqlalchemy import Connection, text

from flowserver.machine.events import Event, EventType
from flowserver.machine.state import Status, WaitKind
from flowserver.store.executions import waiting_tasks
from flowserver.store.executions.waiting_tasks import ScopeKey, list_waiting_tasks
from flowserver.store.sql.database import Database
from tests.store.effort import effort_of
from tests.store.rows import end, keep_flow, new_execution, save_new, scope

START = ScopeKey("", 0)


def keep(database: Database, execution_id: str, *waits: WaitKind, ends: bool = False) -> None:
    with database.write() as connection:
        stored = new_execution(execution_id)
        if ends:
            end(stored, Status.SUCCEEDED)
        save_new(connection, stored, *(scope(number, wait, wake_at=9) for number, wait in enumerate(waits, 1)))


def test_pages_hold_every_waiting_task_once(database: Database) -> None:
    with database.write() as connection:
        keep_flow(connection, "f", "flow-f")
    keep(database, "a", WaitKind.TOKEN, WaitKind.TIMER, WaitKind.TOKEN)
    keep(database, "b", WaitKind.TIMER)
    keep(database, "c", WaitKind.TOKEN)
    with database.read() as connection:
        first = list_waiting_tasks(connection, None, None, START, 2)
        assert [each.key for each in first.tasks] == [("a", 1), ("a", 3)]
        assert first.last is not None
        rest = list_waiting_tasks(connection, None, None, first.last, 2)
        assert ([each.key for each in rest.tasks], rest.last) == ([("c", 1)], None)
        assert list_waiting_tasks(connection, "another", None, START, 2).tasks == []


def test_a_page_of_other_waits_is_short_and_has_a_next_page(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting_tasks, "SCANNED_MAX", 3)
    for name in "abcdef":
        keep(database, name, WaitKind.TIMER)
    keep(database, "g", WaitKind.TOKEN)
    with database.read() as connection:
        pages, after = [], START
        while after is not None:
            page = list_waiting_tasks(connection, None, None, after, 10)
            pages.append([each.key.execution_id for each in page.tasks])
            after = page.last
    assert pages == [[], [], ["g"]]


def test_a_page_costs_the_same_beside_any_number_of_other_waits(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting_tasks, "SCANNED_MAX", 20)

    def effort() -> int:
        with database.read() as connection:
            if connection.dialect.name == "postgresql":  # which reads a table of so few rows whole
                connection.execute(text("SET LOCAL enable_seqscan = off"))
                connection.execute(text("SET LOCAL enable_bitmapscan = off"))
            return effort_of(connection, lambda c: list_waiting_tasks(c, None, None, START, 10))

    for number in range(40):
        keep(database, f"e{number:03}", WaitKind.TIMER)
    few = effort()
    for number in range(40, 400):
        keep(database, f"e{number:03}", WaitKind.TIMER)
    assert effort() <= 2 * few


def test_a_page_reads_few_entries_for_any_number_of_later_ones(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes a search in a history."""
    monkeypatch.setattr(waiting_tasks, "LOOKED_UP_MAX", 3)
    looked_up: list[str] = []

    def scan(_: Connection, execution_id: str, *, from_event_id: int) -> Generator[Event, None, None]:
        looked_up.append(execution_id)
        entered_at = 5_000 if execution_id < "e" else 1_500
        yield Event(from_event_id, 0, EventType.STEP_ENTERED, "ask", entered_at, "{}", ())

    monkeypatch.setattr(waiting_tasks, "scan_history", scan)
    with database.write() as connection:
        keep_flow(connection, "f", "flow-f")
    for name in "abcde":
        keep(database, name, WaitKind.TOKEN, WaitKind.TOKEN)
    pages: list[list[ScopeKey]] = []
    after: ScopeKey | None = START
    with database.read() as connection:
        while after is not None:
            before = len(looked_up)
            page = list_waiting_tasks(connection, None, 2_000, after, 10)
            assert len(looked_up) - before <= 3
            pages.append([each.key for each in page.tasks])
            after = page.last
    assert pages == [[], [], [ScopeKey("e", 1)], [ScopeKey("e", 2)]]
    assert len(looked_up) == 10
