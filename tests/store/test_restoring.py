"""Restoring: the old database or the new one, whole, wherever it is interrupted."""

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, insert, select, text

from flowserver.store.database import Database
from flowserver.store.restoring import BackupUnusable, restore_file
from flowserver.store.sqlite_files import LogOfAnotherFile
from flowserver.store.tables import execution_documents, secrets
from tests.store.spoiling import keep_one_of_each
from tests.store.test_sqlite_files import crash


@pytest.fixture
def file(sqlite_url: str) -> Path:
    """A database with a log that a crash has left; what is newer is only there."""
    file = Path(sqlite_url.removeprefix("sqlite:///"))
    add(file, "old")
    crash(file, 20)
    return file


@pytest.fixture
def backup(sqlite_url: str, tmp_path: Path, file: Path) -> Path:
    """A copy that has other rows and no log."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    for path in tmp_path.glob("flowserver.db*"):
        shutil.copyfile(path, folder / path.name)
    add(folder / file.name, "new")
    with closing(sqlite3.connect(folder / file.name)) as connection:
        connection.execute("VACUUM INTO ?", [str(tmp_path / "backup.db")])
    return tmp_path / "backup.db"


def add(file: Path, name: str) -> None:
    change(file, insert(secrets).values(name=name, value="x"))


def change(file: Path, statement: Any) -> None:
    database = Database(f"sqlite:///{file}")
    with database.write() as connection:
        connection.execute(statement)
    database.close()


def names_of(file: Path) -> set[str]:
    database = Database(f"sqlite:///{file}")
    try:
        return set(database.run_read(lambda connection: connection.execute(select(secrets.c.name)).scalars().all()))
    finally:
        database.close()


def files_beside(file: Path) -> set[str]:
    return {path.name for path in file.parent.glob(f"{file.name}*")}


def test_the_backup_takes_the_place_and_the_log_is_gone(file: Path, backup: Path) -> None:
    kept = backup.read_bytes()
    assert restore_file(backup, file) == []
    assert files_beside(file) == {file.name}
    assert file.stat().st_mode & 0o777 == 0o600
    assert "new" in names_of(file)
    assert backup.read_bytes() == kept


def test_a_file_that_was_copied_there_by_hand_is_restored_from_itself(file: Path, backup: Path) -> None:
    shutil.copyfile(backup, file)
    with pytest.raises(LogOfAnotherFile):
        names_of(file)
    assert restore_file(file, file) == []
    assert names_of(file) == names_of(backup)


def test_a_backup_with_a_log_of_its_own_is_taken_with_it(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    for suffix in ("", "-wal"):
        shutil.copyfile(f"{file}{suffix}", f"{other}{suffix}")
    before = names_of(file)
    add(file, "later")
    assert restore_file(other, file) == []
    assert names_of(file) == before


def test_a_database_that_does_not_exist_yet(backup: Path, tmp_path: Path) -> None:
    assert restore_file(backup, tmp_path / "fresh.db") == []
    assert "new" in names_of(tmp_path / "fresh.db")


def test_what_is_damaged_is_refused_unless_it_is_accepted(file: Path, backup: Path) -> None:
    database = Database(f"sqlite:///{backup}")
    keep_one_of_each(database)
    with database.write() as connection:
        connection.execute(delete(execution_documents).where(execution_documents.c.execution_id == "timer"))
    database.close()
    before = names_of(file)
    with pytest.raises(BackupUnusable, match="execution timer: it has no row in execution_documents"):
        restore_file(backup, file)
    assert names_of(file) == before
    assert "-restoring" not in str(files_beside(file))
    found = restore_file(backup, file, accepts_damage=True)
    assert "execution timer: it has no row in execution_documents" in found


@pytest.mark.parametrize("content", [b"", b"no database" * 100])
def test_what_is_no_database_is_refused(file: Path, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "bad").write_bytes(content)
    before = names_of(file)
    with pytest.raises(BackupUnusable):
        restore_file(tmp_path / "bad", file)
    assert names_of(file) == before


def test_an_older_schema_is_restored_as_it_is(file: Path, backup: Path) -> None:
    change(backup, text("UPDATE alembic_version SET version_num = '0001'"))
    assert restore_file(backup, file) == []


class Killed(BaseException):
    """Stands for the end of the process: nothing of ours runs after it."""


@pytest.mark.parametrize("by_hand", [False, True])
@pytest.mark.parametrize("step", range(30))
def test_killed_anywhere_it_is_the_old_database_or_the_new_one(
    file: Path, backup: Path, monkeypatch: pytest.MonkeyPatch, step: int, by_hand: bool
) -> None:
    """Each call that changes the folder is a place to be killed at."""
    old, new = names_of_copy(file), names_of(backup)
    if by_hand:
        shutil.copyfile(backup, file)
    left = [step]

    def dying(act: Callable) -> Callable:
        def may_die(*arguments: Any, **options: Any) -> Any:
            if left[0] == 0:
                raise Killed
            left[0] -= 1
            return act(*arguments, **options)

        return may_die

    with monkeypatch.context() as patch:
        for place, name in ((Path, "unlink"), (Path, "replace"), (os, "fsync"), (os, "chown"), (os, "open")):
            patch.setattr(place, name, dying(getattr(place, name)))
        with suppress(Killed):
            restore_file(backup, file)
    try:
        assert names_of(file) in ([new] if by_hand else [old, new])
    except LogOfAnotherFile:
        assert by_hand  # as before
    assert restore_file(backup, file) == []
    assert names_of(file) == new
    assert files_beside(file) == {file.name}


def names_of_copy(file: Path) -> set[str]:
    """What a database with its log holds, which reading would bring into the file."""
    folder = file.parent / "copy"
    folder.mkdir()
    for path in file.parent.glob(f"{file.name}*"):
        shutil.copyfile(path, folder / path.name)
    return names_of(folder / file.name)
