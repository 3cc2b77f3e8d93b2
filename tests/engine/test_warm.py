"""Executions kept between two turns: bounded, and never used when the database has moved on."""

import pytest
from sqlalchemy import update

from flowserver.engine import warm
from flowserver.engine.warm import WarmExecutions
from flowserver.machine.state import WaitKind
from flowserver.store.database import Database
from flowserver.store.loading import StoredExecution
from flowserver.store.tables import executions
from tests.store.rows import NODE, new_execution, save_new, scope


def stored(database: Database, name: str) -> StoredExecution:
    """A saved execution that waits for a call, as its batch leaves it."""
    with database.write() as connection:
        saved = save_new(connection, new_execution(name), scope(1, WaitKind.TASK, local={"text": "x" * 100}))
    saved.version = 1
    return saved


def take(database: Database, kept: WarmExecutions, *names: str) -> list[str]:
    with database.write() as connection:
        return sorted(kept.take(connection, names))


def test_what_is_kept_is_taken_once(database: Database) -> None:
    kept = WarmExecutions()
    kept.keep(stored(database, "e"))
    assert take(database, kept, "other") == []
    assert take(database, kept, "e", "other") == ["e"]
    assert take(database, kept, "e") == []


def test_an_old_copy_is_not_used(database: Database) -> None:
    kept = WarmExecutions()
    for name in ("changed", "deleted", "same"):
        kept.keep(stored(database, name))
    with database.write() as connection:
        connection.execute(update(executions).where(executions.c.execution_id == "changed").values(version=2))
        connection.execute(executions.delete().where(executions.c.execution_id == "deleted"))
    assert take(database, kept, "changed", "deleted", "same") == ["same"]


@pytest.mark.parametrize(("limit", "value"), [("EXECUTIONS_MAX", 2), ("CHARACTERS_MAX", 250)])
def test_the_least_recently_used_goes_first(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(warm, limit, value)
    kept = WarmExecutions()
    first, second, third = (stored(sqlite_database, name) for name in "abc")
    kept.keep(first)
    kept.keep(second)
    assert take(sqlite_database, kept, "a") == ["a"]
    kept.keep(first)
    kept.keep(third)
    assert take(sqlite_database, kept, "a", "b", "c") == ["a", "c"]


def test_the_count_of_characters_follows_the_rows(sqlite_database: Database) -> None:
    execution = stored(sqlite_database, "e")
    size = execution.characters
    assert size == len('{"text":""}') + 100
    assert execution.leases == {1: NODE}
    execution.note_removed(1)
    assert (execution.characters, execution.leases, execution.saved) == (0, {}, {})


def test_clearing_forgets_all(sqlite_database: Database) -> None:
    kept = WarmExecutions()
    kept.keep(stored(sqlite_database, "e"))
    kept.clear()
    assert take(sqlite_database, kept, "e") == []
