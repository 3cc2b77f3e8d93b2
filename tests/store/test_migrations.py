"""The migrations make exactly the schema that `tables` describes, on both databases."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from msgspec.structs import astuple, replace
from sqlalchemy import Column, MetaData, Table, func, insert, inspect, select, text

from flowserver.base.derived_ids import child_execution_id
from flowserver.store.executions.history import read_history
from flowserver.store.integrity.invariant import violations
from flowserver.store.queues.deliveries import claim_deliveries
from flowserver.store.schema.all_tables import metadata
from flowserver.store.schema.migrating import migrate
from flowserver.store.schema.revision import REVISIONS, SchemaOutdated, SchemaTooNew, require_current_schema
from flowserver.store.schema.tables import executions, finished_items, histories, scopes
from flowserver.store.sql.database import Database
from tests.store.rows import event

SQLITE_OBJECTS = "SELECT type, name, sql FROM sqlite_master WHERE tbl_name <> 'alembic_version'"
POSTGRES_OBJECTS = (
    "SELECT tablename, indexname, indexdef FROM pg_indexes"
    " WHERE schemaname = 'public' AND tablename <> 'alembic_version'",
    "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint"
    " WHERE connamespace = 'public'::regnamespace AND conrelid::regclass::text <> 'alembic_version'",
    "SELECT table_name, column_name, data_type, is_nullable, collation_name, column_default"
    " FROM information_schema.columns WHERE table_schema = 'public' AND table_name <> 'alembic_version'",
    "SELECT viewname, definition FROM pg_views WHERE schemaname = 'public'",
)
MIGRATIONS = Path(__file__).parents[2] / "migrations"


@pytest.fixture(params=["sqlite", "postgres"])
def empty_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    sqlite = request.param == "sqlite"
    opened = Database(f"sqlite:///{tmp_path}/new/one.db" if sqlite else request.getfixturevalue("postgres_url"))
    yield opened
    opened.close()


def described(database: Database) -> set[tuple[str, ...]]:
    """Every table, view, column, constraint and index, including predicates and collations, as the database prints
    them.
    """
    with database.read() as connection:
        if database.is_sqlite:
            rows = connection.execute(text(SQLITE_OBJECTS)).all()
            return {(row.type, row.name, *_parts(row.sql)) for row in rows}
        return {
            tuple(str(value) for value in row)
            for query in POSTGRES_OBJECTS
            for row in connection.execute(text(query)).all()
        }


def _parts(sql: str | None) -> list[str]:
    """The parts of a statement regardless of order: constraints of a table have none, and columns are added later.

    SQLite quotes the name of a table that was created under another name.
    """
    unquoted = re.sub(r'^CREATE TABLE "(\w+)"', r"CREATE TABLE \1", sql or "")
    parts = (part.strip(" \t,") for part in re.split(r"\n|, ", unquoted))
    return sorted(part for part in parts if part)


def test_alembic_finds_no_difference(database: Database) -> None:
    with database.read() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        assert compare_metadata(context, metadata) == []


def test_the_view_is_part_of_the_metadata() -> None:
    assert violations.name not in metadata.tables  # it is created beside them


def test_the_migrated_schema_is_the_described_schema(empty_database: Database) -> None:
    _make_folder(empty_database)
    with empty_database.write() as connection:
        metadata.create_all(connection)
    wanted = described(empty_database)
    with empty_database.write() as connection:
        metadata.drop_all(connection)
    migrate(empty_database)
    assert described(empty_database) == wanted


def test_migrating_reports_its_changes_and_happens_once(empty_database: Database) -> None:
    assert migrate(empty_database)[0] == "0001"
    require_current_schema(empty_database)
    assert migrate(empty_database) == []


def test_every_migration_has_a_name() -> None:
    assert tuple(script.revision for script in ScriptDirectory(str(MIGRATIONS)).walk_revisions())[::-1] == REVISIONS


def test_down_and_up_again(empty_database: Database) -> None:
    migrate(empty_database)
    before = described(empty_database)
    _alembic(empty_database, command.downgrade, "base")
    with empty_database.read() as connection:
        assert inspect(connection).get_table_names() == ["alembic_version"]
    with pytest.raises(SchemaOutdated):
        require_current_schema(empty_database)
    migrate(empty_database)
    assert described(empty_database) == before


def test_an_unmigrated_database_is_refused(empty_database: Database) -> None:
    _make_folder(empty_database)
    with pytest.raises(SchemaOutdated):
        require_current_schema(empty_database)


def test_a_database_of_a_newer_version_is_refused(empty_database: Database) -> None:
    migrate(empty_database)
    with empty_database.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(SchemaTooNew):
        require_current_schema(empty_database)
    with pytest.raises(SchemaTooNew):
        migrate(empty_database)


def test_a_migration_that_fails_changes_nothing(empty_database: Database) -> None:
    _make_folder(empty_database)
    with empty_database.write() as connection:
        # the last table that the migration creates
        connection.execute(text("CREATE TABLE secrets (in_the_way INTEGER)"))
    with pytest.raises(Exception, match="secrets"):
        migrate(empty_database)
    with empty_database.read() as connection:
        assert inspect(connection).get_table_names() == ["secrets"]


def _make_folder(database: Database) -> None:
    if database.sqlite_file is not None:
        database.sqlite_file.parent.mkdir(exist_ok=True)


def test_waits_for_sub_flows_are_named_afterwards(empty_database: Database) -> None:
    migrate(empty_database)
    scope = {"execution_id": "parent", "scope_id": 3, "wait_id": 7, "wait": "child"}
    unset = {"list_id": 0, "item": 0, "last_event_id": 1, "step_index": 0, "entered_event_id": 1, "attempt": 1}
    rest = {"retries": "{}", "next_item": 0, "open_items": 0, "local": "{}"}
    _alembic(empty_database, command.downgrade, "0002")
    with empty_database.write() as connection:
        old = Table("scopes", MetaData(), autoload_with=connection)
        connection.execute(insert(old), {**scope, **unset, **rest})
    migrate(empty_database)
    with empty_database.read() as connection:
        named = connection.execute(select(scopes.c.child_execution_id)).scalar_one()
    assert named == child_execution_id("parent", 3, 7)


def test_the_data_of_running_executions_is_measured(empty_database: Database) -> None:
    migrate(empty_database)
    _alembic(empty_database, command.downgrade, "0010")
    counts = {"version": 1, "next_event_id": 5, "next_scope_id": 5, "next_wait_id": 5, "started_at": 1}
    header = {"flow_id": "f", "flow_name": "f", "definition_id": "d", "deadline_at": 9, **counts}
    scope = {"list_id": 0, "item": 0, "last_event_id": 1, "step_index": 0, "entered_event_id": 1, "wait_id": 1}
    rest = {"wait": "join", "attempt": 0, "retries": "{}", "next_item": 0, "open_items": 0}
    with empty_database.write() as connection:
        old = MetaData()
        old.reflect(connection, only=["executions", "scopes"])
        for name, status, stopped_at in (("runs", "Running", None), ("bare", "Running", None), ("over", "Failed", 2)):
            row = {"execution_id": name, "name": name, "status": status, "stopped_at": stopped_at}
            connection.execute(insert(old.tables["executions"]), {**header, **row, "callback_due": False})
        for scope_id, step_input in ((1, '{"a":1}'), (2, None)):
            key = {"execution_id": "runs", "scope_id": scope_id, "local": '{"é":2}', "step_input": step_input}
            connection.execute(insert(old.tables["scopes"]), {**key, **scope, **rest})
    migrate(empty_database)
    with empty_database.read() as connection:
        found = connection.execute(select(executions.c.execution_id, executions.c.document_bytes)).all()
    assert dict(map(tuple, found)) == {"runs": 7 + 8 + 8, "bare": 0, "over": 0}


def test_finished_iterations_are_moved_out_of_the_scopes_and_back(empty_database: Database) -> None:
    migrate(empty_database)
    _alembic(empty_database, command.downgrade, "0015")
    counts = {"version": 1, "next_event_id": 50, "next_scope_id": 9, "next_wait_id": 5, "started_at": 1}
    header = {"execution_id": "e", "flow_id": "f", "flow_name": "f", "name": "e", "definition_id": "d", **counts}
    scope = {
        "execution_id": "e",
        "list_id": 1,
        "last_event_id": 7,
        "step_index": 0,
        "entered_event_id": 6,
        "attempt": 0,
    }
    rest = {"retries": "{}", "next_item": 0, "open_items": 0, "wait_id": 0, "step_input": None}
    with empty_database.write() as connection:
        old = MetaData()
        old.reflect(connection, only=["executions", "scopes"])
        row = {**header, "status": "Running", "deadline_at": 9, "callback_due": False, "document_bytes": 30}
        connection.execute(insert(old.tables["executions"]), row)
        rows: list[dict[str, Any]] = [
            {"scope_id": 1, "parent_id": None, "item": 0, "wait": "join", "local": "{}"},
            {"scope_id": 2, "parent_id": 1, "item": 0, "wait": "done", "local": '{"r":0}'},
            {"scope_id": 3, "parent_id": 1, "item": 1, "wait": "ready", "local": "{}"},
            {"scope_id": 5, "parent_id": 1, "item": 2, "wait": "done", "local": '{"r":2}'},
        ]
        connection.execute(insert(old.tables["scopes"]), [{**scope, **rest, **row} for row in rows])
    migrate(empty_database)
    with empty_database.read() as connection:
        moved = connection.execute(select(finished_items)).all()
        left = connection.execute(select(scopes.c.scope_id).order_by(scopes.c.scope_id)).scalars().all()
    assert (sorted(map(tuple, moved)), left) == ([("e", 1, 0, '{"r":0}'), ("e", 1, 2, '{"r":2}')], [1, 3])
    _alembic(empty_database, command.downgrade, "0015")
    with empty_database.read() as connection:
        table = old.tables["scopes"].c
        done = select(table.scope_id, table.parent_id, table.item, table.local).where(table.wait == "done")
        assert sorted(map(tuple, connection.execute(done))) == [(9, 1, 0, '{"r":0}'), (10, 1, 2, '{"r":2}')]
        assert connection.execute(select(executions.c.next_scope_id)).scalar_one() == 11


def test_events_are_moved_into_rows_of_many(empty_database: Database) -> None:
    _make_folder(empty_database)
    _alembic(empty_database, command.upgrade, "0004")
    columns = ("execution_id", "event_id", "schedule_event_id", "type", "step_name", "time", "detail")
    old = Table("events", MetaData(), *(Column(name) for name in columns))
    kept = [event(1), event(2, detail='{"a":"中\\u0000"}'), event(3), event(5)]
    with empty_database.write() as connection:
        for execution_id in ("a", "b"):
            values = [(execution_id, *astuple(replace(each, time_ms=7))[:-1]) for each in kept]
            connection.execute(insert(old), [dict(zip(columns, row, strict=True)) for row in values])
    _alembic(empty_database, command.upgrade, "0005")
    with empty_database.read() as connection:
        for execution_id in ("a", "b"):
            assert list(read_history(connection, execution_id)) == [replace(each, time_ms=7) for each in kept]
        assert connection.execute(select(func.count()).select_from(histories)).scalar_one() == 4
    _alembic(empty_database, command.downgrade, "0004")
    with empty_database.read() as connection:
        found = connection.execute(select(old).where(old.c.execution_id == "b").order_by(old.c.event_id)).all()
        assert [(row.event_id, row.type, row.time) for row in found] == [(each.event_id, each.type, 7) for each in kept]


def test_waiting_deliveries_are_found_by_their_targets(empty_database: Database) -> None:
    _make_folder(empty_database)
    _alembic(empty_database, command.upgrade, "0009")
    texts = {
        "strategy": "BACKOFF_RETRY",
        "content_format": "JSON",
        "topic": "t",
        "subscription": "s",
        "message_id": "m",
    }
    with empty_database.write() as connection:
        old = Table("deliveries", MetaData(), autoload_with=connection)
        rest = {**texts, "message_id": "m", "body": "b", "attempt": 1, "wake_at": 5, "created_at": 1}
        rows = [{**rest, "delivery_id": str(number), "target": f"http://{number % 2}"} for number in range(6)]
        connection.execute(insert(old), rows)
    migrate(empty_database)
    with empty_database.write() as connection:
        claimed = claim_deliveries(connection, 9, 20, 5, {"http://0": 5}, 5)
        assert [each.delivery_id for each in claimed] == ["1", "3", "5"]


def _alembic(database: Database, action: Callable[[Config, str], None], revision: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.set_main_option("path_separator", "os")
    with database.write() as connection:
        config.attributes["connection"] = connection
        action(config, revision)
