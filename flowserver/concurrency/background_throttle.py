"""Background work, such as long pages and checks of definitions, yields to the work that must be on time.

All Python threads of a process share one interpreter lock. A thread that computes keeps it until another has waited
for the switch interval, and a call into C keeps it as long as the call lasts. One step of an execution takes the lock
dozens of times, so a thread that only computes beside it costs that step dozens of such waits. Hence two rules: work
in the background is done in pieces of well under a millisecond, and all such work together takes a third of the time.
Longer pieces take more: a pause has an end, because a request waits for the work.

While no step is due there are no pauses, because nothing but the lock waits for the work to end. The first urgent work
after such a while finds background work that stops after its present piece.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from typing import Final

from flowserver.concurrency.loop_turns import LoopTurns

SWITCH_SECONDS: Final = 0.0001
"""How long a thread that computes may keep the lock while others want it; Python's own value is ten times that."""

SLICE_SECONDS: Final = 0.0002
"""Work done between two pauses."""

PAUSE_SECONDS_MAX: Final = 0.005
"""Work beyond this is not made up for: calls into C that took longer had mostly let go of the lock themselves."""

REST: Final = 2
"""A pause lasts this many times as long as the work before it. Measured with pages of 4 MB for 40 clients at once:
with 1, another flow's p99 is 3.4 times its normal, with 2 or 3 it is 2.5 times."""

WAIT_SLICES: Final = 4
"""While urgent work goes on, a pause lasts at most this many times as long as the work before it."""

LOOP_PAUSE_SECONDS: Final = 0.001

QUIET_SECONDS: Final = 0.1
"""So long after urgent work there is likely more of it: a step makes a call between two commits."""


class Background:
    """Shares the time for background work among the threads that do some."""

    def __init__(
        self,
        used: Callable[[], float] = time.thread_time,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`used` is the processor time of the calling thread; all in seconds."""
        self._used, self._now, self._sleep = used, now, sleep
        self._own = threading.local()
        self._lock = threading.Lock()
        self._free_at = 0.0
        self._is_quiet = threading.Event()
        self._is_quiet.set()
        self._urgent_at = -inf
        """When urgent work was done last."""
        self.turns = LoopTurns(lambda: 0 if self._is_quiet.is_set() else LOOP_PAUSE_SECONDS)
        """`yield_to_writer` for background work on the event loop: other tasks run first, and urgent work."""

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Hold background work up inside the `with` block, which is short and must be on time."""
        self._is_quiet.clear()
        try:
            yield
        finally:
            self._urgent_at = self._now()
            self._is_quiet.set()

    def yield_to_writer(self) -> None:
        """Pause if this thread has worked for a while, and there was urgent work of late.

        Call it only between pieces of background work.
        """
        used = self._used()
        worked = used - getattr(self._own, "used", 0.0)
        if worked < SLICE_SECONDS:
            return
        worked = min(worked, PAUSE_SECONDS_MAX)
        now = self._now()
        if self._is_quiet.is_set() and now - self._urgent_at > QUIET_SECONDS:
            self._own.used = used
            return
        with self._lock:
            resume_at = max(now, self._free_at) + REST * worked
            # Until then this thread works again.
            self._free_at = min(resume_at + worked, now + 4 * REST * PAUSE_SECONDS_MAX)
        self._sleep(min(resume_at - now, 2 * REST * PAUSE_SECONDS_MAX))
        self._is_quiet.wait(WAIT_SLICES * worked)
        self._own.used = self._used()


BACKGROUND: Final = Background()
"""Of this process."""

yield_to_writer = BACKGROUND.yield_to_writer
