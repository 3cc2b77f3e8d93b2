"""Due schedules: the cost of a look does not grow with the waiting schedules, and a turn is committed once."""

from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import Connection, insert, text, update

from flowserver.machine.schedules.state import Action, Kind, Memory, Overlap, Schedule
from flowserver.store.schedules.due_schedules import (
    due_keys,
    hold_versions,
    next_turn_at,
    overdue_schedules,
    put_off_damaged,
    read_schedules,
    save_current_turns,
    save_turns,
)
from flowserver.store.schedules.rows import ScheduleDamaged, find_schedule, insert_schedule, list_schedules, row_of
from flowserver.store.schema.schedule_tables import schedules
from flowserver.store.sql.database import Database
from tests.store.effort import effort_of

WAITING = 10_000


def schedule(name: str, wake_at: int | None, flow: str = "f") -> Schedule:
    return Schedule(
        schedule_id=f"{flow}/{name}", flow_id=flow, flow_name=flow, name=name, expression="@every 1m", anchor_at=0,
        next_at=wake_at, wake_at=wake_at, created_at=0, modified_at=0,
    )  # fmt: skip


def keep(database: Database, *kept: Schedule) -> None:
    with database.write() as connection:
        connection.execute(insert(schedules), [row_of(each) for each in kept])


def look(connection: Connection) -> Any:
    return due_keys(connection, 500, 100), next_turn_at(connection, 500)


def test_ten_thousand_waiting_schedules_cost_nothing(database: Database) -> None:
    """A look that finds nothing due reads as much with ten thousand as with ten."""
    keep(database, *(schedule(f"a{number}", 1_000 + number) for number in range(10)))
    with database.read() as connection:
        few = effort_of(connection, look)
    keep(database, *(schedule(f"b{number}", 2_000 + number) for number in range(WAITING)))
    with database.write() as connection:
        connection.execute(text("ANALYZE"))
    with database.read() as connection:
        assert look(connection) == ([], 1_000)
        assert effort_of(connection, look) <= few * 1.5 + 5


def test_due_schedules_come_first_and_paused_ones_never(database: Database) -> None:
    keep(database, schedule("late", 30), schedule("soon", 10), schedule("paused", None), schedule("future", 99))
    with database.read() as connection:
        assert due_keys(connection, 50, 10) == [("f/soon", 10), ("f/late", 30)]
        assert due_keys(connection, 50, 1) == [("f/soon", 10)]
        found, damaged = read_schedules(connection, ["f/soon", "f/paused", "f/gone"])
        assert ({each.name for each in found}, damaged) == ({"soon", "paused"}, [])
        assert next_turn_at(connection, 30) == 99
        assert next_turn_at(connection, 99) is None


def test_overdue_ones_are_counted_from_the_index_of_those_that_wake(database: Database) -> None:
    with database.read() as connection:
        assert overdue_schedules(connection, 50) == (0, None)
    keep(database, schedule("late", 30), schedule("soon", 10), schedule("paused", None), schedule("future", 99))
    with database.read() as connection:
        assert overdue_schedules(connection, 50) == (2, 10)
        few = effort_of(connection, lambda each: overdue_schedules(each, 50))
    keep(database, *(schedule(f"b{number}", 2_000 + number) for number in range(1_000)))
    with database.write() as connection:
        connection.execute(text("ANALYZE"))
    with database.read() as connection:
        assert overdue_schedules(connection, 50) == (2, 10)  # SQLite reads the schema again after ANALYZE
        assert effort_of(connection, lambda each: overdue_schedules(each, 50)) <= few * 1.5 + 5


def test_a_turn_is_saved_at_its_version_only(database: Database) -> None:
    before = schedule("s", 10)
    keep(database, before)
    action = Action(5, Kind.TICK, Overlap.SKIP)
    after = replace(before, wake_at=70, next_at=70, actions_left=3, memory=Memory(started=1, buffered=(action,)))
    with database.write() as connection:
        assert hold_versions(connection, ["f/s", "gone"]) == {"f/s": 0}
        assert save_turns(connection, [after]) == 1
        assert save_turns(connection, [after]) == 0
    with database.read() as connection:
        assert find_schedule(connection, "f", "s") == replace(after, version=1)


def test_the_turns_that_are_saved_are_named(database: Database) -> None:
    keep(database, schedule("current", 10), schedule("changed", 10))
    changed = replace(schedule("changed", 10), note="by a user")
    turns = [replace(schedule(name, 10), wake_at=70) for name in ("current", "changed", "deleted")]
    with database.write() as connection:
        assert save_turns(connection, [changed]) == 1
        assert save_current_turns(connection, turns) == {"f/current"}
        assert save_current_turns(connection, turns) == set()
    with database.read() as connection:
        assert find_schedule(connection, "f", "current") == replace(turns[0], version=1)
        assert find_schedule(connection, "f", "changed") == replace(changed, version=1)


def test_damaged_rows_are_reported_and_postponed(database: Database) -> None:
    keep(database, schedule("bad", 10), schedule("good", 20))
    with database.write() as connection:
        connection.execute(update(schedules).where(schedules.c.name == "bad").values(overlap="Sometimes"))
        found, damaged = read_schedules(connection, ["f/bad", "f/good"])
        assert ([each.name for each in found], damaged) == (["good"], ["f/bad"])
        put_off_damaged(connection, damaged, 60_000)
        assert due_keys(connection, 50, 10) == [("f/good", 20)]
        with pytest.raises(ScheduleDamaged):
            find_schedule(connection, "f", "bad")
        listed, _ = list_schedules(connection, flow_name="f", begin=("", ""), limit=10, bytes_max=10_000)
        assert [each.name for each in listed] == ["good"]


def test_lists_of_flows_with_a_prefix(database: Database) -> None:
    keep(database, *(schedule(name, None, flow) for flow in ("a", "o", "o-1", "o-2", "o_", "p") for name in ("s", "t")))
    found: list[str] = []
    begin: tuple[str, str] | None = ("", "")
    with database.read() as connection:
        while begin is not None:
            page, begin = list_schedules(
                connection, flow_name=None, flows="o-", begin=begin, limit=3, bytes_max=1_000_000
            )
            found += [each.schedule_id for each in page]
    assert found == ["o-1/s", "o-1/t", "o-2/s", "o-2/t"]


def test_a_name_is_unique_per_flow(database: Database) -> None:
    with database.write() as connection:
        assert insert_schedule(connection, schedule("s", 1))
        assert not insert_schedule(connection, replace(schedule("s", 1), schedule_id="other"))
        assert insert_schedule(connection, schedule("s", 1, flow="g"))
