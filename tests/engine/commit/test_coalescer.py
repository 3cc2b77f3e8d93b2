"""Small changes gathered into one: all in order, each with its own answer, and none that disturbs another."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from flowserver.base.errors import ResourceThrottled
from flowserver.engine.commit.coalescer import GATHERED_MAX, Gathered
from tests.engine.held_threads import Gate
from tests.engine.nodes import Node


class Doubling:
    """Doubles numbers; strings are what it cannot do, alone or with others; notes what came together."""

    def __init__(self) -> None:
        self.groups: list[list[Any]] = []

    def __call__(self, _: Connection, items: Sequence[Any]) -> list[Any]:
        self.groups.append(list(items))
        assert "poison" not in items, "this fails whole"
        return [ValueError(item) if isinstance(item, str) else item * 2 for item in items]


@pytest.fixture
def doubling() -> Doubling:
    return Doubling()


@pytest.fixture
def gathered(node: Node, doubling: Doubling) -> Gathered[Any]:
    return Gathered(node.engine.committer, doubling, pending_max=5)


async def test_what_comes_while_the_writer_is_busy_goes_together(
    node: Node, gathered: Gathered[Any], doubling: Doubling
) -> None:
    gate = Gate()
    gated = asyncio.create_task(node.engine.committer.write(gate))
    await gate.reached.wait()
    futures = [gathered.put(number) for number in range(4)]
    await asyncio.sleep(0)
    futures += [gathered.put(number) for number in range(4, 7)]
    gate.open()
    assert await asyncio.gather(*futures) == [0, 2, 4, 6, 8, 10, 12]
    assert doubling.groups == [list(range(7))]
    assert await gated == "through"


async def test_an_order_that_cannot_be_carried_out_fails_alone(gathered: Gathered[Any], doubling: Doubling) -> None:
    one, bad, two = gathered.put(1), gathered.put("bad"), gathered.put(2)
    assert (await one, await two) == (2, 4)
    with pytest.raises(ValueError, match="bad"):
        await bad
    one, poison, two = gathered.put(1), gathered.put("poison"), gathered.put(2)
    assert (await one, await two) == (2, 4)
    with pytest.raises(AssertionError, match="this fails whole"):
        await poison
    assert doubling.groups[1:] == [[1, "poison", 2], [1], ["poison"], [2]]


async def test_more_than_one_transaction_takes_goes_with_the_next(gathered: Gathered[Any], doubling: Doubling) -> None:
    count = GATHERED_MAX * 2 + 3
    futures = [gathered.put(number) for number in range(count)]
    assert await asyncio.gather(*futures) == [number * 2 for number in range(count)]
    assert [len(group) for group in doubling.groups] == [GATHERED_MAX, GATHERED_MAX, 3]


class Deadlock(Exception):
    """What PostgreSQL's driver raises when this transaction was ended for another's sake."""

    sqlstate = "40P01"


async def test_what_comes_while_others_are_tried_again_is_not_taken_for_tried(node: Node) -> None:
    gate, tries = Gate(), list[list[Any]]()

    def work(connection: Connection, items: Sequence[Any]) -> Sequence[Any]:
        tries.append(list(items))
        if len(tries) == 1:
            gate(connection)
            raise OperationalError("", None, Deadlock())
        return items

    gathered: Gathered[Any] = Gathered(node.engine.committer, work, pending_max=5)
    one = gathered.put(1)
    await gate.reached.wait()
    two = gathered.put(2)
    gate.open()
    assert (await one, await two) == (1, 2)
    assert tries == [[1], [1], [2]]


async def test_too_many_are_turned_away_but_only_those_who_may_be(node: Node, gathered: Gathered[Any]) -> None:
    futures = [gathered.put(number, bounded=True) for number in range(5)]
    with pytest.raises(ResourceThrottled):
        gathered.put(5, bounded=True)
    futures.append(gathered.put(5))
    assert await asyncio.gather(*futures) == [0, 2, 4, 6, 8, 10]


async def test_while_the_database_is_away_all_are_told(node: Node, gathered: Gathered[Any]) -> None:
    node.database.broken = True
    answers = await asyncio.gather(*(gathered.put(n) for n in range(3)), return_exceptions=True)
    assert [type(answer) for answer in answers] == [OperationalError] * 3
    node.database.broken = False
    assert await gathered.put(1) == 2


async def test_who_no_longer_waits_disturbs_nobody(gathered: Gathered[Any]) -> None:
    one, two = gathered.put(1), gathered.put(2)
    one.cancel()
    assert await two == 4
