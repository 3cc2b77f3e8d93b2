"""The nonce of a signed request and its first change are one transaction, on both databases."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

import pytest
from msgspec.structs import replace
from sqlalchemy import insert, select

from flowserver.base.errors import SignatureNonceUsed
from flowserver.base.nonces import Nonce
from flowserver.base.request_context import RequestContext
from flowserver.engine.commit.batch_items import Envelope
from flowserver.engine.commit.committer import Committer
from flowserver.store.schema.tables import executions, nonces
from flowserver.store.sql.database import Database
from tests.engine.commit.test_committer import Listener, committing, keep, start
from tests.engine.nodes import FragileDatabase
from tests.support.clock import ManualClock

FAR = 2**50


@pytest.fixture
def database(open_database: Callable[[], FragileDatabase]) -> FragileDatabase:
    return open_database()


@pytest.fixture
async def committer(database: FragileDatabase, clock: ManualClock) -> AsyncIterator[Committer]:
    async with committing(database, Listener(database), clock) as started:
        yield started


def nonce(text: str = "n") -> Nonce:
    return Nonce("ak", text, FAR)


def signed(name: str, text: str = "n") -> Envelope:
    """A start under this name, in a request with this nonce."""
    return replace(start(name), nonce=nonce(text))


def stored(database: Database) -> list[str]:
    """The nonces in the database."""
    return sorted(database.run_read(lambda c: c.execute(select(nonces.c.nonce)).scalars()))


def started(database: Database) -> list[str]:
    """The names of executions."""
    return sorted(database.run_read(lambda c: c.execute(select(executions.c.name)).scalars()))


async def refusals(*submissions: asyncio.Future[object]) -> list[bool]:
    """Which of them, in one batch, are refused because their nonce was used before; the others must succeed."""
    answers = await asyncio.gather(*submissions, return_exceptions=True)
    assert all(isinstance(each, SignatureNonceUsed) or not isinstance(each, BaseException) for each in answers)
    return [isinstance(each, SignatureNonceUsed) for each in answers]


async def test_a_nonce_that_another_node_has_used_refuses_its_request_alone(
    committer: Committer, database: FragileDatabase
) -> None:
    with database.write() as connection:
        connection.execute(insert(nonces).values(access_key_id="ak", nonce="n", expires_at=FAR - 1))
    made: list[object] = []
    submitted = (
        committer.submit(signed("again")),
        committer.write(made.append, nonce=nonce()),
        committer.submit(signed("new", "other")),
        committer.submit(start("open")),
    )
    assert await refusals(*map(asyncio.ensure_future, submitted)) == [True, True, False, False]
    assert started(database) == ["new", "open"]
    assert made == []


async def test_one_of_several_copies_in_a_batch_is_carried_out(committer: Committer, database: FragileDatabase) -> None:
    """Even if they are of one millisecond."""
    copies = [asyncio.ensure_future(committer.submit(signed(f"e{number}"))) for number in range(5)]
    assert await refusals(*copies) == [False, True, True, True, True]
    assert started(database) == ["e0"]


async def test_what_a_divided_batch_leaves_is_carried_out_later(database: FragileDatabase, clock: ManualClock) -> None:
    """The first transaction has stored the nonces of all; copies of the others come at the same time."""
    async with committing(database, Listener(database), clock, made_bytes_max=0) as committer:
        names = ("a", "b", "c")
        submitted = [asyncio.ensure_future(committer.submit(signed(name, name))) for name in names]
        copies = [asyncio.ensure_future(committer.submit(signed(f"copy-{name}", name))) for name in names]
        assert await refusals(*submitted, *copies) == [False] * 3 + [True] * 3
    assert started(database) == ["a", "b", "c"]


async def test_a_crash_before_the_commit_leaves_neither(committer: Committer, database: FragileDatabase) -> None:
    database.crashed = True
    with suppress(Exception):
        await committer.write(keep("a"), nonce=nonce())
        raise AssertionError("it was committed")
    with Database.write(database) as connection:
        assert connection.execute(select(nonces)).all() == []


async def test_a_lost_answer_is_not_taken_for_a_repeated_request(
    committer: Committer, database: FragileDatabase
) -> None:
    """The batch is taken apart, and each finds its own nonce, which the first try has committed."""
    submitted = [committer.write(lambda _, name=name: name, nonce=nonce(name)) for name in ("a", "b")]
    database.lose_answer_of(select(nonces))
    assert await asyncio.gather(*submitted) == ["a", "b"]
    assert database.has_lied
    assert stored(database) == ["a", "b"]
    again = [asyncio.ensure_future(committer.spend(nonce(name))) for name in ("a", "b")]
    assert await refusals(*again) == [True, True]


async def test_the_first_change_of_a_request_uses_up_its_nonce(committer: Committer, database: FragileDatabase) -> None:
    with RequestContext() as request:
        request.key_id, request.nonce = "ak", nonce()
        await committer.write(lambda _: None)  # of the server's own accord
        assert stored(database) == []
        await committer.write(keep("a"), by_caller=True)
        assert stored(database) == ["n"]
        await committer.write(keep("b"), by_caller=True)
