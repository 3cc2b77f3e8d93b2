"""The files of a SQLite database: a replaced file is detected, and a log never gets into another file."""

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from sqlalchemy import Connection, func, insert, select

from flowserver.store.schema.tables import secrets
from flowserver.store.sql.database import Database
from flowserver.store.sql.sqlite_files import (
    FilesReplaced,
    LogOfAnotherFile,
    Origin,
    SqliteFiles,
    log_of,
    origin_of,
    read_header,
    read_log,
    read_origin,
    write_origin,
)
from tests.support.server import PATIENCE_SECONDS, clean_environment, start_module

MANY = 1_200
"""More rows than the log holds: SQLite restarts the log meanwhile."""


@pytest.fixture
def file(sqlite_url: str) -> Path:
    return Path(sqlite_url.removeprefix("sqlite:///"))


def crash(file: Path, rows: int = 3) -> None:
    """A process that writes and is killed."""
    process = start_module("tests.store.sql.crashing", [f"sqlite:///{file}", str(rows)], clean_environment())
    said, _ = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 9, said
    assert log_of(file).stat().st_size > 0


def add(database: Database, name: str) -> None:
    with database.write() as connection:
        connection.execute(insert(secrets), {"name": name, "value": "x"})


def count(connection: Connection) -> int:
    return connection.execute(select(func.count()).select_from(secrets)).scalar_one()


def rows_of(file: Path) -> int:
    database = Database(f"sqlite:///{file}")
    try:
        return database.run_read(count)
    finally:
        database.close()


def vacuum_into(file: Path, backup: Path) -> None:
    connection = sqlite3.connect(file)
    connection.execute("VACUUM INTO ?", [str(backup)])
    connection.close()


def copy_into(file: Path, backup: Path) -> None:
    source, target = sqlite3.connect(file), sqlite3.connect(backup)
    source.backup(target)
    source.close()
    target.close()


class TestReplacedByHand:
    @pytest.mark.parametrize("rows", [3, MANY])
    @pytest.mark.parametrize("make_backup", [vacuum_into, copy_into])
    @pytest.mark.parametrize("put", [shutil.copyfile, shutil.copy2, os.replace])
    def test_a_backup_beside_a_log_is_refused(
        self, file: Path, tmp_path: Path, make_backup: Callable, put: Callable, rows: int
    ) -> None:
        backup = tmp_path / "backup.db"
        crash(file, 2)
        make_backup(file, backup)
        crash(file, rows)
        put(backup, file)
        before = file.read_bytes(), log_of(file).read_bytes()
        for _ in range(2):
            with pytest.raises(LogOfAnotherFile, match="flowserver restore FILE"):
                rows_of(file)
        assert (file.read_bytes(), log_of(file).read_bytes()) == before

    @pytest.mark.parametrize("empty", [False, True])
    def test_a_deleted_file_is_not_created_anew(self, file: Path, empty: bool) -> None:
        crash(file)
        file.unlink()
        if empty:
            file.touch()
        with pytest.raises(LogOfAnotherFile):
            rows_of(file)
        assert log_of(file).exists()


