"""`flowserver restore`: what it does and what it refuses."""

import sqlite3
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from sqlalchemy import text

from flowserver.store.sql.database import Database
from tests.cli.conftest import one_line
from tests.support.server import ServerProcess


@pytest.fixture
def backup(sqlite_url: str, tmp_path: Path) -> Path:
    with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as connection:
        connection.execute("VACUUM INTO ?", [str(tmp_path / "backup.db")])
    return tmp_path / "backup.db"


def test_a_backup_is_restored_and_served(run, new_url, backup):
    result = run("restore", backup, "--database-url", new_url)
    file = Path(new_url.removeprefix("sqlite:///"))
    assert (result.exit_code, result.stdout) == (0, f"restored {file} from {backup}\n")
    assert run("doctor", "--deep", "--database-url", new_url).exit_code == 0
    with ServerProcess(new_url):
        pass


def test_an_older_one_says_what_is_next(run, new_url, backup):
    database = Database(f"sqlite:///{backup}")
    with database.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0001'"))
    database.close()
    assert "next: flowserver migrate" in run("restore", backup, "--database-url", new_url).stdout


def test_not_under_a_running_server(run, sqlite_url, backup):
    with ServerProcess(sqlite_url):
        result = run("restore", backup, "--database-url", sqlite_url)
    assert result.exit_code == 5
    assert one_line(result).startswith("flowserver: another flowserver uses this database")


def test_refusals(run, sqlite_url, tmp_path, backup):
    gone = run("restore", tmp_path / "gone", "--database-url", sqlite_url)
    assert (gone.exit_code, one_line(gone)) == (3, f"flowserver: there is no file {tmp_path / 'gone'}")
    postgres = run("restore", backup, "--database-url", "postgresql://127.0.0.1/flows")
    assert postgres.exit_code == 2
    assert "pg_restore --dbname URL --clean --if-exists FILE" in one_line(postgres)
    backup.write_bytes(b"no database at all" * 100)
    broken = run("restore", backup, "--database-url", sqlite_url)
    assert (broken.exit_code, one_line(broken)) == (1, f"flowserver: {backup}: file is not a database")


def test_a_file_of_a_newer_version_is_named(run, sqlite_url, backup):
    database = Database(f"sqlite:///{backup}")
    with database.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    database.close()
    newer = run("restore", backup, "--database-url", sqlite_url)
    assert (newer.exit_code, one_line(newer).startswith(f"flowserver: {backup}: ")) == (5, True)


def test_a_backup_from_before_the_first_key_does_not_open_the_server(run, sqlite_url, backup):
    file = Path(sqlite_url.removeprefix("sqlite:///"))
    assert run("keys", "create", "--database-url", sqlite_url).exit_code == 0
    said = run("restore", backup, "--database-url", sqlite_url).stdout
    assert "the server stays closed until `flowserver keys create`, or `flowserver keys open`" in said
    assert f"the database before it is {file}.before-restore; delete it when you do not need it" in said
    with ServerProcess(sqlite_url) as server:
        assert "AccessDenied" in httpx.get(f"{server.url}/v1/flows").text


def test_a_database_that_cannot_be_read_may_have_had_keys(run, sqlite_url, backup):
    Path(sqlite_url.removeprefix("sqlite:///")).write_bytes(b"no database at all" * 100)
    said = run("restore", backup, "--database-url", sqlite_url).stdout
    assert "could not be read; if it had access keys, create one before you start the server" in said


def test_help_says_what_damaged_cannot_do(run):
    assert "sqlite3 FILE .recover" in " ".join(run("restore", "--help").stdout.split())
