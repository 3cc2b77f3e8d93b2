"""Statements straight to the driver: errors are SQLAlchemy's own, and a lost connection is discarded."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
from sqlalchemy import Connection, bindparam, func, insert, select
from sqlalchemy.exc import OperationalError, ProgrammingError

from flowserver.store.schema.tables import secrets
from flowserver.store.sql.database import Database
from flowserver.store.sql.prepared import execute_many, execute_plain, fetch_all, fetch_rows

FIND = select(secrets.c.name, secrets.c.value).where(secrets.c.name >= bindparam("name"))
INSERT = insert(secrets)


def rows(*names: str) -> list[dict[str, Any]]:
    return [{"name": name, "value": f"of {name}"} for name in names]


def test_rows_are_named_tuples(database: Database) -> None:
    with database.write() as connection:
        assert fetch_rows(connection, FIND, {"name": ""}) == []
        assert fetch_all(connection, FIND, {"name": ""}) == []
        assert execute_many(connection, INSERT, rows("a", "b")) == 2
        [row] = fetch_rows(connection, FIND, {"name": "b"})
        assert row._asdict() == {"name": "b", "value": "of b"}
        assert row.value == "of b"
        assert fetch_all(connection, FIND, {"name": "b"}) == [("b", "of b")]


def test_an_invalid_statement_costs_no_connection(database: Database) -> None:
    nonsense = OperationalError if database.is_sqlite else ProgrammingError
    with database.write() as connection:
        with pytest.raises(nonsense, match="nowhere") as told, connection.begin_nested():
            execute_plain(connection, "SELECT nothing FROM nowhere")
        assert not told.value.connection_invalidated
        assert execute_many(connection, INSERT, rows("a")) == 1


def end_session(connection: Connection, database: Database) -> None:
    """End the session from another session, as an operator or a server shutdown does; returns when it has ended."""
    [(session,)] = fetch_all(connection, select(func.pg_backend_pid()), {})
    with database.session() as other:
        assert other.execute(select(func.pg_terminate_backend(session, 20_000))).scalar_one()


WORK: dict[str, Callable[[Connection], Any]] = {
    "execute_many": lambda c: execute_many(c, INSERT, rows("b")),
    "execute_plain": lambda c: execute_plain(c, "SAVEPOINT other"),
    "fetch_all": lambda c: fetch_all(c, FIND, {"name": ""}),
}


@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("within", ["transaction", "savepoint"])
def test_an_ended_session_is_discarded(postgres_database: Database, work: str, within: str) -> None:
    database = postgres_database
    with pytest.raises(OperationalError) as told, database.write() as connection:
        execute_many(connection, INSERT, rows("a"))
        with connection.begin_nested() if within == "savepoint" else nullcontext():
            end_session(connection, database)
            WORK[work](connection)
    assert told.value.connection_invalidated
    with database.write() as connection:
        assert fetch_all(connection, FIND, {"name": ""}) == []
        assert execute_many(connection, INSERT, rows("a")) == 1
