"""Slots under keys: bounded, granted in order; callees and flows take turns, and none ever has all."""

import asyncio

import pytest

from flowserver.concurrency.keyed_semaphore import KeyedSemaphore

PAY, SHIP = ("shop", "pay"), ("shop", "ship")


async def want(slots: KeyedSemaphore, flow: str, got: list[str], callee: tuple[str, ...] = PAY) -> None:
    await slots.acquire(flow, callee)
    got.append(flow)


async def settle() -> None:
    """Let every task run until it waits."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_the_number_of_slots_is_limited() -> None:
    slots, got = KeyedSemaphore(2), list[str]()
    tasks = [asyncio.create_task(want(slots, "f", got)) for _ in range(3)]
    await settle()
    assert (got, slots.taken, slots.waiting) == (["f", "f"], 2, 1)
    slots.release("f", PAY)
    await asyncio.gather(*tasks)
    assert (slots.taken, slots.waiting) == (2, 0)
    for _ in range(2):
        slots.release("f", PAY)
    assert slots.taken == 0


async def test_flows_take_turns() -> None:
    slots, got = KeyedSemaphore(1, 75), list[str]()
    await slots.acquire("busy", PAY)
    tasks = [asyncio.create_task(want(slots, flow, got)) for flow in ["busy"] * 4 + ["one"] + ["two"] * 2]
    await settle()
    for flow in ["busy", "busy", "one", "two", "busy", "two", "busy"]:
        slots.release(flow, PAY)
        await settle()
    await asyncio.gather(*tasks)
    assert got == ["busy", "one", "two", "busy", "two", "busy", "busy"]


@pytest.mark.parametrize("granted", [False, True])
async def test_a_cancelled_waiter_costs_no_slot(granted: bool) -> None:
    slots, got = KeyedSemaphore(1, 75), list[str]()
    await slots.acquire("f", PAY)
    gone, stays = (asyncio.create_task(want(slots, "f", got)) for _ in range(2))
    await settle()
    if granted:
        slots.release("f", PAY)  # to `gone`, which is cancelled before it runs
    gone.cancel()
    await settle()
    if not granted:
        slots.release("f", PAY)
    await stays
    assert (got, slots.taken, slots.waiting) == (["f"], 1, 0)


async def test_cancelled_waiters_leave_no_state() -> None:
    """After the last waiter of a flow, not even the flow. The remaining waiters get their turn."""
    slots, got = KeyedSemaphore(1, 75), list[str]()
    await slots.acquire("f", PAY)
    tasks = [asyncio.create_task(want(slots, flow, got)) for flow in ("f", "f", "g", "h")]
    await settle()
    for gone in (tasks[0], tasks[2]):
        gone.cancel()
    await settle()
    waiting = {flow: len(turns) for flows in slots._waiters.values() for flow, turns in flows.items()}
    assert waiting == {"f": 1, "h": 1}
    tasks[1].cancel()
    slots.release("f", PAY)  # before the cancelled task has run
    await settle()
    assert (got, slots.taken, slots.waiting, len(slots._waiters)) == (["h"], 1, 0, 0)
    await asyncio.gather(*tasks, return_exceptions=True)
    slots.release("h", PAY)
    assert (slots._of_owners, slots._of_resources) == ({}, {})


# Shares


async def hang(
    slots: KeyedSemaphore, count: int, *, flow: str = "f", callee: tuple[str, ...] = PAY
) -> list[asyncio.Task[None]]:
    """Begin this many calls, as far as slots allow, and end none."""
    tasks = [asyncio.create_task(want(slots, flow, [], callee)) for _ in range(count)]
    await settle()
    return tasks


def held(tasks: list[asyncio.Task[None]]) -> int:
    return sum(task.done() for task in tasks)


async def end(*hanging: list[asyncio.Task[None]]) -> None:
    for task in [task for tasks in hanging for task in tasks]:
        task.cancel()
    await settle()


async def test_one_function_never_has_all_slots_for_any_callers() -> None:
    slots = KeyedSemaphore(256, 75)
    tasks = [task for number in range(300) for task in await hang(slots, 1, flow=f"f{number}")]
    assert held(tasks) == 180
    await asyncio.wait_for(slots.acquire("other", SHIP), 1)
    await end(tasks)


async def test_one_flow_never_has_all_slots_for_any_callees() -> None:
    slots = KeyedSemaphore(256, 75)
    tasks = [task for number in range(300) for task in await hang(slots, 1, callee=(f"{number}",))]
    assert held(tasks) == 180
    await asyncio.wait_for(slots.acquire("other", SHIP), 1)
    await end(tasks)


async def test_several_hanging_functions_leave_slots_too() -> None:
    """Each takes three times as many as it leaves, except for the reserve, of which each gets one."""
    slots = KeyedSemaphore(256, 75)
    hanging = [await hang(slots, 300, flow=f"f{number}", callee=(f"{number}",)) for number in range(19)]
    assert [held(tasks) for tasks in hanging] == [180, 45, 11, 3, *[1] * 15]
    await asyncio.wait_for(slots.acquire("other", SHIP), 1)
    await end(*hanging)


async def test_a_held_back_call_continues_when_slots_are_free_again() -> None:
    """No more slots stay idle than its share leaves."""
    slots = KeyedSemaphore(8, 75)
    mine, others = await hang(slots, 6), await hang(slots, 10, flow="g", callee=SHIP)
    assert (held(mine), held(others)) == (6, 1)
    had = []
    for _ in mine:
        slots.release("f", PAY)
        await settle()
        had.append(held(others))
    assert had == [2, 3, 3, 4, 5, 6]
    await end(mine, others)


async def test_a_single_slot_is_for_every_key() -> None:
    slots = KeyedSemaphore(1, 75)
    await slots.acquire("f", PAY)
    assert slots.taken == 1
    slots.release("f", PAY)
    await slots.acquire("g", SHIP)
    assert slots.taken == 1


async def test_added_slots_go_to_the_longest_waiters() -> None:
    slots, got = KeyedSemaphore(1), list[str]()

    async def want_one(name: str) -> None:
        await slots.acquire()
        got.append(name)

    tasks = [asyncio.create_task(want_one(name)) for name in "abcd"]
    await settle()
    slots.resize(3)
    await settle()
    assert (got, slots.taken, slots.waiting) == (["a", "b", "c"], 3, 1)
    slots.resize(1)
    slots.release()
    await settle()
    assert (got, slots.taken, slots.free, slots.waiting) == (["a", "b", "c"], 2, -1, 1)
    for _ in range(2):
        slots.release()
    await asyncio.gather(*tasks)
    assert (got, slots.taken) == (["a", "b", "c", "d"], 1)
