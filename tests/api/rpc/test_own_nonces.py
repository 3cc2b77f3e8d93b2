"""Copies of a request that two nodes get in the same millisecond have nonces that the nodes can tell apart."""

import secrets
from typing import Any

import pytest

from flowserver.base.limits import Limits
from flowserver.base.nonces import Nonce
from flowserver.operations.access import NONCE_SPREAD_MS, AccessOperations
from tests.support.clock import ManualClock


class NoncesUsed:
    """A source of keys that notes what is used up."""

    def __init__(self) -> None:
        self.nonces: list[Nonce] = []
        self.record_refusals = None

    async def use_nonce(self, nonce: Nonce) -> None:
        """Note it."""
        self.nonces.append(nonce)


async def test_copies_of_one_millisecond_expire_at_different_times(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A retried batch takes a stored nonce for its own if both expire at the same time."""
    chosen = iter((0, NONCE_SPREAD_MS - 1))
    monkeypatch.setattr(secrets, "randbelow", lambda below: min(next(chosen), below - 1))
    keys: Any = NoncesUsed()
    for access in (AccessOperations(keys, clock, Limits()), AccessOperations(keys, clock, Limits())):
        await access.use_nonce("ak", "n", 1_000)
    kept = [each.expires_at - clock.now_ms() for each in keys.nonces]
    assert kept == [1_000, 1_000 + NONCE_SPREAD_MS - 1]


async def test_copies_that_one_node_gets_in_one_millisecond_expire_at_different_times(clock: ManualClock) -> None:
    keys: Any = NoncesUsed()
    access = AccessOperations(keys, clock, Limits())
    for _ in range(1_000):
        await access.use_nonce("ak", "n", 1_000)
    expiries = [each.expires_at for each in keys.nonces]
    assert len(set(expiries)) == 1_000
    assert expiries == sorted(expiries), "they are added to an index in the middle"


async def test_nonces_of_a_busy_server_are_forgotten_in_the_end(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long it gets more than one request in a millisecond, and even if its clock was ahead for a time."""
    monkeypatch.setattr("flowserver.operations.access.NONCE_SPREAD_MS", 10)
    keys: Any = NoncesUsed()
    access = AccessOperations(keys, clock, Limits())
    clock.advance(seconds=86_400)
    await access.use_nonce("ak", "n", 1_000)
    clock.advance(seconds=-86_400)
    for _ in range(100):
        await access.use_nonce("ak", "n", 1_000)
    assert max(each.expires_at - clock.now_ms() for each in keys.nonces[1:]) < 1_000 + 2 * 10
