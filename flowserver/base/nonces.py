"""Nonces of signed requests: each is used once, so a request that was read in transit cannot be repeated.

A nonce is committed in one transaction with the first change that its request submits (`RequestContext.nonce`), and at
the latest before the request is answered. So what a request has changed is durable only together with its nonce.

Exception: an execution that the server can neither read nor save is parked by a transaction of its own, without the
nonce of the request that has shown it (`Committer._park`). A copy of that request finds it parked.
"""

import secrets
from typing import Final

import msgspec

SPREAD_MS: Final = 600_000
"""Each process keeps nonces longer by a random time below this, and by up to this time more so that no two of them
expire in the same millisecond."""


class Nonce(msgspec.Struct):
    """The nonce of one request, and when it can be forgotten (ms)."""

    access_key_id: str
    text: str
    expires_at: int
    is_tried: bool = False
    """Whether a transaction has stored it for this request, which may be committed."""


class NonceExpiries:
    """When the nonces of one process expire.

    By its expiry a request knows that a stored nonce is its own, so copies of a request must not have the same one, on
    one node or on two. Expiries rise, so that the index over them grows at its end: a batch of nonces changes one page
    of it instead of many.
    """

    def __init__(self) -> None:
        self._spread_ms = secrets.randbelow(SPREAD_MS)
        self._last = 0

    def next(self, kept_until_ms: int) -> int:
        """An instant (ms) after that, by less than twice SPREAD_MS."""
        soonest = kept_until_ms + self._spread_ms
        following = self._last + 1
        self._last = following if soonest < following < soonest + SPREAD_MS else soonest
        return self._last
