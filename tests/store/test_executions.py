"""Executions as readers see them: finding, listing page by page, filters."""

import pytest
from sqlalchemy import insert

from flowserver.machine.state import Status
from flowserver.store.database import Database
from flowserver.store.executions import (
    ExecutionFilter,
    count_running,
    find_execution,
    find_names,
    list_events_page,
    list_executions,
)
from flowserver.store.tables import events
from tests.store.rows import end, keep_flow, new_execution, save_new

EVERYTHING = ExecutionFilter()


@pytest.fixture
def listed(database: Database) -> Database:
    """Seven executions of flow-f, three of them started in one millisecond, and one of another flow."""
    starts = {"a": 10, "B": 30, "b": 30, "_": 30, "z": 20, "ab": 40, "a_b": 5}
    with database.write() as connection:
        for name, started_at in starts.items():
            stored = new_execution(f"id-{name}", name=name, started_at=started_at)
            save_new(connection, end(stored, Status.FAILED) if name in ("a", "b") else stored)
        save_new(connection, new_execution("other", "flow-g", name="b"))
    return database


def names(database: Database, wanted: ExecutionFilter, from_name: str | None = None, limit: int = 99) -> list[str]:
    with database.read() as connection:
        rows = list_executions(connection, "flow-f", wanted, from_name=from_name, limit=limit)
    return [row.name for row in rows]


ORDER = ["ab", "B", "_", "b", "z", "a", "a_b"]


def test_newest_first_and_equal_starts_by_name(listed: Database) -> None:
    assert names(listed, EVERYTHING) == ORDER


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_pages_meet_without_gap_or_overlap(listed: Database, size: int) -> None:
    seen: list[str] = []
    from_name: str | None = None
    while True:
        page = names(listed, EVERYTHING, from_name, size + 1)
        seen += page[:size]
        if len(page) <= size:
            break
        from_name = page[size]
    assert seen == ORDER


@pytest.mark.parametrize("unknown", ["nobody", "", "other"])
def test_a_page_that_starts_nowhere_is_empty(listed: Database, unknown: str) -> None:
    assert names(listed, EVERYTHING, unknown) == []


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (ExecutionFilter(status=Status.RUNNING), ["B", "_", "z", "a_b", "ab"]),
        (ExecutionFilter(status=Status.FAILED), ["b", "a"]),
        (ExecutionFilter(status=Status.STOPPED), []),
        (ExecutionFilter(started_from=30), ["ab", "B", "_", "b"]),
        (ExecutionFilter(started_to=10), ["a", "a_b"]),
        (ExecutionFilter(started_from=10, started_to=20), ["z", "a"]),
        (ExecutionFilter(started_from=11, started_to=10), []),
        (ExecutionFilter(name_prefix="a"), ["ab", "a", "a_b"]),
        (ExecutionFilter(name_prefix="b"), ["b"]),
        (ExecutionFilter(name_prefix="A"), []),
        (ExecutionFilter(name_prefix="a_"), ["a_b"]),
        (ExecutionFilter(name_prefix="%"), []),
        (ExecutionFilter(name_prefix="a", status=Status.FAILED, started_to=10), ["a"]),
    ],
)
def test_filters(listed: Database, wanted: ExecutionFilter, found: list[str]) -> None:
    assert sorted(names(listed, wanted)) == sorted(found)


def test_filters_hold_on_every_page(listed: Database) -> None:
    running = ExecutionFilter(status=Status.RUNNING)
    assert names(listed, running, limit=3) == ["ab", "B", "_"]
    assert names(listed, running, "_", 3) == ["_", "z", "a_b"]


def test_an_execution_is_found_by_its_flow_and_name(listed: Database) -> None:
    with listed.read() as connection:
        row = find_execution(connection, "flow-g", "b")
        assert row is not None
        assert row.execution_id == "other"
        assert find_execution(connection, "flow-f", "other") is None
        assert find_execution(connection, "nowhere", "b") is None


def test_an_execution_shows_the_definition_it_started_with(database: Database) -> None:
    with database.write() as connection:
        flow = keep_flow(connection, "f")
        stored = new_execution("e")
        stored.definition_id = flow.definition_id
        stored.input_text = '{"a" : 1}'
        save_new(connection, stored)
        save_new(connection, new_execution("lost"))
    with database.read() as connection:
        row, lost = find_execution(connection, "flow-f", "e"), find_execution(connection, "flow-f", "lost")
    assert row is not None
    assert lost is not None
    assert (row.definition, row.input, row.output, row.stopped_at) == (flow.definition, '{"a" : 1}', None, None)
    assert lost.definition == ""


def test_taken_names_are_found_in_one_question(listed: Database) -> None:
    asked = [("flow-f", "a"), ("flow-f", "A"), ("flow-g", "b"), ("flow-g", "a")]
    with listed.read() as connection:
        assert find_names(connection, asked) == {
            ("flow-f", "a"): ("id-a", Status.FAILED),
            ("flow-g", "b"): ("other", Status.RUNNING),
        }


def test_running_ones_are_counted(listed: Database) -> None:
    with listed.read() as connection:
        assert count_running(connection) == 6


@pytest.mark.parametrize(
    ("limit", "bytes_max", "pages"),
    [
        (9, 99, [[1, 2, 3, 4, 5]]),
        (5, 99, [[1, 2, 3, 4, 5]]),
        (2, 99, [[1, 2], [3, 4], [5]]),
        (9, 8, [[1, 2], [3, 4], [5]]),  # to the byte
        (9, 7, [[1], [2], [3], [4], [5]]),
        (9, 1, [[1], [2], [3], [4], [5]]),  # one event at least
    ],
)
def test_pages_of_a_history_are_bounded(database: Database, limit: int, bytes_max: int, pages: list[list[int]]) -> None:
    with database.write() as connection:
        rows = [
            {"execution_id": "e", "event_id": number, "schedule_event_id": 0, "type": "StepEntered", "step_name": "s"}
            | {"time": 1, "detail": '"é"'}
            for number in range(1, 6)
        ]
        connection.execute(insert(events), rows)
    seen: list[list[int]] = []
    following: int | None = 1
    while following is not None:
        with database.read() as connection:
            page, following = list_events_page(
                connection, "e", from_event_id=following, limit=limit, bytes_max=bytes_max
            )
        seen.append([event.event_id for event in page])
    assert seen == pages
    with database.read() as connection:
        assert list_events_page(connection, "e", from_event_id=6, limit=9, bytes_max=99) == ([], None)
