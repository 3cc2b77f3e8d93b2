"""The watch over the invariant sees a breach, complains of a view that is broken, and is patient with a database that
is away."""

from pathlib import Path

from sqlalchemy import text

from flowserver.store.sql.database import Database
from tests.chaos.invariant import look
from tests.chaos.journal import Journal
from tests.store.spoiling import VIOLATIONS, keep_one_of_each


def looked(database: Database) -> Journal:
    """The journal after one look."""
    journal = Journal(0.0, lambda _: None)
    look(database, journal)
    return journal


def test_all_is_well(database: Database) -> None:
    journal = looked(database)
    assert (journal.looks, journal.complaints) == (1, [])


def test_a_breach(database: Database) -> None:
    keep_one_of_each(database)
    rule, _, _, spoil = VIOLATIONS[0]
    with database.write() as connection:
        spoil(connection)
    complaints = looked(database).complaints
    assert any(rule in complaint for complaint in complaints), complaints


def test_a_view_that_is_missing(sqlite_database: Database) -> None:
    with sqlite_database.write() as connection:
        connection.execute(text("DROP VIEW violations"))
    journal = looked(sqlite_database)
    assert journal.looks == 0
    assert len(journal.complaints) == 1
    assert "cannot be read" in journal.complaints[0]


def test_a_view_that_is_missing_in_postgresql(postgres_url: str) -> None:
    """Its error is of another class there."""
    database = Database(postgres_url)
    try:
        assert "cannot be read" in looked(database).complaints[0]
    finally:
        database.close()


def test_a_database_that_is_away(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/nowhere/flowserver.db")
    try:
        journal = looked(database)
        assert (journal.looks, journal.complaints) == (0, [])
    finally:
        database.close()
