"""Lists of the executions of all flows: order, pages, filters, and that a page reads a bounded number of rows."""

import random
from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import insert, select, update

from flowserver.machine.state import Status
from flowserver.store.executions import listing_of_all_flows
from flowserver.store.executions.listing_of_all_flows import AllCursor, list_all_executions
from flowserver.store.executions.listing_of_flow import ExecutionFilter
from flowserver.store.schema.tables import executions, flows
from flowserver.store.sql.database import Database
from tests.store.effort import effort_of
from tests.store.rows import end, keep_flow, new_execution, save_new

COUNT = 60


@pytest.fixture
def filled(database: Database) -> Database:
    """Sixty executions of three flows, some of them started in one millisecond, with ids in random order."""
    numbers = random.Random(5)
    with database.write() as connection:
        for flow in ("f", "g", "h"):
            keep_flow(connection, flow, f"flow-{flow}")
        for number in range(COUNT):
            execution_id = f"id-{numbers.getrandbits(32):08x}"
            flow = numbers.choice("fgh")
            stored = new_execution(
                execution_id, f"flow-{flow}", name=f"{'ab'[number % 2]}{number}", started_at=100 + number // 3
            )
            status = numbers.choice([None, Status.SUCCEEDED, Status.SUCCEEDED, Status.FAILED, Status.STOPPED])
            save_new(connection, stored if status is None else end(stored, status, stopped_at=200 + number % 47))
        connection.execute(update(executions).where(executions.c.name == "a12").values(parked_error="why"))
        for number in range(COUNT):
            qualified = {"flow_version": number % 3 + 1, "flow_alias": "prod" if number % 4 else None}
            if number % 5:
                connection.execute(update(executions).where(executions.c.name.like(f"_{number}")).values(qualified))
    return database


def _pages(database: Database, wanted: ExecutionFilter, size: int) -> list[str]:
    found: list[str] = []
    after: AllCursor | None = None
    for _ in range(1_000):
        with database.read() as connection:
            page = list_all_executions(connection, wanted, after=after, limit=size, bytes_max=10**6)
        assert len(page.rows) <= size
        found += [row.execution_id for row in page.rows]
        after = page.following
        if after is None:
            return found
    raise AssertionError("the pages do not end")


def _expected(database: Database, wanted: ExecutionFilter) -> list[str]:
    with database.read() as connection:
        rows: Sequence = connection.execute(select(executions)).all()
    by_end = wanted.is_by_end

    def instant(row: Any) -> int:
        return int(row.stopped_at or 0) if by_end else int(row.started_at)

    return [
        row.execution_id
        for row in sorted(rows, key=lambda row: (-instant(row), row.execution_id))
        if wanted.status in (None, row.status)
        and row.name.startswith(wanted.name_prefix or "")
        and (wanted.started_from or 0) <= row.started_at <= (wanted.started_to or 10**9)
        and (not by_end or (wanted.ended_from or 0) <= instant(row) <= (wanted.ended_to or 10**9))
        and wanted.parked in (None, row.parked_error is not None and row.stopped_at is None)
        and wanted.qualifier in (None, row.flow_alias, str(row.flow_version) if row.flow_version else "LATEST")
    ]


FILTERS = [
    ExecutionFilter(),
    *(ExecutionFilter(status=status) for status in Status),
    ExecutionFilter(name_prefix="a"),
    ExecutionFilter(started_from=105, started_to=110),
    ExecutionFilter(status=Status.FAILED, name_prefix="b", started_from=103),
    ExecutionFilter(parked=True),
    ExecutionFilter(parked=False, status=Status.RUNNING),
    ExecutionFilter(parked=True, name_prefix="a", started_to=118),
    ExecutionFilter(status=Status.RUNNING, started_from=103, started_to=116, qualifier="2"),
    *(ExecutionFilter(qualifier=qualifier) for qualifier in ("LATEST", "2", "prod", "none")),
    ExecutionFilter(qualifier="prod", status=Status.FAILED),
    ExecutionFilter(status=Status.FAILED, ended_from=210),
    ExecutionFilter(status=Status.STOPPED, ended_to=230),
    ExecutionFilter(status=Status.FAILED, ended_from=205, ended_to=240, started_from=103, started_to=116),
]


