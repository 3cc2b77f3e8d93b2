"""Histories: many events in one row, read one by one."""

from itertools import chain

import pytest
from msgspec.structs import replace
from sqlalchemy import delete, func, select, update

from flowserver.machine.event_details import HistoryEvent, facts_of, is_in
from flowserver.machine.events import Event, Part
from flowserver.store.executions.history import (
    NEWS_ROWS,
    ROW_CHARACTERS,
    find_news,
    list_events,
    read_history,
    save_events,
    scan_history,
)
from flowserver.store.executions.history_facts import scan_facts
from flowserver.store.executions.history_parts import REMEMBERED_BYTES_MAX, REMEMBERED_MAX, KnownParts, PartId
from flowserver.store.schema.tables import histories, history_parts
from flowserver.store.sql.database import Database
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
            save_events(connection, [("e", events, KnownParts())])


def test_the_events_of_a_turn_are_one_row(database: Database) -> None:
    save(database, turn(1, 6), [], turn(7, 9))
    assert rows(database) == [(1, 6), (7, 9)]


def test_instants_are_stored_separately(database: Database) -> None:
    later = [replace(each, time_ms=8) for each in turn(3, 4)]
    save(database, turn(1, 2) + later)
    assert rows(database) == [(1, 2), (3, 4)]


