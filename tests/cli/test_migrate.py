"""`flowserver migrate`: the applied migrations, and every refusal."""

import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import text

from flowserver.server import sole_use
from flowserver.store.schema.migrating import migrate
from flowserver.store.schema.revision import REVISIONS, require_current_schema
from flowserver.store.sql.database import Database
from tests.cli.conftest import one_line


def test_creates_the_database_then_has_nothing_to_do(run, new_url):
    first = run("migrate", "--database-url", new_url)
    assert first.exit_code == 0
    assert first.stdout.splitlines()[0] == "applied migration 0001"
    file = new_url.removeprefix("sqlite:///")
    assert first.stdout.splitlines()[-1] == f"{file} is now up to date"
    assert run("migrate", "--database-url", new_url).stdout == f"{file} was already up to date\n"


def test_takes_the_database_from_the_environment(run, monkeypatch, new_url):
    monkeypatch.setenv("FLOWSERVER_DATABASE_URL", new_url)
    assert run("migrate").exit_code == 0
    assert Path(new_url.removeprefix("sqlite:///")).exists()


def test_postgresql(run, postgres_url):
    assert "is now up to date" in run("migrate", "--database-url", postgres_url).stdout
    database = Database(postgres_url)
    require_current_schema(database)
    database.close()


def test_refuses_while_a_server_uses_the_database(run, sqlite_url, sqlite_database):
    with sole_use(sqlite_database):
        result = run("migrate", "--database-url", sqlite_url)
    assert result.exit_code == 5
    assert one_line(result).startswith("flowserver: another flowserver uses this database")


def test_database_of_a_newer_version(run, sqlite_url, sqlite_database):
    with sqlite_database.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    result = run("migrate", "--database-url", sqlite_url)
    assert result.exit_code == 5
    assert "revision 9999, which this flowserver does not know: a newer one has migrated it" in one_line(result)


def test_an_older_sqlite_database_is_shown_backed_up_and_migrated(run, tmp_path):
    """And a failed backup changes nothing."""
    url, file = f"sqlite:///{tmp_path}/flows.db", tmp_path / "flows.db"
    database = Database(url)
    database.make_folder()
    _migrate_to(database, "0025")
    database.close()
    place = ("--database-url", url)
    plan = run("migrate", "--plan", *place)
    assert plan.exit_code == 0
    assert plan.stdout.startswith("  0026  Roles of access keys")
    assert plan.stdout.endswith(f"{file} lacks {len(REVISIONS) - 25} migrations\n")
    newest = Path(f"{file}.before-{REVISIONS[-1]}")
    newest.write_text("kept")

    done = run("migrate", *place)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.startswith(f"backed up to {newest}-2\napplied migration 0026\n")
    assert newest.read_text() == "kept"
    assert Path(f"{newest}-2").stat().st_mode & 0o777 == 0o600
    assert run("migrate", "--plan", *place).stdout == f"{file} is up to date\n"
    before = run("migrate", "--plan", "--database-url", f"sqlite:///{newest}-2")
    assert f"lacks {len(REVISIONS) - 25} migrations" in before.stdout


