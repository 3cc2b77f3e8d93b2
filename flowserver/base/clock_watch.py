"""Notices that a clock was set, and says when deletions by age are safe.

The wall clock is compared with the time that has passed. While the two differ, what seems old may be new, and what is
deleted is gone for good: so nothing is deleted by its age. Setting a clock is legitimate, too, so the pause ends:

- when the clocks have agreed again for `settle_ms`;
- when the clock was set back: once it was not set again for `settle_ms`, because a clock that is behind deletes less;
- when an operator restarts the process, and `settle_ms` have passed.

At a start nothing tells how much time has passed. A clock is compared with the last instant in the database: it may be
right after a long stop, so the pause lasts for `settle_ms`. It is also compared with the clocks of other nodes.
"""

import logging
import threading
from typing import Final

from flowserver.base.clock import Clock, format_instant

log = logging.getLogger(__name__)

KEPT_MS: Final = 3_600_000
"""How long an agreement of the clocks is the one to compare with: over days they drift apart."""


class ClockWatch:
    """The clock of one node, observed. All methods may be called in any thread."""

    def __init__(self, clock: Clock, *, differ_seconds: int, settle_seconds: int) -> None:
        """`differ_seconds`: by how much clocks may differ."""
        self._clock = clock
        self._differ_ms = differ_seconds * 1_000
        self._settle_ms = settle_seconds * 1_000
        self._lock = threading.RLock()
        self._agreed_at = self._seen_at = (clock.now_ms(), clock.steady_ms())
        self._others_ms = 0
        self._until: int | None = None
        self._reason = ""
        self.steps = 0
        """How often the clock was set by more than `differ_seconds`."""

    def deletion_now(self) -> int | None:
        """The present instant (ms), for deletions by age; None while they pause."""
        with self._lock:
            now = self._look()
            return None if self._reason else now

    def look(self) -> int:
        """Compare now; returns by how many ms the clock is ahead of the time that has passed, negative if behind."""
        with self._lock:
            return self._ahead_ms(self._look(), self._seen_at[1])

    @property
    def pause(self) -> str | None:
        """Why deletions by age pause; None if they do not."""
        with self._lock:
            self._look()
            return self._reason or None

    def begin(self, last_ms: int | None) -> None:
        """The node starts; `last_ms` is the last instant that a node has noted in the database, if there is one."""
        with self._lock:
            if last_ms is None:
                return
            now = self._look()
            if now > last_ms + self._settle_ms:
                self._hold(f"nothing ran since {format_instant(last_ms)}, or the clock is ahead", settles=True)
            elif now < last_ms - self._differ_ms:
                self._hold(f"the clock is behind the database, which has {format_instant(last_ms)}", settles=True)

    def compare_others(self, differ_ms: int) -> None:
        """By how much (ms) this clock differs most from that of another node."""
        with self._lock:
            was, self._others_ms = self._others_ms, differ_ms
            if self._differs_from_others():
                self._hold(f"the clocks of this node and of another differ by {_seconds(differ_ms)}")
            elif abs(was) > self._differ_ms:
                self._hold("the clocks of the nodes agree again", settles=True)

    def _look(self) -> int:
        now, steady = self._clock.now_ms(), self._clock.steady_ms()
        step = (now - self._seen_at[0]) - (steady - self._seen_at[1])
        self._seen_at = now, steady
        ahead = self._ahead_ms(now, steady)
        differs = abs(ahead) > self._differ_ms
        if abs(step) > self._differ_ms:
            self.steps += 1
            log.warning("the clock was set %s to %s", _by(step), format_instant(now))
            if not differs:
                self._hold("the clock was set, and agrees again with the time that has passed", settles=True)
        if differs and (abs(step) > self._differ_ms or not self._reason):
            reason = f"the clock is {_seconds(ahead)} {'ahead of' if ahead > 0 else 'behind'} the time that has passed"
            self._hold(reason, settles=ahead < 0)
        if self._reason and self._until is not None and steady >= self._until:
            self._agreed_at = self._seen_at
            self._release("the clock was not set again")
        elif not self._reason and steady - self._agreed_at[1] > KEPT_MS:
            self._agreed_at = self._seen_at
        return now

    def _ahead_ms(self, now: int, steady: int) -> int:
        return (now - self._agreed_at[0]) - (steady - self._agreed_at[1])

    def _differs_from_others(self) -> bool:
        return abs(self._others_ms) > self._differ_ms

    def _hold(self, reason: str, *, settles: bool = False) -> None:
        """Pause for `settle_ms`, or without an end. Of two reasons the one without an end counts."""
        is_ahead = self._ahead_ms(*self._seen_at) > self._differ_ms
        settles = settles and not is_ahead and not self._differs_from_others()
        if self._reason and not settles and self._until is None:
            return
        self._until = self._seen_at[1] + self._settle_ms if settles else None
        self._reason = reason
        end = f"for {self._settle_ms // 1000} s" if settles else "until it is right, or the server is restarted"
        log.warning("deletions by age pause %s: %s", end, reason)

    def _release(self, why: str) -> None:
        self._reason, self._until = "", None
        log.warning("deletions by age continue: %s", why)


def _by(step_ms: int) -> str:
    return f"{'forward' if step_ms > 0 else 'back'} by {_seconds(step_ms)}"


def _seconds(ms: int) -> str:
    return f"{abs(ms) / 1000:,.0f} s"
