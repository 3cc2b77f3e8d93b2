"""Pages of histories: both directions, filters, and a bounded number of events read per page."""

import pytest
from msgspec.structs import replace
from sqlalchemy import update

from flowserver.machine.events import Event, EventType
from flowserver.store.executions import history_search
from flowserver.store.executions.history import save_events
from flowserver.store.executions.history_parts import KnownParts
from flowserver.store.executions.history_search import EventFilter, search_events
from flowserver.store.schema.tables import histories
from flowserver.store.sql.database import Database
from tests.store.effort import effort_of
from tests.store.plans import listening
from tests.store.rows import event

TYPES = (EventType.STEP_ENTERED, EventType.STEP_EXITED, EventType.TASK_FAILED)


def _save(database: Database, count: int) -> list[Event]:
    """Rows of three events each."""
    events = [
        replace(event(number, TYPES[number % 3]), step_name="ab"[number % 2], time_ms=number // 3)
        for number in range(1, count + 1)
    ]
    with database.write() as connection:
        save_events(connection, [("e", events, KnownParts()), ("other", events, KnownParts())])
    return events


def _pages(database: Database, wanted: EventFilter, size: int) -> list[int]:
    begin: int | None = 2_147_483_646 if wanted.is_backwards else 1
    found: list[int] = []
    while begin is not None:
        with database.read() as connection:
            page, begin = search_events(connection, "e", wanted, from_event_id=begin, limit=size, bytes_max=10**6)
        assert len(page) <= size
        found += [each.event_id for each in page]
    return found


@pytest.mark.parametrize("scanned", [1, 4, 5_000])
@pytest.mark.parametrize("is_backwards", [False, True])
def test_pages_together_contain_all_matches(
    database: Database, scanned: int, is_backwards: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_search, "SCANNED_MAX", scanned)
    events = _save(database, 20)
    for name in (None, "a", "none"):
        for types in (frozenset[EventType](), frozenset(TYPES[:1])):
            for after in (0, 7):
                wanted = EventFilter(step_name=name, types=types, is_backwards=is_backwards, after_event_id=after)
                expected = [each.event_id for each in events if wanted.matches(each)]
                assert _pages(database, wanted, 3) == (expected[::-1] if is_backwards else expected)


@pytest.mark.parametrize("is_backwards", [False, True])
def test_rows_of_known_events_are_found_with_a_few_queries(
    database: Database, is_backwards: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_search, "IDS_AT_ONCE", 50)
    _save(database, 600)
    known = [1, 2, *range(10, 600, 5), 600]
    for size in (7, 1_000):
        wanted = EventFilter(among=known, is_backwards=is_backwards)
        assert _pages(database, wanted, size) == (known[::-1] if is_backwards else known)
    asked: list[str] = []
    with database.read() as connection, listening(connection, lambda _, sql, __: asked.append(sql)):
        page, _ = search_events(connection, "e", wanted, from_event_id=300, limit=1_000, bytes_max=10**6)
    assert len(asked) == 2
    assert len(page) in (60, 61)


def test_a_damaged_row_is_left_out(database: Database) -> None:
    _save(database, 9)
    with database.write() as connection:
        connection.execute(update(histories).where(histories.c.first_event_id == 3).values(events="[1]"))
    assert _pages(database, EventFilter(is_backwards=True), 2) == [9, 8, 7, 6, 2, 1]


@pytest.mark.parametrize("is_backwards", [False, True])
def test_a_page_costs_the_same_in_a_history_ten_times_as_long(
    sqlite_database: Database, is_backwards: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_search, "SCANNED_MAX", 30)
    wanted = EventFilter(step_name="none", is_backwards=is_backwards)
    efforts = []
    for count in (300, 3_000):
        with sqlite_database.write() as connection:
            connection.execute(histories.delete())
        _save(sqlite_database, count)
        with sqlite_database.read() as connection:
            efforts.append(
                effort_of(
                    connection,
                    lambda connection: search_events(
                        connection, "e", wanted, from_event_id=150, limit=10, bytes_max=10**6
                    ),
                )
            )
    assert efforts[1] <= 2 * efforts[0] + 200, efforts
