"""Lines of the log that a caller's trouble may cause in any number: failed calls, deliveries that are refused.

At most `LINES_PER_KEY` of them are written a second for each function, topic or flow, and `LINES_IN_ALL` together, so
that a function that fails a thousand times a second neither fills the disk nor hides what else the log says. The next
line of the same key says how many were left out. What they would have said is in histories and lists.
"""

import time
from collections.abc import Callable, Mapping
from logging import Logger
from typing import Final

from cachetools import LRUCache

LINES_PER_KEY: Final = 10
LINES_IN_ALL: Final = 100
KEYS_MAX: Final = 1_000

STEP_CALL_FAILED: Final = (
    "the call of %(target)s failed with %(error)s: request id %(request_id)s, flow %(flow)s, execution %(execution)s, "
    "step %(step)s, attempt %(attempt)d"
)
INVOCATION_CALL_FAILED: Final = (
    "the call of %(function)s failed with %(error)s: request id %(request_id)s, invocation %(invocation_id)s, "
    "attempt %(attempt)d"
)


class _Second:
    """How many lines were written in the present second, and how many were left out since the last."""

    __slots__ = ("began_at", "left_out", "written")

    def __init__(self) -> None:
        self.began_at = float("-inf")
        self.written = 0
        self.left_out = 0

    def has_room(self, now: float, most: int) -> bool:
        """Whether one more may be written."""
        if not self.began_at <= now < self.began_at + 1:
            self.began_at, self.written = now, 0
        return self.written < most


class LimitedLog:
    """Writes lines to a logger, at most so many a second. Use it in one thread."""

    def __init__(self, log: Logger, now: Callable[[], float] = time.monotonic) -> None:
        """`now` gives seconds."""
        self._log = log
        self._now = now
        self._all = _Second()
        self._by_key: LRUCache[str, _Second] = LRUCache(KEYS_MAX)

    def write(self, level: int, key: str, form: str, values: Mapping[str, object]) -> None:
        """Write a line, as `Logger.log`, unless there were too many of this key or in all.

        `form` names its values: `%(step)s`.
        """
        if not self._log.isEnabledFor(level):
            return
        now = self._now()
        own = self._by_key.get(key)
        if own is None:
            own = self._by_key[key] = _Second()
        if not (own.has_room(now, LINES_PER_KEY) and self._all.has_room(now, LINES_IN_ALL)):
            own.left_out += 1
            return
        own.written += 1
        self._all.written += 1
        if own.left_out:
            form, values = f"{form} (such lines left out before: %(left_out)d)", {**values, "left_out": own.left_out}
            own.left_out = 0
        self._log.log(level, form, values)
