"""Keeps a part of the disk for work that has begun: new work is refused before the disk is full.

A SQLite file grows with every commit, and a full disk stops all of them, those too that would end an execution or
delete one. PostgreSQL's disk is another machine's, so there a bound of the data takes the place of the free space. The
bound counts the data alone, not the files, which PostgreSQL never shortens: so new work is accepted again once
retention has deleted enough, and rows fill the space of deleted ones.
"""

import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from flowserver.base.errors import ServiceUnavailable

log = logging.getLogger(__name__)

MEASURED_SECONDS = 1.0
"""How long one measurement is used."""

MARGIN_PART: Final = 16
"""New work is accepted again once this part of the reserve is free besides it, or of the bound of the data: at the very
border the answer would change with every start."""


class DiskAlmostFull(ServiceUnavailable):
    """The server's disk, or the space for its data, is almost full, so it accepts no new work; try again later."""

    code = "DiskAlmostFull"


class DiskReserve:
    """The space of one database. It logs when it begins to refuse new work, and when that ends."""

    def __init__(
        self,
        file: Path | None,
        bytes_min: int,
        *,
        data_bytes_max: int = 0,
        free_bytes: Callable[[Path], int] | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`file` is None for PostgreSQL, `bytes_min` and `data_bytes_max` 0 for no bound; `now` counts seconds."""
        self._folder = None if file is None else file.resolve().parent
        self.bytes_min = bytes_min if file is not None else 0
        """The reserve; 0 if there is none."""
        self._measure = free_bytes or _free_bytes
        self._now = now
        self._measured: int | None = None
        self._until = 0.0
        self._is_short = False
        self.data_bytes_max = data_bytes_max
        """The bound of the data; 0 if there is none."""
        self._data: int | None = None
        self._is_too_much = False

    def free_bytes(self) -> int | None:
        """Bytes that this process may still write to the disk, at most a second old; None if that is not known."""
        if self._folder is not None and self._now() >= self._until:
            try:
                self._measured = self._measure(self._folder)
            except OSError:
                self._measured = None
            self._until = self._now() + MEASURED_SECONDS
            self._judge()
        return self._measured

    def note_data(self, used_bytes: int) -> None:
        """The data takes so much now."""
        self._data = used_bytes
        self._judge()

    def refusal(self) -> str | None:
        """Why new work is refused now; None if it is accepted."""
        free = self.free_bytes()
        if self._is_short and free is not None:
            return (
                f"the disk of the database has {free >> 20} MiB left, and disk_reserve_mib keeps "
                f"{self.bytes_min >> 20} for work that has begun; new work is accepted once "
                f"{_mib_up(self._enough_free)} MiB are free"
            )
        if self._is_too_much and self._data is not None:
            return (
                f"the data takes {_gib(self._data)} of the {_gib(self.data_bytes_max)} GiB that data_gib_max gives it; "
                f"new work is accepted once it takes {_gib(self._little_data)}"
            )
        return None

    def require(self) -> None:
        """Raises DiskAlmostFull if new work is refused."""
        if (why := self.refusal()) is not None:
            raise DiskAlmostFull(why)

    @property
    def _enough_free(self) -> int:
        return self.bytes_min + self.bytes_min // MARGIN_PART

    @property
    def _little_data(self) -> int:
        return self.data_bytes_max - self.data_bytes_max // MARGIN_PART

    def _judge(self) -> None:
        was_refusing = self._is_short or self._is_too_much
        free, data = self._measured, self._data
        self._is_short = free is not None and free < (self._enough_free if self._is_short else self.bytes_min)
        if self.data_bytes_max and data is not None:
            self._is_too_much = data > (self._little_data if self._is_too_much else self.data_bytes_max)
        if was_refusing != (self._is_short or self._is_too_much):
            if was_refusing:
                log.warning("new work is accepted again")
            else:
                log.warning("new work is refused: %s", self.refusal())


def _free_bytes(folder: Path) -> int:
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize


def _mib_up(count: int) -> int:
    return -(-count >> 20)


def _gib(count: int) -> str:
    return f"{count / 2**30:.4g}"
