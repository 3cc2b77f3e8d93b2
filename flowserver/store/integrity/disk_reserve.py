"""Keeps a part of the disk for work that has begun: new work is refused before the disk is full.

A SQLite file grows with every commit, and a full disk stops all of them, those too that would end an execution or
delete one. PostgreSQL's disk is another machine's; its own monitoring has to watch it.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path

from flowserver.base.errors import ServiceUnavailable

MEASURED_SECONDS = 1.0
"""How long one measurement is used."""


class DiskAlmostFull(ServiceUnavailable):
    """The server's disk is almost full, so it accepts no new work; try again once there is space."""

    code = "DiskAlmostFull"


class DiskReserve:
    """The disk of one SQLite file. Any thread may call it."""

    def __init__(
        self,
        file: Path | None,
        bytes_min: int,
        free_bytes: Callable[[Path], int] | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`file` is None for PostgreSQL, `bytes_min` 0 for no reserve; `now` counts seconds."""
        self._folder = None if file is None else file.resolve().parent
        self._bytes_min = bytes_min
        self._measure = free_bytes or _free_bytes
        self._now = now
        self._measured: int | None = None
        self._until = 0.0

    def free_bytes(self) -> int | None:
        """Bytes that this process may still write to the disk, at most a second old; None if that is not known."""
        if self._folder is not None and self._now() >= self._until:
            try:
                self._measured = self._measure(self._folder)
            except OSError:
                self._measured = None
            self._until = self._now() + MEASURED_SECONDS
        return self._measured

    def require(self) -> None:
        """Raises DiskAlmostFull if less than the reserve is free."""
        if self._bytes_min and (free := self.free_bytes()) is not None and free < self._bytes_min:
            raise DiskAlmostFull(
                f"the disk of the database has {free >> 20} MiB left, less than disk_reserve_mib "
                f"({self._bytes_min >> 20}); running work goes on, new work is accepted once there is space"
            )


def _free_bytes(folder: Path) -> int:
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize
