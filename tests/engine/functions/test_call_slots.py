"""Slots of the node and of functions: acquired together, released together, and never held by a call that does not
begin.
"""

import asyncio

import pytest

from flowserver.base.errors import ResourceExhausted
from flowserver.base.limits import Limits
from flowserver.engine.functions.call_slots import CallSlots
from flowserver.invokers.calls import Endpoint

PAY, SHIP = ("shop", "pay"), ("shop", "ship")


def endpoint(concurrency_max: int, waiting_max: int = 0) -> Endpoint:
    return Endpoint(
        url="http://h/",
        headers={},
        timeout_seconds=60,
        registered_as=PAY,
        modified_at=1,
        concurrency_max=concurrency_max,
        waiting_max=waiting_max,
    )


def one_slot() -> CallSlots:
    return CallSlots(Limits(invocations_in_flight_max=1), lambda: 1)


async def test_a_call_that_finds_the_node_full_holds_no_slot_of_its_function() -> None:
    slots = one_slot()
    limit = slots.function_limits.admit(endpoint(1))
    assert limit is not None
    other = slots.acquire_now("f", SHIP)
    assert other is not None and limit.acquire_now()
    assert slots.acquire_now("f", PAY, limit) is None
    assert (limit.taken, slots.taken) == (0, 1)

    assert limit.acquire_now()
    waiting = asyncio.create_task(slots.acquire("f", PAY, limit))
    await asyncio.sleep(0)
    assert (slots.callers_waiting, slots.are_crowded) == (1, True)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert (limit.taken, slots.taken, slots.callers_waiting, slots.are_crowded) == (0, 1, 0, False)


async def test_both_slots_are_released_once() -> None:
    slots = one_slot()
    limit = slots.function_limits.admit(endpoint(2))
    assert limit is not None and limit.acquire_now() and limit.acquire_now()
    slot = slots.acquire_now("f", PAY, limit)
    assert slot is not None
    for _ in range(2):
        slot.release()
        assert (limit.taken, slots.taken) == (1, 0)


async def test_nodes_share_the_slots_of_a_function() -> None:
    nodes = 4
    limits = CallSlots(Limits(), lambda: nodes).function_limits
    assert [limits.room(endpoint(each)) for each in (8, 7, 1)] == [2, 1, 1]
    nodes = 1
    assert limits.room(endpoint(8)) == 8


async def test_a_caller_that_may_not_wait_is_refused() -> None:
    limits = one_slot().function_limits
    limit = limits.admit(endpoint(1))
    assert limit is not None and limit.acquire_now()
    with pytest.raises(ResourceExhausted, match="no more calls may wait"):
        limits.admit(endpoint(1))
    assert limits.admit(endpoint(1, waiting_max=1)) is limit
