"""Statements that PostgreSQL gets together: they act as if each had been sent alone, and all or none are committed."""

from contextlib import suppress
from typing import Any

import pytest
from sqlalchemy import Connection, bindparam, insert, select, update
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, OperationalError, ProgrammingError

from flowserver.store.schema.tables import secrets
from flowserver.store.sql.database import Database
from flowserver.store.sql.errors import was_refused
from flowserver.store.sql.prepared import (
    execute_many,
    execute_plain,
    fetch_all,
    require_later,
    send_waiting,
    write_later,
)
from tests.support.postgres import cut_sessions

FIND = select(secrets.c.value).where(secrets.c.name == bindparam("name"))
INSERT = insert(secrets)
UPDATE = update(secrets).where(secrets.c.name == bindparam("b_name"))


class Missing(Exception):
    """Raised for a row that is not there."""


def row(name: str, value: str) -> dict[str, Any]:
    return {"name": name, "value": value}


def change(name: str, value: str) -> dict[str, Any]:
    return {"b_name": name, "value": value}


def value_of(connection: Connection, name: str) -> str | None:
    rows = fetch_all(connection, FIND, {"name": name})
    return rows[0][0] if rows else None


def stored(database: Database, name: str) -> str | None:
    with database.read() as connection:
        return value_of(connection, name)


def test_statements_that_wait_keep_their_order(database: Database) -> None:
    with database.write() as connection:
        write_later(connection, INSERT, [row("a", "one"), row("b", "one")])
        write_later(connection, UPDATE, [change("a", "two")], unless_all_change=Missing)
        assert value_of(connection, "a") == "two"
        write_later(connection, UPDATE, [change("a", "three")])
        assert connection.execute(select(secrets.c.value).order_by(secrets.c.name)).scalars().all() == ["three", "one"]
        write_later(connection, UPDATE, [change("b", "four")])
    assert (stored(database, "a"), stored(database, "b")) == ("three", "four")


def test_a_row_that_does_not_change_undoes_all(database: Database) -> None:
    with pytest.raises(Missing), database.write() as connection:
        write_later(connection, INSERT, [row("a", "one")])
        write_later(connection, UPDATE, [change("a", "two"), change("b", "two")], unless_all_change=Missing)
        write_later(connection, UPDATE, [change("a", "three")])
    assert stored(database, "a") is None
    with database.write() as connection:
        write_later(connection, INSERT, [row("a", "one")])
        write_later(connection, UPDATE, [change("a", "two")], unless_all_change=Missing)
    assert stored(database, "a") == "two"


def test_a_row_that_is_required_and_missing_undoes_all(database: Database) -> None:
    with pytest.raises(Missing), database.write() as connection:
        require_later(connection, FIND, {"name": "a"}, Missing())
        write_later(connection, INSERT, [row("b", "one")])
    assert stored(database, "b") is None
    with database.write() as connection:
        write_later(connection, INSERT, [row("a", "one")])
        require_later(connection, FIND, {"name": "a"}, Missing())
    assert stored(database, "a") == "one"


def test_the_first_failure_counts_and_the_connection_remains(postgres_database: Database) -> None:
    with pytest.raises(IntegrityError, match="pk_secrets") as told, postgres_database.write() as connection:
        execute_many(connection, INSERT, [row("a", "one")])
        write_later(connection, INSERT, [row("a", "again")])
        write_later(connection, UPDATE, [change("b", "two")], unless_all_change=Missing)
    assert was_refused(told.value)
    with postgres_database.write() as connection:  # the last statement was not prepared
        write_later(connection, INSERT, [row("b", "one")])
        write_later(connection, UPDATE, [change("b", "two")], unless_all_change=Missing)
    assert (stored(postgres_database, "a"), stored(postgres_database, "b")) == (None, "two")


def test_a_rolled_back_transaction_leaves_nothing_waiting(database: Database) -> None:
    with suppress(Missing), database.write() as connection:
        write_later(connection, INSERT, [row("a", "one")])
        raise Missing
    with database.write() as connection:
        assert value_of(connection, "a") is None


def test_a_failed_transaction_is_not_taken_for_committed(postgres_database: Database) -> None:
    with pytest.raises(OperationalError, match="rolled back"), postgres_database.write() as connection:
        execute_many(connection, INSERT, [row("a", "one")])
        with suppress(ProgrammingError):
            execute_plain(connection, "SELECT nothing FROM nowhere")
    assert stored(postgres_database, "a") is None


@pytest.mark.parametrize("when", ["sent", "committed"])
def test_a_session_that_ends_before_the_statements_are_sent(postgres_database: Database, when: str) -> None:
    with pytest.raises(OperationalError) as told, postgres_database.write() as connection:
        execute_many(connection, INSERT, [row("a", "one")])
        write_later(connection, INSERT, [row("b", "one")])
        assert cut_sessions(postgres_database)
        if when == "sent":
            send_waiting(connection)
    assert told.value.connection_invalidated
    assert not was_refused(told.value)
    with postgres_database.write() as connection:
        write_later(connection, INSERT, [row("b", "two")])
    assert (stored(postgres_database, "a"), stored(postgres_database, "b")) == (None, "two")


def test_values_larger_than_any_buffer_between(database: Database) -> None:
    """Neither side may wait for the other to read."""
    large = {name: name * 3_000_000 for name in "ab"}
    with database.write() as connection:
        write_later(connection, INSERT, [row("a", large["a"])])
        require_later(connection, FIND, {"name": "a"}, Missing())
        require_later(connection, FIND, {"name": "a"}, Missing())
        write_later(connection, INSERT, [row("b", large["b"])])
        assert value_of(connection, "a") == large["a"]
    assert stored(database, "b") == large["b"]


def test_a_text_with_nul_is_refused_and_not_cut(postgres_database: Database) -> None:
    with pytest.raises(DataError, match="NUL"), postgres_database.write() as connection:
        fetch_all(connection, FIND, {"name": "a\0b"})
    with pytest.raises(DBAPIError), postgres_database.write() as connection:
        write_later(connection, INSERT, [row("a", "a\0b")])
    assert stored(postgres_database, "a") is None
