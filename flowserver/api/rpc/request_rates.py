"""How often one access key may make the requests of the RPC API, if the profile of limits says so.

Each action has a token bucket of its own for each key, as the service documents it: a request takes a token, and tokens
come back at a steady rate until the bucket is full. Buckets are in memory: a restart fills them.
"""

from dataclasses import dataclass
from typing import Final

from cachetools import LRUCache

from flowserver.base.clock import Clock
from flowserver.base.errors import ResourceThrottled
from flowserver.base.limits import Limits

BUCKETS_MAX: Final = 10_000
"""Buckets that are remembered; beyond them the least recently used is forgotten, and is full again."""

STARTS: Final = frozenset(("StartExecution",))
READS: Final = frozenset(("DescribeExecution", "GetExecutionHistory"))


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at_ms: int


class RequestRates:
    """The buckets of one process. Only the event loop uses them."""

    def __init__(self, limits: Limits, clock: Clock) -> None:
        self._limits = limits
        self._clock = clock
        self._buckets: LRUCache[tuple[str, str], _Bucket] = LRUCache(BUCKETS_MAX)

    def require(self, action: str, key_id: str) -> None:
        """Take a token; raises ResourceThrottled if there is none. `key_id` is "" on a server without keys."""
        per_second, burst = self._rate_of(action)
        if not per_second:
            return
        now_ms = self._clock.now_ms()
        bucket = self._buckets.get((action, key_id))
        if bucket is None:
            bucket = self._buckets[action, key_id] = _Bucket(burst, now_ms)
        refilled = max(0, now_ms - bucket.at_ms) * per_second / 1000
        bucket.tokens, bucket.at_ms = min(burst, bucket.tokens + refilled), now_ms
        if bucket.tokens < 1:
            raise ResourceThrottled(f"{action} may be called {per_second} times a second; try again later")
        bucket.tokens -= 1

    def _rate_of(self, action: str) -> tuple[int, int]:
        limits = self._limits
        if action in STARTS:
            return limits.starts_per_second_max, limits.starts_burst_max
        if action in READS:
            return limits.reads_per_second_max, limits.reads_burst_max
        return limits.actions_per_second_max, limits.actions_burst_max
