"""`flowserver doctor`: reports violations, repairs them, and returns an exit code."""

from pathlib import Path

import pytest
from sqlalchemy import delete, text, update

from flowserver.store.invocations.parking import park_invocation
from flowserver.store.invocations.rows import insert_invocations
from flowserver.store.schema.tables import execution_documents, executions, scopes
from flowserver.store.sql.database import Database
from tests.cli.conftest import one_line
from tests.store.rows import invocation_row
from tests.store.spoiling import another, change, keep_one_of_each, of_scope


@pytest.fixture
def doctor(run, database_url):
    return lambda *arguments: run("doctor", "--database-url", database_url, *arguments)


@pytest.fixture
def sick(database):
    """Two rows without an execution, one execution without a reason to wake up, a callback that cannot be delivered."""
    keep_one_of_each(database)
    with database.write() as connection:
        connection.execute(update(executions).values(deadline_at=9_000_000_000_000))
        connection.execute(update(scopes).where(scopes.c.wake_at.is_not(None)).values(wake_at=9_000_000_000_000))
        another(connection, "nobody's", "ready")
        connection.execute(delete(scopes).where(scopes.c.execution_id == "token"))
        connection.execute(change(executions, "ended", callback_token=None))
    return database


def test_a_new_database_is_healthy(doctor):
    result = doctor("--deep")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[1:] == [
        "violations: none",
        "parked executions: none",
        "parked invocations: none",
        "overdue, for a running server to do: none",
        "secrets that no key decrypts: none",
        "damage:",
        "  none",
        "healthy",
    ]


def test_violations_are_reported_and_not_changed(doctor, sick):
    result = doctor()
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert "violations: 3" in lines
    place = lines.index("  f/token (execution token): no-live-scope")
    assert lines[place + 1].startswith("    The execution runs, but no step list of it is left")
    assert lines[place + 2].startswith("    with --repair: set the execution aside")
    assert "  execution nobody's, step list 1: orphan" in lines
    assert "  f/parked (execution parked): a bug" in lines
    assert lines[-1] == "sick: see above"
    assert doctor().stdout == result.stdout


def test_repair_leaves_only_parked_executions(doctor, sick):
    result = doctor("--repair")
    assert result.exit_code == 5, result.stdout
    assert result.stdout.count("    repaired: ") == 3
    assert "  f/token (execution token): the stored state breaks the rule no-live-scope: " in result.stdout
    again = doctor()
    assert (again.exit_code, again.stdout.splitlines()[1]) == (5, "violations: none")
    assert "violations: none" in doctor("--repair").stdout


def test_parked_invocations_are_listed(doctor, database):
    with database.write() as connection:
        insert_invocations(connection, [invocation_row("k", invocation_id="report")])
        park_invocation(connection, "k", "node-1", "a bug")
    result = doctor()
    assert result.exit_code == 5
    lines = result.stdout.splitlines()
    assert lines[3:6] == [
        "parked invocations: 1",
        "  s f report (Enqueued): a bug",
        "  once the reason is gone: flowserver invocations restart SERVICE FUNCTION ID",
    ]
    assert lines[-1] == "healthy, but for what is parked above"


def test_overdue_work_is_not_a_violation(doctor, database):
    keep_one_of_each(database)
    with database.write() as connection:
        connection.execute(of_scope("token", 1, wake_at=9_000_000_000_000))
    result = doctor()
    assert result.exit_code == 5
    assert "  execution timer: a wait was over at 1970-01-01T00:00:00.005Z" in result.stdout
    assert "  execution timer: its time was up at 1970-01-01T00:16:40.000Z" in result.stdout
    assert "  execution task: no server has taken its call, attempt 0" in result.stdout


def test_damage_is_found_only_by_a_deep_check(doctor, database):
    keep_one_of_each(database)
    with database.write() as connection:
        connection.execute(update(executions).values(next_event_id=1))
        connection.execute(update(scopes).values(last_event_id=0))
        connection.execute(update(execution_documents).values(input="nonsense"))
    assert doctor().exit_code == 5
    result = doctor("--deep")
    assert result.exit_code == 1
    assert "  execution timer: its input cannot be read: " in result.stdout


@pytest.mark.parametrize("table", ["executions", "scopes", "execution_documents", "definitions"])
def test_a_page_that_sqlite_cannot_read_is_damage_with_a_name(run, sqlite_url, table):
    database = Database(sqlite_url)
    keep_one_of_each(database)
    with database.write() as connection:
        page = connection.execute(text(f"SELECT rootpage FROM sqlite_master WHERE name = '{table}'")).scalar_one()
        page_bytes = connection.execute(text("PRAGMA page_size")).scalar_one()
    database.close()
    with Path(sqlite_url.removeprefix("sqlite:///")).open("r+b") as file:
        file.seek(page_bytes * (page - 1))
        file.write(b"\xde\xad" * (page_bytes // 2))
    result = run("doctor", "--deep", "--database-url", sqlite_url)
    assert result.exit_code == 1
    assert f"table {table}: the database cannot read it: " in result.stdout
    assert run("doctor", "--database-url", sqlite_url).exit_code == (5 if table in UNREAD_BY_A_LOOK else 1)


UNREAD_BY_A_LOOK = ("execution_documents", "definitions")


def test_without_a_database(run, new_url, tmp_path):
    result = run("doctor", "--database-url", new_url)
    assert result.exit_code == 3
    assert "there is no database" in one_line(result)
    assert list((tmp_path / "data").iterdir()) == []
    assert run("doctor", "--database-url", "mysql://x").exit_code == 2
    assert run("doctor", "--bogus").exit_code == 2
    assert run("doctor", "--database-url", "postgresql://127.0.0.1:1/x").exit_code == 4


def test_a_bug_is_not_mistaken_for_a_violation(doctor, monkeypatch):
    def fail(*_):
        raise KeyError("a bug")

    monkeypatch.setattr("flowserver.cli.doctor.find_damage", fail)
    result = doctor("--deep")
    assert result.exit_code == 70
    assert "KeyError: 'a bug'" in result.stderr
