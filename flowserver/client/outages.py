"""How long a client goes on while the server is away, and with which pauses."""

import math
import time
from typing import Final

from flowserver.client.errors import ClientError, Refused, Unreachable
from flowserver.client.exchanges import PAUSE_SECONDS_MAX, RETRIES, THROTTLED, UNAVAILABLE, backoff_seconds

OUTAGE_SECONDS: Final = 300.0
"""How long the server may be away, unless the caller says otherwise: a restart takes less."""

STEADY_SECONDS: Final = 15.0
"""A server that is lost again within this time counts as away since it was lost first."""

OUTAGE_PAUSE_SECONDS_MAX: Final = 5.0
"""The longest pause, unless the server asks for a longer one. The first pauses are short, and grow."""


class Outage:
    """The times at which the server is away: it says how long to pause before each further request.

    It gives up `seconds_max` after the server was lost, or at `until` of the monotonic clock, but tries `retries` times
    at least.
    """

    def __init__(self, seconds_max: float, *, until: float = math.inf, retries: int = RETRIES) -> None:
        self._seconds_max = seconds_max
        self._until = until
        self._retries = retries
        self._lost_at = 0.0
        self._found_at = -math.inf
        self._failures = 0
        self._tries = 0

    def pause_seconds(self, error: ClientError) -> float:
        """The pause after a request that failed so. Raises the error if the server is not away, or for too long."""
        if not is_away(error):
            raise error
        now = time.monotonic()
        if self._failures == 0 and now - self._found_at > STEADY_SECONDS:
            self._lost_at, self._tries = now, 0
        left = min(self._lost_at + self._seconds_max, self._until) - now
        if left <= 0 and self._tries >= self._retries:
            raise error
        pause = min(backoff_seconds(self._failures), OUTAGE_PAUSE_SECONDS_MAX)
        if isinstance(error, Refused):
            pause = min(max(pause, error.retry_after_seconds), PAUSE_SECONDS_MAX)
        self._failures += 1
        self._tries += 1
        return min(pause, left) if left > 0 else pause

    def over(self) -> None:
        """The server has answered."""
        if self._failures:
            self._failures, self._found_at = 0, time.monotonic()


def is_away(error: ClientError) -> bool:
    """Whether a later request may succeed: the server is away, or has too much to do."""
    return isinstance(error, Unreachable) or (isinstance(error, Refused) and error.status in (THROTTLED, *UNAVAILABLE))
