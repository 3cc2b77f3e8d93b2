"""Executions as readers see them, and their histories."""

import pytest
from msgspec.structs import replace

from flowserver.machine.state import Status
from flowserver.store.executions.history import list_events_page, save_events
from flowserver.store.executions.history_parts import KnownParts
from flowserver.store.executions.lookups import count_running, find_names
from flowserver.store.executions.shown_executions import find_execution
from flowserver.store.sql.database import Database
from tests.store.rows import event, keep_flow, new_execution, save_new


def test_an_execution_is_found_by_its_flow_and_name(listed: Database) -> None:
    with listed.read() as connection:
        row = find_execution(connection, "g", "b")
        assert row is not None
        assert row.execution_id == "other"
        assert find_execution(connection, "f", "other") is None
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
        row, lost = find_execution(connection, "f", "e"), find_execution(connection, "f", "lost")
        state = find_execution(connection, "f", "e", documents=False)
    assert row is not None
    assert lost is not None
    assert (row.definition, row.input, row.output, row.stopped_at) == (flow.definition, '{"a" : 1}', None, None)
    assert lost.definition == ""
    assert state is not None
    assert (state.name, state.definition, state.input, state.output) == (row.name, "", "", None)


def test_taken_names_are_found_in_one_query(listed: Database) -> None:
    asked = [("flow-f", "a"), ("flow-f", "A"), ("flow-g", "b"), ("flow-g", "a")]
    with listed.read() as connection:
        assert find_names(connection, asked) == {
            ("flow-f", "a"): ("id-a", Status.FAILED),
            ("flow-g", "b"): ("other", Status.RUNNING),
        }


def test_running_executions_are_counted(listed: Database) -> None:
    with listed.read() as connection:
        assert count_running(connection) == 6


@pytest.mark.parametrize(
    ("limit", "bytes_max", "pages"),
    [
        (9, 99, [[1, 2, 3, 4, 5]]),
        (5, 99, [[1, 2, 3, 4, 5]]),
        (2, 99, [[1, 2], [3, 4], [5]]),
        (9, 18, [[1, 2], [3, 4], [5]]),  # to the byte
        (9, 17, [[1], [2], [3], [4], [5]]),
        (9, 1, [[1], [2], [3], [4], [5]]),  # at least one event
    ],
)
def test_pages_of_a_history_are_bounded(database: Database, limit: int, bytes_max: int, pages: list[list[int]]) -> None:
    with database.write() as connection:
        events = [replace(event(number, detail='{"":"é"}'), time_ms=number % 2) for number in range(1, 6)]
        save_events(connection, [("e", events[:2], KnownParts()), ("e", events[2:], KnownParts())])
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