@pytest.mark.parametrize(
    ("package", "arguments", "extra"),
    [
        ("psycopg", ["migrate", "--database-url", "postgresql://flows@127.0.0.1/flows"], "postgres"),
        ("nats", ["serve", "--queues", "a=nats://127.0.0.1:1"], "nats"),
        ("opentelemetry.sdk.trace", ["serve", "--tracing", "otlp"], "otel"),
    ],
)
def test_what_an_extra_brings_is_refused_without_it(run, monkeypatch, package, arguments, extra):
    monkeypatch.delitem(sys.modules, "flowserver.tracing.otlp", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    result = run(*arguments)
    assert result.exit_code == 2
    assert f"pip install 'flowserver[{extra}]'" in one_line(result)


def test_a_plan_creates_nothing(run, new_url):
    assert run("migrate", "--plan", "--database-url", new_url).stdout.endswith("is new: all tables would be created\n")
    assert not Path(new_url.removeprefix("sqlite:///")).exists()


def _migrate_to(database: Database, revision: str) -> None:
    with database.write() as connection:
        config = Config()
        config.set_main_option("script_location", str(Path(__file__).parents[2] / "migrations"))
        config.set_main_option("path_separator", "os")
        config.attributes["connection"] = connection
        command.upgrade(config, revision)


@pytest.mark.parametrize(
    ("url", "words", "exit_code"),
    [
        ("mysql://localhost/flows", "must be sqlite:///FILE or postgresql://", 2),
        ("sqlite://", "must be sqlite:///FILE or postgresql://", 2),
        ("nonsense", "must be sqlite:///FILE or postgresql://", 2),
        (
            "postgresql://user:verysecret@127.0.0.1:1/flows",
            "database postgresql://user:***@127.0.0.1:1/flows refuses",
            4,
        ),
        ("sqlite:////proc/no/flows.db", "/proc/no", 3),
    ],
)
def test_databases_that_cannot_be_used(run, url, words, exit_code):
    result = run("migrate", "--database-url", url)
    assert result.exit_code == exit_code
    assert words in one_line(result)
    assert "verysecret" not in result.stderr


def test_file_that_is_not_a_database(run, tmp_path):
    (tmp_path / "notes.txt").write_text("These are not the bytes of an SQLite database." * 10)
    result = run("migrate", "--database-url", f"sqlite:///{tmp_path}/notes.txt")
    assert result.exit_code == 4
    assert one_line(result) == f"flowserver: the database {tmp_path}/notes.txt refuses: file is not a database"


@pytest.mark.parametrize("command", [["serve"], ["migrate"], ["restore", "backup.db"]])
def test_only_the_default_folder_is_created(run, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "backup.db").touch()
    result = run(*command, "--database-url", f"sqlite:///{tmp_path}/srv/flows/flows.db")
    assert result.exit_code == 3
    assert one_line(result) == (
        f"flowserver: there is no folder {tmp_path}/srv/flows for the database; "
        "create it, or correct --database-url (FLOWSERVER_DATABASE_URL)"
    )
    assert not (tmp_path / "srv").exists()
    assert run("migrate").exit_code == 0
    assert (tmp_path / "data" / "flowserver.db").exists()


FOREIGN = "CREATE TABLE songs (id INTEGER); CREATE TABLE albums (id INTEGER)"


ALEMBIC = "CREATE TABLE alembic_version (version_num TEXT); INSERT INTO alembic_version VALUES "


@pytest.mark.parametrize("revision", ["", f"{ALEMBIC} ('0016');", f"{ALEMBIC} ('ae1027a6acf')"])
@pytest.mark.parametrize("command", ["serve", "migrate", "doctor"])
def test_a_file_of_another_program_is_refused_and_not_changed(run, tmp_path, command, revision):
    file = tmp_path / "music.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(f"{FOREIGN}; {revision}")
    before = file.read_bytes()
    result = run(command, "--database-url", f"sqlite:///{file}")
    assert result.exit_code == 5
    assert one_line(result) == (
        f"flowserver: {file} is another program's: it has the tables albums, songs, and none of flowserver's; "
        "name a file for flowserver alone with --database-url (FLOWSERVER_DATABASE_URL)"
    )
    assert file.read_bytes() == before
    assert {each.name for each in tmp_path.iterdir()} == {"music.db"}


def test_a_file_of_another_program_whose_tables_are_in_its_log(run, tmp_path):
    file = tmp_path / "music.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(FOREIGN)
        result = run("migrate", "--database-url", f"sqlite:///{file}")
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    assert (result.exit_code, tables) == (5, (2,))
    assert f"{file} is another program's: it has the tables albums, songs, and none" in one_line(result)


def test_a_flowserver_database_whose_tables_are_in_its_log_is_opened(run, tmp_path):
    url = f"sqlite:///{tmp_path}/flows.db"
    database = Database(url)
    migrate(database)
    try:
        assert run("doctor", "--database-url", url).exit_code == 0
    finally:
        database.close()


def test_a_postgresql_schema_of_another_program(run, postgres_url):
    database = Database(postgres_url)
    with database.write() as connection:
        connection.execute(text("CREATE TABLE songs (id INTEGER)"))
        connection.execute(text("CREATE TABLE executions (id INTEGER)"))
    result = run("migrate", "--database-url", postgres_url)
    assert result.exit_code == 5
    assert "is another program's: it has the tables executions, but no alembic_version" in one_line(result)
    with database.write() as connection:
        connection.execute(text("DROP TABLE executions"))
    database.close()
    assert run("migrate", "--database-url", postgres_url).exit_code == 0


@pytest.mark.parametrize(
    "table",
    [
        f"{ALEMBIC} ('ae1027a6acf')",
        f"{ALEMBIC} ('0016'), ('0017')",
        "CREATE TABLE alembic_version (revision INTEGER); CREATE TABLE songs (id INTEGER)",
    ],
    ids=["unknown", "known", "other columns"],
)
def test_a_postgresql_schema_of_another_program_that_uses_alembic(run, postgres_url, table):
    """flowserver's migrations would begin at that program's revision."""
    database = Database(postgres_url)
    with database.write() as connection:
        connection.execute(text(table))
    results = {command: run(command, "--database-url", postgres_url) for command in ("migrate", "serve", "doctor")}
    database.close()
    assert {result.exit_code for result in results.values()} == {5}
    assert {one_line(result) for result in results.values()} == {
        "flowserver: the PostgreSQL schema public is another program's: it has Alembic's table alembic_version, but no "
        "tables of flowserver; name a database or a schema for flowserver with --database-url (FLOWSERVER_DATABASE_URL)"
    }


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_created_files_are_for_their_owner_only(run, tmp_path, monkeypatch, umask):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "data" / "flowserver.db"
    before = os.umask(umask)
    try:
        assert run("migrate").exit_code == 0
        database = Database(f"sqlite:///{file}")
        with database.write() as connection:
            connection.execute(text("SELECT 1"))
            modes = {each.name: each.stat().st_mode & 0o777 for each in file.parent.iterdir()}
        database.close()
    finally:
        os.umask(before)
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert {"flowserver.db", "flowserver.db-wal", "flowserver.db-shm"} <= modes.keys()
    assert set(modes.values()) == {0o600}


def test_a_file_that_exists_keeps_its_mode(run, tmp_path):
    file = tmp_path / "flows.db"
    file.touch()
    file.chmod(0o640)
    assert run("migrate", "--database-url", f"sqlite:///{file}").exit_code == 0
    assert file.stat().st_mode & 0o777 == 0o640