class TestNoFalseAlarm:
    @pytest.mark.parametrize("rows", [1, 3, MANY, 2 * MANY])
    def test_after_crashes(self, file: Path, rows: int) -> None:
        crash(file, rows)
        crash(file, rows)
        assert rows_of(file) == 2 * rows
        assert not log_of(file).exists()  # the last connection copied everything into the file

    def test_when_all_files_are_moved(self, file: Path, tmp_path: Path) -> None:
        crash(file, MANY)
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        for path in tmp_path.glob("flowserver.db*"):
            shutil.copyfile(path, elsewhere / path.name)
        assert rows_of(elsewhere / file.name) == MANY

    @pytest.mark.parametrize(
        "note", ["", "{", '{"salt": "00", "headers": [[1, 2, 3, 4], null]}', '{"salt": 1, "headers": 7}']
    )
    def test_with_an_unusable_marker(self, file: Path, note: str) -> None:
        crash(file)
        origin_of(file).write_text(note)
        assert rows_of(file) == 3

    @pytest.mark.parametrize(
        "statement", ["VACUUM", "PRAGMA wal_checkpoint(PASSIVE)", "PRAGMA wal_checkpoint(TRUNCATE)"]
    )
    def test_after_a_shell_had_it_open(self, file: Path, statement: str) -> None:
        """Also a shell that is killed: it leaves the log, and the file up to the last checkpoint."""
        crash(file)
        program = f"import os, sqlite3\nc = sqlite3.connect({str(file)!r})\nc.execute({statement!r})\nos._exit(0)"
        subprocess.run([sys.executable, "-c", program], check=True)
        assert rows_of(file) == 3

    def test_after_the_file_lost_unsynchronized_writes(self, file: Path) -> None:
        """A power cut undoes the part of a checkpoint that was not yet synchronized."""
        crash(file)
        before = file.read_bytes()
        program = (
            f"import os, sqlite3\nc = sqlite3.connect({str(file)!r})\nc.execute('PRAGMA wal_checkpoint')\nos._exit(0)"
        )
        subprocess.run([sys.executable, "-c", program], check=True)
        assert file.read_bytes() != before
        file.write_bytes(before)
        assert rows_of(file) == 3


class TestTakenAway:
    @pytest.mark.parametrize("what", ["delete", "replace", "delete the log", "replace the log"])
    def test_nothing_is_acknowledged_from_then_on(self, file: Path, tmp_path: Path, what: str) -> None:
        database, other = Database(f"sqlite:///{file}"), shutil.copyfile(file, tmp_path / "other")
        told: list[bool] = []
        database.on_loss(lambda: told.append(True))
        add(database, "kept")
        path = log_of(file) if what.endswith("log") else file
        path.unlink() if what.startswith("delete") else other.replace(path)
        for name in ("lost", "lost, too"):
            with pytest.raises(FilesReplaced, match="under the running server"):
                add(database, name)
        assert told == [True]
        assert database.is_lost

    def test_no_connection_is_made_to_another_file(self, file: Path, tmp_path: Path) -> None:
        database = Database(f"sqlite:///{file}")
        with database.read():
            Path(shutil.copyfile(file, tmp_path / "other")).replace(file)
            with pytest.raises(FilesReplaced), database.read():
                raise AssertionError("it is open")

    def test_closing_leaves_the_log_of_the_other_file(self, file: Path, tmp_path: Path) -> None:
        database = Database(f"sqlite:///{file}")
        add(database, "kept")
        Path(shutil.copyfile(file, tmp_path / "other")).replace(file)
        (tmp_path / "log").write_bytes(b"of the other file")
        (tmp_path / "log").replace(log_of(file))
        with pytest.raises(FilesReplaced):
            add(database, "lost")
        database.close()
        assert log_of(file).read_bytes() == b"of the other file"


def test_the_marker_is_the_first_bytes_of_the_log(file: Path) -> None:
    header = read_header(file)
    database = Database(f"sqlite:///{file}")
    add(database, "one")
    waiting, noted = read_log(file), read_origin(file)
    assert waiting is not None
    assert noted == Origin(waiting[0], header)
    assert origin_of(file).stat().st_mode & 0o777 == 0o600
    assert header not in waiting[1]
    add(database, "two")
    assert read_origin(file) == noted
    database.close()


def test_page_1_is_marked_once_a_second_and_only_with_a_change(file: Path) -> None:
    now, marks = [0.0], []
    files = SqliteFiles(file, lambda: now[0])
    driver = SimpleNamespace(execute=marks.append)
    for now[0] in (0.0, 0.5, 0.9, 1.0, 1.5, 7.0):
        files.mark(driver)
    assert len(marks) == 3
    before = read_header(file)
    database = Database(f"sqlite:///{file}")
    with database.write() as connection:
        count(connection)
    database.close()
    assert read_header(file) == before


def test_a_marker_is_replaced_in_one_step(file: Path) -> None:
    write_origin(file, Origin("ab", (1, 2)), durably=True)
    write_origin(file, Origin("cd", None, (3, 4)))
    assert read_origin(file) == Origin("cd", None, (3, 4))
    assert [path.name for path in file.parent.glob("*.new")] == []
