"""Damage that only a complete read finds: gaps in histories, invalid texts."""

from string import Formatter
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import delete, text, update

from flowserver.machine.state import WaitKind
from flowserver.store.executions.history import save_events
from flowserver.store.executions.history_parts import KnownParts
from flowserver.store.executions.saving import Changes, save_changes
from flowserver.store.functions import put_function
from flowserver.store.integrity import damage
from flowserver.store.integrity.damage import find_damage
from flowserver.store.invocations.rows import insert_invocations
from flowserver.store.queues.deliveries import insert_deliveries
from flowserver.store.queues.topics import insert_subscription, insert_topic
from flowserver.store.schedules.rows import insert_schedule
from flowserver.store.schema.invocation_tables import invocations
from flowserver.store.schema.queue_tables import deliveries, subscriptions
from flowserver.store.schema.schedule_tables import schedules
from flowserver.store.schema.tables import (
    definitions,
    execution_documents,
    executions,
    functions,
    histories,
    scopes,
)
from flowserver.store.sql.database import Database
from tests.store.queues.test_deliveries import new
from tests.store.queues.test_topics import subscription, topic
from tests.store.rows import event, function_row, invocation_row, keep_flow, new_execution, scope
from tests.store.schedules.test_due_schedules import schedule

THIRD = update(histories).where(histories.c.last_event_id == 3)


@pytest.fixture
def sound(database: Database) -> Database:
    with database.write() as connection:
        flow = keep_flow(connection, "f")
        stored = new_execution("e1", flow.flow_id, next_event_id=4)
        stored.definition_id = flow.definition_id
        stored.execution.scopes = {1: scope(1, WaitKind.READY)}
        save_changes(connection, [Changes(stored, [event(1), event(2), event(3)], touched={1})], "node-1")
        put_function(connection, function_row("s", "f"))
        insert_invocations(connection, [invocation_row("k")])
        insert_topic(connection, topic("news"))
        insert_subscription(connection, subscription("s"))
        insert_deliveries(connection, [new("1")], 1)
        insert_schedule(connection, replace(schedule("s", 60), flow_id=flow.flow_id))
    return database


def found_in(database: Database) -> list[tuple[str, str]]:
    with database.read() as connection:
        return [(each.place, each.problem) for each in find_damage(connection)]


def test_intact_data_has_no_damage(sound: Database) -> None:
    assert found_in(sound) == []


@pytest.mark.parametrize(
    ("change", "place", "problem"),
    [
        (
            delete(histories).where(histories.c.last_event_id == 2),
            "history of execution e1",
            "2 events from 1 to 3; the next is",
        ),
        (delete(histories), "history of execution e1", "0 events"),
        (update(executions).values(next_event_id=9), "history of execution e1", "the next is to be 9"),
        (update(histories).values(execution_id="e0"), "history of execution e0", "3 events of no execution"),
        (THIRD.values(events="[["), "events up to 3 of execution e1", "it cannot be read"),
        (THIRD.values(events='[[2,"StepExited","s",[]]]'), "events up to 3 of execution e1", "not a JSON object"),
        (THIRD.values(events='[[2,"StepLeft","s",{}]]'), "events up to 3 of execution e1", "StepLeft"),
        (THIRD.values(events="[]"), "events up to 3 of execution e1", "it holds 0 events from 3 to 3"),
        (update(scopes).values(local="[]"), "scope 1 of execution e1", "its local cannot be read: not a JSON object"),
        (update(scopes).values(step_input="nonsense"), "scope 1 of execution e1", "its step_input"),
        (update(scopes).values(retries="null"), "scope 1 of execution e1", "its retries"),
        (update(execution_documents).values(input="[1]"), "execution e1", "its input cannot be read: not a JSON"),
        (update(execution_documents).values(output="x"), "execution e1", "its output"),
        (delete(execution_documents), "execution e1", "it has no row"),
        (update(schedules).values(memory="x"), "schedule f/s", "it cannot be read"),
        (update(schedules).values(payload="[]"), "schedule f/s", "its payload"),
        (update(schedules).values(expression="0 0 L"), "schedule f/s", "its expression cannot be read"),
        (update(schedules).values(next_at=None), "schedule f/s", "it is enabled and has no next tick"),
        (update(schedules).values(wake_at=None), "schedule f/s", "no reason to wake up"),
        (update(schedules).values(flow_id="gone"), "schedule f/s", "its flow does not exist"),
        (update(functions).values(headers="x"), "function s/f", "its headers"),
        (update(invocations).values(events=""), "invocation k", "it cannot be read: invocation k is damaged"),
        (update(subscriptions).values(endpoint="nowhere"), "subscription s of topic news", "its endpoint"),
        (update(deliveries).values(strategy="NEVER"), "delivery 1", "its strategy"),
        (update(definitions).values(text="{"), "definition ", "its text cannot be read: "),
    ],
)
def test_damage_is_found_and_located(sound: Database, change: Any, place: str, problem: str) -> None:
    with sound.write() as connection:
        connection.execute(change)
    assert any(where.startswith(place) and problem in what for where, what in found_in(sound)), found_in(sound)


def test_all_data_is_read_in_portions(sound: Database) -> None:
    with sound.write() as connection:
        save_events(connection, [("e2", [event(number) for number in range(1, 1_001)], KnownParts())])
    assert found_in(sound) == [("history of execution e2", "1000 events of no execution")]


def test_every_unreadable_row_is_reported_by_its_key(sqlite_database: Database) -> None:
    with sqlite_database.write() as connection:
        save_events(connection, [("e1", [event(1), event(2)], KnownParts())])
        root = connection.execute(text("SELECT rootpage FROM sqlite_master WHERE name = 'histories'")).scalar_one()
        size = connection.execute(text("PRAGMA page_size")).scalar_one()
    sqlite_database.close()
    assert sqlite_database.sqlite_file is not None
    with sqlite_database.sqlite_file.open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(b"\xff" * size)
    found = found_in(Database(str(sqlite_database.url)))
    places = [place for place, _ in found]
    assert {"table histories", "events up to 1 of execution e1", "events up to 2 of execution e1"} <= set(places)


@pytest.mark.parametrize("sound", damage._TABLES, ids=lambda sound: sound.table.name)
def test_positions_are_made_of_keys(sound: damage.Sound) -> None:
    named = {name for _, name, _, _ in Formatter().parse(sound.place) if name is not None}
    assert named <= {column.name for column in sound.table.primary_key}


def test_tables_of_other_programs_are_ignored(sqlite_database: Database) -> None:
    """Litestream keeps two tables of its own in the database that it replicates."""
    with sqlite_database.write() as connection:
        connection.execute(text("CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER)"))
        connection.execute(text("CREATE TABLE _litestream_lock (id INTEGER)"))
    assert found_in(sqlite_database) == []
