"""Copies of a request have nonces that expire at different times, whichever nodes get them."""

import secrets

import pytest

from flowserver.base import nonces
from flowserver.base.nonces import SPREAD_MS, NonceExpiries

NOW = 1_767_225_600_000


def test_copies_that_two_nodes_get_in_one_millisecond(monkeypatch: pytest.MonkeyPatch) -> None:
    """A retried batch takes a stored nonce for its own if both expire at the same time."""
    chosen = iter((0, SPREAD_MS - 1))
    monkeypatch.setattr(secrets, "randbelow", lambda below: min(next(chosen), below - 1))
    assert [NonceExpiries().next(NOW) - NOW for _ in range(2)] == [0, SPREAD_MS - 1]


def test_copies_that_one_node_gets_in_one_millisecond() -> None:
    expiries = NonceExpiries()
    made = [expiries.next(NOW) for _ in range(1_000)]
    assert len(set(made)) == 1_000
    assert made == sorted(made), "they are added to an index in the middle"
    assert min(made) >= NOW


def test_nonces_of_a_busy_server_are_forgotten_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it gets more than one request in a millisecond, and even if its clock was ahead for a time."""
    monkeypatch.setattr(nonces, "SPREAD_MS", 10)
    expiries = NonceExpiries()
    expiries.next(NOW + 86_400_000)
    assert max(expiries.next(NOW) for _ in range(100)) < NOW + 2 * 10
