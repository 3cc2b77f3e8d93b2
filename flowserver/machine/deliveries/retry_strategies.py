"""Retries of deliveries: the strategies of subscriptions, and when a failed attempt is retried.

Pure: instants and chance are arguments.
"""

from enum import StrEnum
from itertools import repeat
from typing import Final

BACKOFF_RETRIES: Final = 3
BACKOFF_MS: Final = (10_000, 20_000)
"""Each of its pauses is somewhere between these."""

DECAY_RETRIES: Final = 176
DECAY_MS_MAX: Final = 512_000


class Strategy(StrEnum):
    """When to retry, by the names that subscriptions use."""

    BACKOFF = "BACKOFF_RETRY"
    """Three times more, 10 to 20 seconds apart."""
    EXPONENTIAL_DECAY = "EXPONENTIAL_DECAY_RETRY"
    """176 times more, after 1, 2, 4 … 512, 512 … seconds: for about a day."""


def _decay_pauses() -> tuple[int, ...]:
    doubling = [1000 * 2**number for number in range(10)]
    return (*doubling, *repeat(DECAY_MS_MAX, DECAY_RETRIES - len(doubling)))


_DECAY_PAUSES: Final = _decay_pauses()


def next_attempt_at(strategy: Strategy, attempt: int, failed_at_ms: int, chance: float) -> int | None:
    """The instant of the retry after attempt number `attempt` (from 1) has failed; None if it was the last.

    `chance` is a number from 0 to 1 that spreads the pauses of strategies that give a range.
    """
    if strategy is Strategy.EXPONENTIAL_DECAY:
        return failed_at_ms + _DECAY_PAUSES[attempt - 1] if attempt <= DECAY_RETRIES else None
    shortest, longest = BACKOFF_MS
    pause = shortest + round((longest - shortest) * chance)
    return failed_at_ms + pause if attempt <= BACKOFF_RETRIES else None
