"""The watch over the invariant finds violations, complains if the view is broken, and waits while the
database is down.
"""

from pathlib import Path

from sqlalchemy import text

from flowserver.store.sql.database import Database
from tests.chaos.invariant import check_once
from tests.chaos.journal import Journal
from tests.store.spoiling import VIOLATIONS, keep_one_of_each


def checked(database: Database) -> Journal:
    """The journal after one check."""
    journal = Journal(0.0, lambda _: None)
    check_once(database, journal)
    return journal


def test_no_violation(database: Database) -> None:
    journal = checked(database)
    assert (journal.checks, journal.complaints) == (1, [])


def test_a_violation(database: Database) -> None:
    keep_one_of_each(database)
    rule, _, _, spoil = VIOLATIONS[0]
    with database.write() as connection:
        spoil(connection)
    complaints = checked(database).complaints
    assert any(rule in complaint for complaint in complaints), complaints


def test_a_missing_view(sqlite_database: Database) -> None:
    with sqlite_database.write() as connection:
        connection.execute(text("DROP VIEW violations"))
    journal = checked(sqlite_database)
    assert journal.checks == 0
    assert len(journal.complaints) == 1
    assert "cannot be read" in journal.complaints[0]


def test_a_missing_view_in_postgresql(postgres_url: str) -> None:
    """PostgreSQL raises an error of another class."""
    database = Database(postgres_url)
    try:
        assert "cannot be read" in checked(database).complaints[0]
    finally:
        database.close()


def test_a_database_that_is_down(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/nowhere/flowserver.db")
    try:
        journal = checked(database)
        assert (journal.checks, journal.complaints) == (0, [])
    finally:
        database.close()
