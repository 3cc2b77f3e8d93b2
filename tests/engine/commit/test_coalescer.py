"""Many small changes in one write: in order, each with its own answer, and independent of each other's failures."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from flowserver.base.errors import ResourceThrottled
from flowserver.concurrency.coalescer import GROUP_MAX, Coalescer
from flowserver.engine.commit.committer import Committer
from tests.engine.held_threads import Gate
from tests.engine.nodes import Node


class Doubling:
    """Doubles numbers; a string is a change that always fails. Records the groups."""

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
def coalescer(node: Node, doubling: Doubling) -> Coalescer[Any, Any]:
    return Coalescer(node.engine.committer, doubling, pending_max=5)


async def test_changes_made_while_the_writer_is_busy_share_a_write(
    node: Node, coalescer: Coalescer[Any, Any], doubling: Doubling
) -> None:
    gate = Gate()
    gated = asyncio.create_task(node.engine.committer.write(gate))
    await gate.reached.wait()
    futures = [coalescer.add(number) for number in range(4)]
    await asyncio.sleep(0)
    futures += [coalescer.add(number) for number in range(4, 7)]
    gate.open()
    assert await asyncio.gather(*futures) == [0, 2, 4, 6, 8, 10, 12]
    assert doubling.groups == [list(range(7))]
    assert await gated == "through"


async def test_a_change_that_fails_fails_alone(coalescer: Coalescer[Any, Any], doubling: Doubling) -> None:
    one, bad, two = coalescer.add(1), coalescer.add("bad"), coalescer.add(2)
    assert (await one, await two) == (2, 4)
    with pytest.raises(ValueError, match="bad"):
        await bad
    one, poison, two = coalescer.add(1), coalescer.add("poison"), coalescer.add(2)
    assert (await one, await two) == (2, 4)
    with pytest.raises(AssertionError, match="this fails whole"):
        await poison
    assert doubling.groups[1:] == [[1, "poison", 2], [1], ["poison"], [2]]


async def test_changes_beyond_the_group_limit_join_the_next_group(
    coalescer: Coalescer[Any, Any], doubling: Doubling
) -> None:
    count = GROUP_MAX * 2 + 3
    futures = [coalescer.add(number) for number in range(count)]
    assert await asyncio.gather(*futures) == [number * 2 for number in range(count)]
    assert [len(group) for group in doubling.groups] == [GROUP_MAX, GROUP_MAX, 3]


class Deadlock(Exception):
    """The error of PostgreSQL's driver when a transaction was ended for the sake of another."""

    sqlstate = "40P01"


async def test_a_change_that_arrives_during_a_retry_is_not_mistaken_for_tried(node: Node) -> None:
    gate, tries = Gate(), list[list[Any]]()

    def work(connection: Connection, items: Sequence[Any]) -> Sequence[Any]:
        tries.append(list(items))
        if len(tries) == 1:
            gate(connection)
            raise OperationalError("", None, Deadlock())
        return items

    coalescer: Coalescer[Any, Any] = Coalescer(node.engine.committer, work, pending_max=5)
    one = coalescer.add(1)
    await gate.reached.wait()
    two = coalescer.add(2)
    gate.open()
    assert (await one, await two) == (1, 2)
    assert tries == [[1], [1], [2]]


async def test_a_bounded_coalescer_refuses_excess_changes(node: Node, coalescer: Coalescer[Any, Any]) -> None:
    futures = [coalescer.add(number, by_caller=True) for number in range(5)]
    with pytest.raises(ResourceThrottled):
        coalescer.add(5, by_caller=True)
    futures.append(coalescer.add(5))
    assert await asyncio.gather(*futures) == [0, 2, 4, 6, 8, 10]


async def test_while_the_database_is_down_all_raise_its_error(node: Node, coalescer: Coalescer[Any, Any]) -> None:
    node.database.broken = True
    answers = await asyncio.gather(*(coalescer.add(n) for n in range(3)), return_exceptions=True)
    assert [type(answer) for answer in answers] == [OperationalError] * 3
    node.database.broken = False
    assert await coalescer.add(1) == 2


async def test_a_cancelled_caller_disturbs_no_other(coalescer: Coalescer[Any, Any]) -> None:
    one, two = coalescer.add(1), coalescer.add(2)
    one.cancel()
    assert await two == 4


async def test_after_the_committer_has_stopped_all_are_refused(node: Node, doubling: Doubling) -> None:
    committer = Committer(node.database, node.engine.committer._context, node.engine)
    await committer.stop()
    coalescer: Coalescer[Any, Any] = Coalescer(committer, doubling, pending_max=5)
    for _ in range(2):  # the first refusal leaves no state that would make a second change wait
        answers = await asyncio.gather(*(coalescer.add(n) for n in range(3)), return_exceptions=True)
        assert [type(answer) for answer in answers] == [ResourceThrottled] * 3
    assert doubling.groups == []
