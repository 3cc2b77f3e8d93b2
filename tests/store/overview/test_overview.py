"""The overview's reads: right counts, each with a bound, and no more rows visited in larger tables."""

from typing import Any

import pytest
from sqlalchemy import Connection, insert, select, text, update

from flowserver.api.rest.models.overview import AttentionItem
from flowserver.machine.state import Status, WaitKind
from flowserver.store.cluster.nodes import PARKED_HOLDER
from flowserver.store.invocations.rows import insert_invocations
from flowserver.store.overview import attention, counts, throughput
from flowserver.store.overview.attention import Kind, read_attention
from flowserver.store.overview.counts import (
    QUARTER_MS,
    count_flows,
    count_overdue_schedules,
    count_parked,
    count_parked_invocations,
    count_running,
    count_waiting_for_redrive,
    count_waiting_tasks,
    failures_by_quarter,
    late_executions,
)
from flowserver.store.overview.throughput import BUCKETS, read_throughput
from flowserver.store.schedules.rows import row_of
from flowserver.store.schema.schedule_tables import schedules
from flowserver.store.schema.tables import executions, flows
from flowserver.store.sql.bounded_counts import Count
from flowserver.store.sql.database import Database
from tests.store.effort import effort_of
from tests.store.rows import end, invocation_row, keep_flow, new_execution, save_new, scope
from tests.store.schedules.test_due_schedules import keep as keep_schedules
from tests.store.schedules.test_due_schedules import schedule

MINUTE_MS = 60_000
NOW = 100 * 86_400_000 + 40 * MINUTE_MS


def change(connection: Connection, execution_id: str, **values: Any) -> None:
    connection.execute(update(executions).where(executions.c.execution_id == execution_id).values(**values))


def read_all(connection: Connection) -> None:
    """All that an overview reads."""
    for count in (count_flows, count_running, count_parked, count_waiting_for_redrive, count_parked_invocations):
        count(connection)
    count_waiting_tasks(connection)
    count_overdue_schedules(connection, NOW)
    late, _ = late_executions(connection, NOW - 10_000)
    for status in throughput.FAILURES:
        failures_by_quarter(connection, status, NOW - 2 * 86_400_000, NOW)
    read_throughput(connection, NOW)
    read_attention(connection, late, failed_since_ms=NOW - 86_400_000, due_before_ms=NOW - 10_000)


def test_counts_and_what_to_look_at(database: Database) -> None:
    with database.write() as connection:
        keep_flow(connection, "f", "flow-f")
        keep_flow(connection, "gone", "flow-gone")
        connection.execute(update(flows).where(flows.c.flow_id == "flow-gone").values(deleted_at=1))
        runs = {"started_at": NOW - MINUTE_MS, "deadline_at": NOW + MINUTE_MS}
        save_new(connection, new_execution("asks", **runs), scope(1, WaitKind.TOKEN), scope(2, WaitKind.TOKEN))
        save_new(connection, new_execution("late", **runs), scope(1, WaitKind.TIMER, wake_at=NOW - 20_000))
        save_new(connection, new_execution("on-time", **runs), scope(1, WaitKind.TIMER, wake_at=NOW - 5_000))
        save_new(connection, new_execution("overdue", started_at=NOW - 90_000, deadline_at=NOW - 30_000))
        save_new(connection, new_execution("parked", **runs), scope(1, WaitKind.TIMER, wake_at=NOW - 20_000))
        change(connection, "parked", parked_error="no such definition")
        save_new(connection, new_execution("redrive", **runs))
        change(connection, "redrive", waiting_steps=1)
        for number in range(30):
            stored = end(new_execution(f"g{number}", "flow-gone", started_at=NOW - 1), Status.FAILED)
            save_new(connection, stored)
        for number, status in enumerate((Status.FAILED, Status.FAILED, Status.TIMED_OUT, Status.STOPPED)):
            started = {"started_at": NOW - 2 * QUARTER_MS + number * QUARTER_MS // 2}
            stored = end(new_execution(f"e{number}", **started), status, error="Broken", cause="x" * 1_000)
            save_new(connection, stored)
        save_new(connection, end(new_execution("g", "flow-gone", started_at=NOW - 50_000), Status.FAILED))
        insert_invocations(connection, [invocation_row("i", PARKED_HOLDER, parked_error="damaged")])
    keep_schedules(database, schedule("due", NOW - 20_000), schedule("soon", NOW - 5), schedule("off", None))
    with database.read() as connection:
        assert count_flows(connection) == Count(1)
        assert count_running(connection) == Count(6)
        assert count_parked(connection) == count_waiting_for_redrive(connection) == Count(1)
        assert count_parked_invocations(connection) == Count(1)
        assert count_waiting_tasks(connection) == Count(2)
        assert count_overdue_schedules(connection, NOW - 10_000) == Count(1)
        late, has_more = late_executions(connection, NOW - 10_000)
        assert ([each.execution_id for each in late], has_more) == (["overdue", "late"], False)
        failed = failures_by_quarter(connection, Status.FAILED, NOW - 86_400_000, NOW)
        assert failed.since(NOW - 86_400_000) == Count(2)
        assert failed.since(NOW - QUARTER_MS) == Count(1)
        items = read_attention(connection, late, failed_since_ms=NOW - 86_400_000, due_before_ms=NOW - 10_000)
        assert [(each.kind, each.name) for each in items] == [
            (Kind.PARKED, "parked"),
            (Kind.LATE, "overdue"),
            (Kind.LATE, "late"),
            (Kind.OVERDUE_SCHEDULE, "due"),
            (Kind.PARKED_INVOCATION, "i"),
            (Kind.WAITING_FOR_REDRIVE, "redrive"),
            (Kind.FAILED, "e1"),
            (Kind.FAILED, "e0"),
            (Kind.TIMED_OUT, "e2"),
            (Kind.WAITING_TASK, "asks"),
            (Kind.WAITING_TASK, "asks"),
        ]
        assert (items[0].text, items[4].function, items[6].error) == ("no such definition", "s/f", "Broken")
        assert items[6].text == "x" * attention.TEXT_CHARACTERS_MAX
        series = read_throughput(connection, NOW)
        assert (series.bucket_seconds, len(series.started), len(series.failed)) == (1800, BUCKETS, BUCKETS)
        assert (sum(series.started), sum(series.failed)) == (10, 3)
        assert series.complete_from == series.from_ms <= NOW - 86_400_000 + 1_800_000


@pytest.mark.parametrize("junk", ["junk", b"\xff\xfe", -5, 1.5, 9e99])
def test_damaged_values_are_shown_as_far_as_they_can_be_read(sqlite_url: str, junk: Any) -> None:
    database = Database(sqlite_url)
    with database.write() as connection:
        keep_flow(connection, "f", "flow-f")
        runs = {"started_at": NOW - MINUTE_MS, "deadline_at": NOW - MINUTE_MS}
        save_new(connection, new_execution("a", **runs), scope(1, WaitKind.TOKEN))
        insert_invocations(connection, [invocation_row("i", PARKED_HOLDER, parked_error="damaged")])
    keep_schedules(database, schedule("due", NOW - 20_000))
    changes = [("executions", each) for each in ("started_at", "deadline_at", "flow_name", "status")]
    changes += [("invocations", "created_at"), ("scopes", "wake_at"), ("schedules", "wake_at"), ("schedules", "name")]
    for table, column in changes:
        with database.write() as connection:
            connection.exec_driver_sql("PRAGMA ignore_check_constraints = ON")
            undone = connection.begin_nested()
            connection.exec_driver_sql(f"UPDATE {table} SET {column} = ?", (junk,))
            read_all(connection)
            late, _ = late_executions(connection, NOW)
            for item in read_attention(connection, late, failed_since_ms=0, due_before_ms=NOW):
                assert AttentionItem.of(item)
            undone.rollback()
    database.close()


def test_counts_end_at_their_bound_and_say_so(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts, "COUNTED_MAX", 3)
    monkeypatch.setattr(counts, "SCANNED_MAX", 3)
    monkeypatch.setattr(counts, "LATE_READ_MAX", 3)
    monkeypatch.setattr(throughput, "SERIES_ROWS_MAX", 30)
    with database.write() as connection:
        keep_flow(connection, "f", "flow-f")
        for number in range(4):
            save_new(connection, new_execution(f"r{number}", started_at=NOW - 1_000, deadline_at=NOW - 60_000))
            save_new(connection, new_execution(f"t{number}", deadline_at=NOW + 1), scope(1, WaitKind.TOKEN))
        for number in range(40):
            save_new(connection, end(new_execution(f"e{number}", started_at=NOW - 2_000 * number), Status.FAILED))
    with database.read() as connection:
        assert count_running(connection) == Count(3, at_least=True)
        assert count_waiting_tasks(connection).at_least
        late, has_more = late_executions(connection, NOW - 10_000)
        assert (len(late), has_more) == (3, True)
        failed = failures_by_quarter(connection, Status.FAILED, NOW - 86_400_000, NOW)
        assert failed.since(NOW - 86_400_000).at_least
        series = read_throughput(connection, NOW)  # 30 of 44 starts: a minute's parts would lack some
        assert series.bucket_seconds == 1
        assert series.complete_from == series.from_ms
        assert sum(series.started) == 4 + 24


def test_it_visits_no_more_rows_in_larger_tables(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((counts, "COUNTED_MAX"), (counts, "SCANNED_MAX"), (counts, "LATE_READ_MAX")):
        monkeypatch.setattr(module, name, 20)
    monkeypatch.setattr(attention, "PARKED_READ_MAX", 20)
    monkeypatch.setattr(attention, "TASKS_READ_MAX", 5)
    monkeypatch.setattr("flowserver.store.executions.waiting_tasks.SCANNED_MAX", 20)
    monkeypatch.setattr(throughput, "SERIES_ROWS_MAX", 50)
    with database.write() as connection:
        keep_flow(connection, "f", "flow-f")
        save_new(connection, new_execution("t", name="t", deadline_at=NOW), scope(1, WaitKind.TIMER, wake_at=NOW - 1))
        template = connection.execute(select(executions)).one()._asdict()
    efforts = []
    for first, last in ((0, 600), (600, 6_000)):
        with database.write() as connection:
            fill(connection, template, range(first, last))
        with database.read() as connection:
            if connection.dialect.name == "postgresql":  # which reads tables of so few pages whole
                connection.execute(text("SET LOCAL enable_seqscan = off"))
                connection.execute(text("SET LOCAL enable_bitmapscan = off"))
            efforts.append(effort_of(connection, read_all))
    assert efforts[1] <= 1.5 * efforts[0], efforts


def fill(connection: Connection, template: dict[str, Any], numbers: range) -> None:
    """A tenth of the executions are parked, a tenth wait for a redrive, a tenth are late, two tenths failed."""
    states: list[dict[str, Any]] = [
        {"parked_error": "broken"},
        {"waiting_steps": 1},
        {"deadline_at": NOW - 50_000},
        {"status": "Failed"},
        {"status": "TimedOut"},
        *[{"status": "Succeeded"}] * 5,
    ]
    rows = []
    for number in numbers:
        own = template | {"execution_id": f"e{number:05}", "name": f"n{number}", "started_at": NOW - 9_000_000 + number}
        own |= {"waiting_steps": None} | states[number % len(states)]
        if own["status"] != "Running":
            own["stopped_at"] = NOW - 900_000 + number
        rows.append(own)
    connection.execute(insert(executions), rows)
    for number in numbers[:: len(numbers) // 300]:
        waits = scope(2, WaitKind.TOKEN), scope(3, WaitKind.TIMER, wake_at=NOW - 50_000)
        save_new(connection, new_execution(f"s{number:05}", deadline_at=NOW + 1), *waits)
    connection.execute(insert(schedules), [schedule_row(number) for number in numbers])
    connection.execute(text("ANALYZE"))


def schedule_row(number: int) -> dict[str, Any]:
    return row_of(schedule(f"s{number}", NOW - 60_000))
