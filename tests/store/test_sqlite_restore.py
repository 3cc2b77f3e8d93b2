"""Restoring: the result is the whole old database or the whole new one, wherever it is interrupted."""

import errno
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, insert, select, text

from flowserver.base.nonces import Nonce
from flowserver.operations.access import make_access_key
from flowserver.store import sqlite_restore
from flowserver.store.access_keys import (
    Admission,
    disable_access_key,
    insert_access_key,
    list_access_keys,
    read_admission,
    use_nonce,
)
from flowserver.store.schema.tables import access_keys, execution_documents, secrets
from flowserver.store.sql.database import Database
from flowserver.store.sql.sqlite_files import LogOfAnotherFile, log_of
from flowserver.store.sqlite_restore import BackupUnusable, kept_of, restore_file
from tests.store.spoiling import keep_one_of_each
from tests.store.sql.test_sqlite_files import crash

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def crashed(migrated_sqlite: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with a log that a crash has left; the newest rows are only in the log. Tests take copies of it."""
    file = shutil.copy(migrated_sqlite, tmp_path_factory.mktemp("crashed") / "flowserver.db")
    add(file, "old")
    crash(file, 20)
    return file


@pytest.fixture(scope="module")
def backed_up(crashed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup of `crashed` that has one row more and no log."""
    folder = tmp_path_factory.mktemp("backed-up")
    file = copy_with_log(crashed, folder)
    add(file, "new")
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("VACUUM INTO ?", [str(folder / "backup.db")])
    return folder / "backup.db"


@pytest.fixture
def file(crashed: Path, tmp_path: Path) -> Path:
    """The test's own copy of `crashed`."""
    return copy_with_log(crashed, tmp_path)


@pytest.fixture
def backup(backed_up: Path, tmp_path: Path) -> Path:
    """The test's own copy of `backed_up`."""
    return Path(shutil.copy(backed_up, tmp_path))


def copy_with_log(file: Path, folder: Path) -> Path:
    """Copy a database and its neighbouring files, as they are."""
    for path in file.parent.glob(f"{file.name}*"):
        shutil.copy(path, folder)
    return folder / file.name


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


def test_the_backup_replaces_the_database_and_its_log(file: Path, backup: Path) -> None:
    kept = backup.read_bytes()
    assert restore_file(backup, file).findings == []
    assert files_beside(file) == {file.name, f"{file.name}.before-restore"}
    assert file.stat().st_mode & 0o777 == 0o600
    assert "new" in names_of(file)
    assert backup.read_bytes() == kept


def test_a_file_that_was_copied_there_by_hand_is_restored_from_itself(file: Path, backup: Path) -> None:
    shutil.copyfile(backup, file)
    with pytest.raises(LogOfAnotherFile):
        names_of(file)
    assert restore_file(file, file).findings == []
    assert names_of(file) == names_of(backup)


def test_a_backups_own_log_is_restored_with_it(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    for suffix in ("", "-wal"):
        shutil.copyfile(f"{file}{suffix}", f"{other}{suffix}")
    before = names_of(file)
    add(file, "later")
    assert restore_file(other, file).findings == []
    assert names_of(file) == before


def test_a_database_that_does_not_exist_yet(backup: Path, tmp_path: Path) -> None:
    assert restore_file(backup, tmp_path / "fresh.db").findings == []
    assert "new" in names_of(tmp_path / "fresh.db")


def test_a_damaged_backup_is_refused_unless_accepted(file: Path, backup: Path) -> None:
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
    restored = restore_file(backup, file, accepts_damage=True)
    assert "execution timer: it has no row in execution_documents" in restored.findings


@pytest.mark.parametrize("content", [b"", b"no database" * 100])
def test_a_file_that_is_not_a_database_is_refused(file: Path, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "bad").write_bytes(content)
    before = names_of(file)
    with pytest.raises(BackupUnusable, match=f"^{tmp_path / 'bad'}"):
        restore_file(tmp_path / "bad", file)
    assert names_of(file) == before


def test_an_older_schema_is_restored_unchanged(file: Path, backup: Path) -> None:
    change(backup, text("UPDATE alembic_version SET version_num = '0001'"))
    assert restore_file(backup, file).findings == []


class TestKeys:
    """A restore does not open a server that needed a key."""

    @pytest.mark.parametrize("lost", [False, True])
    def test_are_remembered_from_the_log_of_the_old_database(self, file: Path, backup: Path, lost: bool) -> None:
        add_key(file)
        if lost:
            change(file, delete(access_keys))
        crash(file)
        restored = restore_file(backup, file)
        assert (restored.admission, restored.keys_unknown) == (Admission.LOST, False)
        assert admission_of(file) is Admission.LOST

    def test_those_of_a_version_without_a_record(self, file: Path, backup: Path) -> None:
        add_key(file)
        change(file, delete(secrets))
        assert restore_file(backup, file).admission is Admission.LOST

    def test_into_a_backup_of_an_older_schema(self, file: Path, backup: Path) -> None:
        add_key(file)
        change(backup, text("UPDATE alembic_version SET version_num = '0001'"))
        assert restore_file(backup, file).admission is Admission.LOST

    def test_those_of_the_backup_count(self, file: Path, backup: Path) -> None:
        add_key(backup)
        add_key(file)
        assert restore_file(backup, file).admission is Admission.KEYED

    def test_where_there_was_never_one_it_stays_open(self, file: Path, backup: Path) -> None:
        restored = restore_file(backup, file)
        assert (restored.admission, restored.keys_unknown) == (Admission.OPEN, False)

    @pytest.mark.parametrize("content", [b"no database" * 100, None])
    def test_of_an_unreadable_database_are_unknown(self, file: Path, backup: Path, content: bytes | None) -> None:
        if content is None:
            file.unlink()
        else:
            log_of(file).unlink()
            file.write_bytes(content)
        restored = restore_file(backup, file)
        assert (restored.admission, restored.keys_unknown) == (Admission.OPEN, True)

    @pytest.mark.parametrize("had_keys", [False, True])
    def test_of_a_file_beside_a_foreign_log(self, file: Path, backup: Path, had_keys: bool) -> None:
        shutil.copyfile(backup, file.parent / "keyed.db")
        if had_keys:
            add_key(file.parent / "keyed.db")
        shutil.copyfile(file.parent / "keyed.db", file)
        restored = restore_file(backup, file)
        assert restored.admission is (Admission.LOST if had_keys else Admission.OPEN)
        assert restored.keys_unknown


class TestWhatIsNotUndone:
    """A key may have been disabled because it has leaked, and a request recorded before the restore."""

    @pytest.fixture
    def leaked(self, file: Path, tmp_path: Path) -> Path:
        """A backup of `file` with two keys, of which one was disabled later; the last changes are in the log."""
        for name in ("kept", "leaked"):
            add_key(file, name)
        backup = tmp_path / "earlier.db"
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("VACUUM INTO ?", [str(backup)])
        database = Database(f"sqlite:///{file}")
        with database.write() as connection:
            disable_access_key(connection, "leaked", 7)
            use_nonce(connection, Nonce("kept", "n", 9))
        database.close()
        crash(file)
        return backup

    def test_a_disabled_key_stays_disabled(self, file: Path, leaked: Path) -> None:
        assert restore_file(leaked, file).stays_disabled
        assert disabled_in(file) == {"kept": None, "leaked": 7}
        assert files_beside(file) == {file.name, kept_of(file).name}

    def test_a_used_nonce_stays_used(self, file: Path, leaked: Path) -> None:
        restore_file(leaked, file)
        database = Database(f"sqlite:///{file}")
        with database.write() as connection:
            assert not use_nonce(connection, Nonce("kept", "n", 9))
            assert use_nonce(connection, Nonce("kept", "new", 9))
        database.close()

    def test_also_by_a_second_restore(self, file: Path, leaked: Path) -> None:
        restore_file(leaked, file)
        restore_file(leaked, file)
        assert disabled_in(file) == {"kept": None, "leaked": 7}

    @pytest.mark.parametrize("loss", ["no column", "no database"])
    def test_what_cannot_be_read_is_reported(self, file: Path, leaked: Path, loss: str) -> None:
        if loss == "no column":
            change(file, text("ALTER TABLE access_keys RENAME COLUMN disabled_at TO other"))
        else:
            log_of(file).unlink()
            file.write_bytes(b"no database" * 100)
        restored = restore_file(leaked, file)
        assert (restored.admission, restored.stays_disabled) == (Admission.KEYED, False)
        assert disabled_in(file) == {"kept": None, "leaked": None}


def add_key(file: Path, key_id: str | None = None) -> None:
    new = make_access_key("", 0).key
    database = Database(f"sqlite:///{file}")
    with database.write() as connection:
        insert_access_key(connection, replace(new, access_key_id=key_id or new.access_key_id))
    database.close()


def disabled_in(file: Path) -> dict[str, int | None]:
    """Since when each key is disabled."""
    database = Database(f"sqlite:///{file}")
    try:
        return {key.access_key_id: key.disabled_at for key in database.run_read(list_access_keys)}
    finally:
        database.close()


def admission_of(file: Path) -> Admission:
    database = Database(f"sqlite:///{file}")
    try:
        return database.run_read(read_admission)
    finally:
        database.close()


class TestTheOldDatabase:
    def test_is_kept_with_the_contents_of_its_log(self, file: Path, backup: Path) -> None:
        file.chmod(0o644)
        old, place = names_of_copy(file), file.stat().st_ino
        assert restore_file(backup, file).kept == kept_of(file)
        assert (kept_of(file).stat().st_mode & 0o777, kept_of(file).stat().st_ino) == (0o600, place)
        assert names_of(kept_of(file)) == old

    def test_replaces_the_database_kept_before_it(self, file: Path, backup: Path) -> None:
        log_of(kept_of(file)).write_bytes(b"of another one")
        restore_file(backup, file)
        add(file, "later")
        restore_file(backup, file)
        assert "later" in names_of(kept_of(file))
        assert files_beside(file) == {file.name, kept_of(file).name}

    def test_can_be_put_back(self, file: Path, backup: Path) -> None:
        old, new = names_of_copy(file), names_of(backup)
        restore_file(backup, file)
        restore_file(kept_of(file), file)
        assert (names_of(file), names_of(kept_of(file))) == (old, new)

    def test_keeps_its_log_if_the_log_cannot_be_checkpointed(self, file: Path, backup: Path) -> None:
        """Another program reads it, from before the last change."""
        old = names_of_copy(file)
        with closing(sqlite3.connect(file)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT 1 FROM secrets").fetchone()
            crash(file)
            later = names_of_copy(file, "later")
            restore_file(backup, file)
        assert log_of(kept_of(file)).stat().st_mode & 0o777 == 0o600
        assert old < later == names_of(kept_of(file))

    def test_never_gets_a_foreign_log(self, file: Path, backup: Path) -> None:
        shutil.copyfile(backup, file)
        restore_file(backup, file)
        assert not log_of(kept_of(file)).exists()
        assert names_of(kept_of(file)) == names_of(backup)

    def test_is_not_kept_where_there_are_no_hard_links(
        self, file: Path, backup: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: Any) -> None:
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))

        monkeypatch.setattr(os, "link", refuse)
        restored = restore_file(backup, file)
        assert (restored.kept, restored.not_kept) == (None, "Operation not permitted")
        assert files_beside(file) == {file.name}


class Killed(BaseException):
    """Represents the end of the process: no code runs after it."""


@pytest.mark.parametrize("log", ["is brought in", "stays", "is foreign"])
@pytest.mark.parametrize("step", range(40))
def test_killed_at_any_point_it_is_the_old_database_or_the_new_one(
    file: Path, backup: Path, monkeypatch: pytest.MonkeyPatch, step: int, log: str
) -> None:
    """The process can be killed at each call that changes the folder."""
    old, new = names_of_copy(file), names_of(backup)
    by_hand = log == "is foreign"
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
        changes = [(Path, "unlink"), (Path, "replace"), (Path, "chmod")]
        changes += [(os, name) for name in ("fsync", "chown", "open", "link")]
        for place, name in changes:
            patch.setattr(place, name, dying(getattr(place, name)))
        if log == "stays":
            patch.setattr(sqlite_restore, "_settle", lambda *_: sqlite_restore._Old(Admission.OPEN, log_is_own=True))
        with suppress(Killed):
            restore_file(backup, file)
    kept = kept_of(file)
    assert not kept.exists() or not kept.samefile(file)
    try:
        found = names_of(file)
        assert found in ([new] if by_hand else [old, new])
    except LogOfAnotherFile:
        assert by_hand  # as before
        found = new
    if kept.exists():
        assert names_of(kept) == (new if by_hand else old)
    assert restore_file(backup, file).findings == []
    assert names_of(file) == new
    assert files_beside(file) == {file.name, kept.name}
    assert names_of(kept) == found


def names_of_copy(file: Path, name: str = "copy") -> set[str]:
    """The contents of a database with its log; a read would checkpoint the log into the file."""
    folder = file.parent / name
    folder.mkdir()
    for path in file.parent.glob(f"{file.name}*"):
        shutil.copyfile(path, folder / path.name)
    return names_of(folder / file.name)