def test_rows_stay_small(database: Database) -> None:
    save(database, turn(1, 5, '{"a":"%s"}' % ("x" * (ROW_CHARACTERS // 2))))
    assert rows(database) == [(1, 2), (3, 4), (5, 5)]


@pytest.mark.parametrize("start", range(1, 11))
def test_reading_begins_at_any_event(database: Database, start: int) -> None:
    everything = turn(1, 4) + turn(5, 5) + turn(6, 9)
    save(database, turn(1, 4), turn(5, 5), turn(6, 9))
    with database.read() as connection:
        assert list(read_history(connection, "e", from_event_id=start)) == everything[start - 1 :]
        assert list_events(connection, "e", from_event_id=start, limit=2) == everything[start - 1 : start + 1]


def test_few_small_events_are_news(database: Database) -> None:
    save(database, turn(1, 4), *(turn(number, number) for number in range(5, NEWS_ROWS + 4)))
    with database.read() as connection:
        last = NEWS_ROWS + 3
        assert find_news(connection, "e", from_event_id=last + 1) == []
        assert find_news(connection, "e", from_event_id=last) == turn(last, last)
        assert find_news(connection, "e", from_event_id=3) == turn(3, last)
        assert find_news(connection, "none", from_event_id=1) == []
    save(database, turn(last + 1, last + 1))
    with database.read() as connection:
        assert find_news(connection, "e", from_event_id=3) is None, "too many rows"
        assert find_news(connection, "e", from_event_id=5) == turn(5, last + 1)


def test_large_and_damaged_events_are_no_news(database: Database) -> None:
    save(database, turn(1, 1, '{"a":"%s"}' % ("x" * ROW_CHARACTERS)), [showing(2, Part("input", "list", [*range(40)]))])
    save(database, turn(3, 3), turn(4, 4))
    with database.write() as connection:
        connection.execute(update(histories).where(histories.c.last_event_id == 4).values(events="[{]"))
    with database.read() as connection:
        found = [find_news(connection, "e", from_event_id=start) for start in (1, 2, 3, 4, 5)]
    assert found == [None, None, None, None, []]


def test_details_are_stored_exactly(database: Database) -> None:
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


def test_executions_are_separate(database: Database) -> None:
    with database.write() as connection:
        save_events(connection, [("a", turn(1, 2), KnownParts()), ("b", turn(1, 3), KnownParts())])
        assert connection.execute(select(func.count()).select_from(histories)).scalar_one() == 2
        assert list(read_history(connection, "a")) == turn(1, 2)


# Large values


def showing(number: int, *parts: Part, detail: str = '{"input":{"small":1,"list":null}}') -> Event:
    return replace(event(number, detail=detail), time_ms=7, parts=parts)


def part_rows(database: Database) -> int:
    with database.read() as connection:
        return connection.execute(select(func.count()).select_from(history_parts)).scalar_one()


def test_a_large_value_is_stored_once_and_read_in_its_place(database: Database) -> None:
    value = [10**30, "ü", None, {"n": 1.5}]
    known, first, second = (
        KnownParts(),
        showing(1, Part("input", "list", value)),
        showing(4, Part("input", "list", value)),
    )
    with database.write() as connection:
        save_events(connection, [("e", [first, event(3)], known)])
        save_events(connection, [("e", [second], known)])
    assert part_rows(database) == 1
    with database.read() as connection:
        read = list(read_history(connection, "e"))
    whole = '{"input":{"small":1,"list":[1000000000000000000000000000000,"ü",null,{"n":1.5}]}}'
    assert [(each.event_id, each.detail, each.parts) for each in read] == [
        (1, whole, ()),
        (3, "{}", ()),
        (4, whole, ()),
    ]


def test_equal_values_that_are_different_objects_are_stored_separately(database: Database) -> None:
    known = KnownParts()
    with database.write() as connection:
        save_events(connection, [("e", [showing(n, Part("input", "list", [n] * 40)) for n in (1, 2)], known)])
    assert part_rows(database) == 2


def test_an_evicted_value_is_stored_again(database: Database) -> None:
    value = ["x"] * 40
    for number in (1, 2):
        with database.write() as connection:
            save_events(connection, [("e", [showing(number, Part("input", "list", value))], KnownParts())])
    assert part_rows(database) == 2


def test_few_values_are_cached() -> None:
    known, values = KnownParts(), [[n] for n in range(REMEMBERED_MAX + 1)]
    for number, value in enumerate(values):
        known.note(value, PartId(number, 0), 5)
        assert known.find(values[0]) == PartId(0, 0) or number == REMEMBERED_MAX
    assert known.find(values[1]) is None
    assert known.find(values[0]) == PartId(0, 0)


def test_few_bytes_are_cached_but_always_the_last_value() -> None:
    known, values = KnownParts(), [[n] for n in range(4)]
    half = REMEMBERED_BYTES_MAX // 2
    for number, size in enumerate((half, half, half, 3 * half)):
        known.note(values[number], PartId(number, 0), size)
        assert known.held_bytes == sum(size for *_, size in known._known.values())
        remembered = [each for each, value in enumerate(values) if known.find(value)]
        assert remembered == [[0], [0, 1], [1, 2], [3]][number]


def test_a_missing_part_takes_its_row_with_it(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    with database.write() as connection:
        save_events(connection, [("e", [showing(1, Part("input", "list", [1]))], KnownParts())])
        connection.execute(history_parts.delete())
        save_events(connection, [("e", [event(2)], KnownParts())])
    with database.read() as connection:
        assert [each.event_id for each in read_history(connection, "e")] == [2]
    assert "is missing" in caplog.text


def test_a_scan_does_not_read_large_values(database: Database) -> None:
    large = replace(event(1, detail='{"input":{"a":null}}'), parts=(Part("input", "a", "x" * 2_000),))
    save(database, [large], turn(2, 3))
    with database.write() as connection:
        connection.execute(delete(history_parts))
    with database.read() as connection:
        assert [(each.event_id, each.detail) for each in scan_history(connection, "e")] == [
            (1, '{"input":{"a":null}}'),
            (2, "{}"),
            (3, "{}"),
        ]
        assert [each.event_id for each in scan_history(connection, "e", from_event_id=3)] == [3]


def test_folds_read_the_facts_of_a_detail(database: Database) -> None:
    failed = '{"input":{"error":1},"error":"E","caughtBy":{"goto":"x"},"cancelled":null}'
    entered = '{"index":3,"total":9,"resumes":2,"redriven":{"id":1},"waitingSteps":2}'
    save(database, [event(1, detail=failed), event(2, detail=entered)], [event(3, detail="[]")], turn(4, 6))
    with database.read() as connection:
        read = list(chain.from_iterable(scan_facts(connection, "e")))
        expected = list(scan_history(connection, "e"))
        assert [_identity(each) for each in read] == [_identity(each) for each in expected]
        assert [facts_of(each) for each in read] == [facts_of(each) for each in expected]
        assert (read[0].detail.error, read[0].detail.index) == ("E", None)
        assert [is_in(fact) for fact in (read[0].detail.caught_by, read[0].detail.cancelled)] == [True, True]
        assert is_in(read[1].detail.cancelled) is False
        assert [[each.event_id for each in some] for some in scan_facts(connection, "e", from_event_id=5)] == [[5, 6]]


@pytest.mark.parametrize("damage", ["[[0]]", "[]", '[[0,"Nothing","s",{}]]', "{", '[[0,"StepEntered","s",[]]]'])
def test_folds_leave_damaged_rows_out(database: Database, damage: str) -> None:
    save(database, [event(1)], [event(2)], [event(3)])
    with database.write() as connection:
        connection.execute(update(histories).values(events=damage).where(histories.c.last_event_id == 2))
    with database.read() as connection:
        assert [each.event_id for some in scan_facts(connection, "e") for each in some] == [1, 3]


def _identity(event: HistoryEvent) -> tuple[object, ...]:
    return event.event_id, event.schedule_event_id, event.type, event.step_name, event.time_ms
