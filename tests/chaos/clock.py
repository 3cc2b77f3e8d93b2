"""A clock whose offset is read from a file, so that it can be stepped from outside while a server runs."""

import mmap
import struct
from pathlib import Path

from flowserver.base.clock import SystemClock

_OFFSET = struct.Struct("<q")


class ShiftedClock:
    """The machine's clock plus the milliseconds in a file. All processes that share the file share its steps."""

    def __init__(self, file: Path) -> None:
        if not file.exists():
            file.write_bytes(_OFFSET.pack(0))
        with file.open("r+b") as opened:
            self._memory = mmap.mmap(opened.fileno(), _OFFSET.size)
        self._system = SystemClock()

    @property
    def offset_ms(self) -> int:
        """How far it is ahead."""
        return int(_OFFSET.unpack_from(self._memory)[0])

    def step_to(self, offset_ms: int) -> None:
        """Set its offset from the machine's clock; a negative offset is behind."""
        _OFFSET.pack_into(self._memory, 0, offset_ms)

    def now_ms(self) -> int:
        """The current instant of this clock, in ms since the epoch."""
        return self._system.now_ms() + self.offset_ms

    def steady_ms(self) -> int:
        """Time that has passed, in ms: its steps do not change it."""
        return self._system.steady_ms()