def test_pages_together_are_the_list(filled: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    for wanted in FILTERS:
        expected = _expected(filled, wanted)
        for scanned, size in ((1, 4), (2, 1), (7, 4), (7, 100), (5_000, 1), (5_000, 4), (5_000, 100)):
            monkeypatch.setattr(listing_of_all_flows, "SCANNED_MAX", scanned)
            monkeypatch.setattr(listing_of_all_flows, "FEW_MAX", scanned)
            assert _pages(filled, wanted, size) == expected, (wanted, scanned, size)


def test_executions_of_deleted_flows_are_left_out(filled: Database) -> None:
    with filled.write() as connection:
        connection.execute(update(flows).where(flows.c.flow_id == "flow-g").values(deleted_at=1))
        gone = set(connection.scalars(select(executions.c.execution_id).where(executions.c.flow_id == "flow-g")))
    assert gone
    assert _pages(filled, ExecutionFilter(), 4) == [
        each for each in _expected(filled, ExecutionFilter()) if each not in gone
    ]


def test_a_page_ends_early_when_its_bytes_are_used_up(filled: Database) -> None:
    with filled.read() as connection:
        first = list_all_executions(connection, ExecutionFilter(), after=None, limit=10, bytes_max=1)
        assert len(first.rows) == 1
        second = list_all_executions(connection, ExecutionFilter(), after=first.following, limit=1, bytes_max=1)
    assert [first.rows[0].execution_id, second.rows[0].execution_id] == _expected(filled, ExecutionFilter())[:2]


def test_a_page_costs_the_same_in_a_table_that_is_ten_times_as_large(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing_of_all_flows, "SCANNED_MAX", 50)
    with database.write() as connection:
        keep_flow(connection, "f", "flow-f")
        save_new(connection, new_execution("t", name="t", started_at=1))
        row = connection.execute(select(executions).where(executions.c.execution_id == "t")).one()._asdict()
    efforts = []
    for first, last in ((0, 500), (500, 5_000)):
        with database.write() as connection:
            connection.execute(
                insert(executions),
                [
                    row
                    | {
                        "execution_id": f"e{number:05}",
                        "name": f"n{number}",
                        "started_at": 2 + number,
                        "status": "Failed" if number % 5 == 0 else "Succeeded",
                        "stopped_at": 200 + 2 * number,
                    }
                    for number in range(first, last)
                ],
            )
            if connection.dialect.name == "postgresql":
                connection.exec_driver_sql("ANALYZE executions")
        efforts.append([_effort_of_a_page(database, wanted) for wanted in FILTERS])
    for wanted, few, many in zip(FILTERS, *efforts, strict=True):
        assert many <= 2 * few + 200, wanted


@pytest.mark.parametrize("wanted", [ExecutionFilter(status=Status.RUNNING), ExecutionFilter(parked=True)])
def test_few_that_run_or_are_parked_are_on_the_first_page_though_all_others_are_newer(
    filled: Database, wanted: ExecutionFilter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing_of_all_flows, "SCANNED_MAX", 5)
    with filled.write() as connection:
        gone = executions.c.name.not_in(("a0", "a2"))
        connection.execute(update(executions).where(gone).values(status="Succeeded", stopped_at=300))
        running = {"status": "Running", "stopped_at": None, "parked_error": "why"}
        connection.execute(update(executions).where(~gone).values(running))
    with filled.read() as connection:
        page = list_all_executions(connection, wanted, after=None, limit=100, bytes_max=10**6)
    assert ({row.name for row in page.rows}, page.following) == ({"a2", "a0"}, None)


def _effort_of_a_page(database: Database, wanted: ExecutionFilter) -> int:
    with database.read() as connection:
        return effort_of(
            connection,
            lambda connection: list_all_executions(connection, wanted, after=None, limit=10, bytes_max=10**6),
        )
