"""Keeps a part of the disk for work that has begun: new work is refused before the disk is full.

A SQLite file grows with every commit, and a full disk stops all of them, those too that would end an execution or
delete one. PostgreSQL's disk is another machine's; its own monitoring has to watch it.
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
"""New work is accepted again once this part of the reserve is free besides it: at the very border the answer would
change with every start."""


class DiskAlmostFull(ServiceUnavailable):
    """The server's disk is almost full, so it accepts no new work; try again once there is space."""

    code = "DiskAlmostFull"


class DiskReserve:
    """The disk of one SQLite file. It logs when it begins to refuse new work, and when that ends."""

    def __init__(
        self,
        file: Path | None,
        bytes_min: int,
        free_bytes: Callable[[Path], int] | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`file` is None for PostgreSQL, `bytes_min` 0 for no reserve; `now` counts seconds."""
        self._folder = None if file is None else file.resolve().parent
        self.bytes_min = bytes_min if file is not None else 0
        """The reserve; 0 if there is none."""
        self._measure = free_bytes or _free_bytes
        self._now = now
        self._measured: int | None = None
        self._until = 0.0
        self._is_refusing = False

    def free_bytes(self) -> int | None:
        """Bytes that this process may still write to the disk, at most a second old; None if that is not known."""
        if self._folder is not None and self._now() >= self._until:
            try:
                self._measured = self._measure(self._folder)
            except OSError:
                self._measured = None
            self._until = self._now() + MEASURED_SECONDS
            self._judge(self._measured)
        return self._measured

    def refusal(self) -> str | None:
        """Why new work is refused now; None if it is accepted."""
        free = self.free_bytes()
        if not self._is_refusing or free is None:
            return None
        return (
            f"the disk of the database has {free >> 20} MiB left, and disk_reserve_mib keeps {self.bytes_min >> 20} "
            f"for work that has begun; new work is accepted once {_mib_up(self._enough)} MiB are free"
        )

    def require(self) -> None:
        """Raises DiskAlmostFull if new work is refused."""
        if (why := self.refusal()) is not None:
            raise DiskAlmostFull(why)

    @property
    def _enough(self) -> int:
        return self.bytes_min + self.bytes_min // MARGIN_PART

    def _judge(self, free: int | None) -> None:
        was_refusing = self._is_refusing
        self._is_refusing = free is not None and free < (self._enough if was_refusing else self.bytes_min)
        if self._is_refusing and not was_refusing:
            log.warning("new work is refused: %s", self.refusal())
        elif was_refusing and not self._is_refusing:
            log.warning("new work is accepted again: %s", _space(free))


def _free_bytes(folder: Path) -> int:
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize


def _mib_up(count: int) -> int:
    return -(-count >> 20)


def _space(free: int | None) -> str:
    if free is None:
        return "the space on the disk of the database cannot be read"
    return f"the disk of the database has {free >> 20} MiB left"
