"""`flowserver restore`: its effects and its refusals."""

import shutil
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
    with closing(sqlite3.connect(file)) as connection:
        recorded = connection.execute("SELECT operation, api, result FROM audit_records").fetchall()
    assert recorded == [("database.restore", "CLI", "ok")]
    assert run("doctor", "--deep", "--database-url", new_url).exit_code == 0
    with ServerProcess(new_url):
        pass


def test_an_older_backup_names_the_next_command(run, new_url, backup):
    database = Database(f"sqlite:///{backup}")
    with database.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0001'"))
    database.close()
    assert "next: flowserver migrate" in run("restore", backup, "--database-url", new_url).stdout


def test_it_says_when_it_cannot_tell_what_has_called_functions_since(run, sqlite_url, backup):
    told = run("restore", backup, "--database-url", sqlite_url).stdout
    with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as replaced:
        replaced.execute("ALTER TABLE invocations RENAME COLUMN attempt TO tries")  # as in a version of another time
    untold = run("restore", backup, "--database-url", sqlite_url).stdout
    sentence = "nothing tells what has called functions since the backup"
    assert (sentence in told, sentence in untold) == (False, True)


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
    assert "pg_restore --dbname URL FILE, into a new database; then flowserver fence" in one_line(postgres)
    backup.write_bytes(b"no database at all" * 100)
    broken = run("restore", backup, "--database-url", sqlite_url)
    assert (broken.exit_code, one_line(broken)) == (1, f"flowserver: {backup}: file is not a database")


@pytest.mark.parametrize("checkpoint", [True, False], ids=["in the file", "in the log"])
def test_another_programs_file_with_a_log_is_refused_and_not_changed(run, tmp_path, backup, checkpoint):
    folder = tmp_path / "there"
    folder.mkdir()
    file = folder / "music.db"
    with closing(sqlite3.connect(tmp_path / "music.db")) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE songs (id INTEGER)")
        if checkpoint:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.execute("INSERT INTO songs VALUES (1)")
            connection.commit()
        for suffix in ("", "-wal"):  # as a crash leaves them
            shutil.copyfile(f"{tmp_path}/music.db{suffix}", f"{file}{suffix}")
    before = {each.name: each.read_bytes() for each in folder.iterdir()}
    result = run("restore", backup, "--database-url", f"sqlite:///{file}")
    assert result.exit_code == 5
    assert f"{file} is another program's: it has the tables songs, and none of flowserver's" in one_line(result)
    assert {each.name: each.read_bytes() for each in folder.iterdir()} == before


def test_a_backup_of_another_program_is_refused(run, sqlite_url, tmp_path):
    """A program that uses Alembic as well."""
    file = tmp_path / "music.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript("CREATE TABLE alembic_version (version_num TEXT); CREATE TABLE songs (id INTEGER)")
    result = run("restore", file, "--database-url", sqlite_url)
    assert (result.exit_code, one_line(result)) == (1, f"flowserver: {file} is not a database of flowserver")


def test_a_file_of_a_newer_version_is_reported(run, sqlite_url, backup):
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


def test_help_explains_the_limits_of_damaged(run):
    assert "sqlite3 FILE .recover" in " ".join(run("restore", "--help").stdout.split())


def test_a_key_that_was_disabled_stays_so_or_the_command_says_that_it_may_not(run, sqlite_url, new_url, tmp_path):
    assert run("keys", "create", "--database-url", sqlite_url).exit_code == 0
    (key_id,) = run("keys", "list", "-o", "name", "--database-url", sqlite_url).stdout.split()
    with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as connection:
        connection.execute("VACUUM INTO ?", [str(tmp_path / "keyed.db")])
    assert run("keys", "disable", key_id, "--database-url", sqlite_url).exit_code == 0
    warning = "nothing tells which of them were disabled since"
    assert warning not in run("restore", tmp_path / "keyed.db", "--database-url", sqlite_url).stdout
    assert run("keys", "disable", key_id, "--database-url", sqlite_url).exit_code == 3
    assert warning in run("restore", tmp_path / "keyed.db", "--database-url", new_url).stdout
    assert run("keys", "disable", key_id, "--database-url", new_url).exit_code == 0
