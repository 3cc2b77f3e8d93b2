"""Histories: many events in one row, read as single ones."""

from dataclasses import replace

import pytest
from sqlalchemy import func, select, update

from flowserver.machine.events import Event
from flowserver.store.database import Database
from flowserver.store.history import ROW_CHARACTERS, list_events, read_history, save_events
from flowserver.store.tables import histories
from tests.store.rows import event


def turn(first: int, last: int, detail: str = "{}") -> list[Event]:
    """Events of one instant."""
    return [replace(event(number, detail=detail), time_ms=7) for number in range(first, last + 1)]


def rows(database: Database) -> list[tuple[int, int]]:
    query = select(histories.c.first_event_id, histories.c.last_event_id).order_by(histories.c.last_event_id)
    with database.read() as connection:
        return [(first, last) for first, last in connection.execute(query)]


def save(database: Database, *turns: list[Event]) -> None:
    with database.write() as connection:
        for events in turns:
            save_events(connection, [("e", events)])


def test_the_events_of_a_turn_are_one_row(database: Database) -> None:
    save(database, turn(1, 6), [], turn(7, 9))
    assert rows(database) == [(1, 6), (7, 9)]


def test_instants_are_kept_apart(database: Database) -> None:
    later = [replace(each, time_ms=8) for each in turn(3, 4)]
    save(database, turn(1, 2) + later)
    assert rows(database) == [(1, 2), (3, 4)]


def test_rows_stay_small(database: Database) -> None:
    save(database, turn(1, 5, '{"a":"%s"}' % ("x" * (ROW_CHARACTERS // 2))))
    assert rows(database) == [(1, 2), (3, 4), (5, 5)]


@pytest.mark.parametrize("start", range(1, 11))
def test_reading_begins_anywhere(database: Database, start: int) -> None:
    everything = turn(1, 4) + turn(5, 5) + turn(6, 9)
    save(database, turn(1, 4), turn(5, 5), turn(6, 9))
    with database.read() as connection:
        assert list(read_history(connection, "e", from_event_id=start)) == everything[start - 1 :]
        assert list_events(connection, "e", from_event_id=start, limit=2) == everything[start - 1 : start + 1]


def test_details_are_kept_to_the_letter(database: Database) -> None:
    details = ['{"n":1000000000000000000000000000000}', '{ "a" : "中\\u0000" }', '{"quote":"\\"]],["}']
    save(database, [replace(event(number, detail=text), time_ms=7) for number, text in enumerate(details, 1)])
    with database.read() as connection:
        assert [each.detail for each in read_history(connection, "e")] == details


@pytest.mark.parametrize("damage", ["", "[", "{}", "[]", '[[1,"StepEntered","s",[]]]', '[[1,"Odd","s",{}]]', '[["x"]]'])
def test_a_damaged_row_is_left_out(database: Database, damage: str, caplog: pytest.LogCaptureFixture) -> None:
    save(database, turn(1, 2), turn(3, 3), turn(4, 5))
    with database.write() as connection:
        connection.execute(update(histories).where(histories.c.last_event_id == 3).values(events=damage))
    with database.read() as connection:
        assert [each.event_id for each in read_history(connection, "e")] == [1, 2, 4, 5]
    assert "left out" in caplog.text


def test_executions_do_not_mix(database: Database) -> None:
    with database.write() as connection:
        save_events(connection, [("a", turn(1, 2)), ("b", turn(1, 3))])
        assert connection.execute(select(func.count()).select_from(histories)).scalar_one() == 2
        assert list(read_history(connection, "a")) == turn(1, 2)
