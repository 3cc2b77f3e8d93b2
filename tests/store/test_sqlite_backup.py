"""Backups on file systems that can do less than the database's."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from flowserver.store.sqlite_backup import back_up
from flowserver.store.sqlite_restore import restore_file


def test_a_file_system_without_hard_links_takes_a_backup(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refuse)
    target = tmp_path / "backups" / "backup.db"
    target.parent.mkdir()
    assert back_up(Path(sqlite_url.removeprefix("sqlite:///")), target) == target.stat().st_size
    assert list(target.parent.iterdir()) == [target]
    assert target.stat().st_mode & 0o777 == 0o600
    assert restore_file(target, tmp_path / "new.db").findings == []
    with pytest.raises(FileExistsError):
        back_up(Path(sqlite_url.removeprefix("sqlite:///")), target)
