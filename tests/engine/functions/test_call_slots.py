"""Places for calls: bounded, given out in order; functions and flows take turns, and none ever has all."""

import asyncio

import pytest

from flowserver.engine.functions.call_slots import Places

PAY, SHIP = ("shop", "pay"), ("shop", "ship")


async def want(places: Places, flow: str, got: list[str], callee: tuple[str, ...] = PAY) -> None:
    await places.take(flow, callee)
    got.append(flow)


async def settle() -> None:
    """Let every task run until it waits."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_there_are_only_so_many() -> None:
    places, got = Places(2, 100), list[str]()
    tasks = [asyncio.create_task(want(places, "f", got)) for _ in range(3)]
    await settle()
    assert (got, places.taken, places.wanted) == (["f", "f"], 2, 1)
    places.give_back("f", PAY)
    await asyncio.gather(*tasks)
    assert (places.taken, places.wanted) == (2, 0)
    for _ in range(2):
        places.give_back("f", PAY)
    assert places.taken == 0


async def test_flows_take_turns() -> None:
    places, got = Places(1), list[str]()
    await places.take("busy", PAY)
    tasks = [asyncio.create_task(want(places, flow, got)) for flow in ["busy"] * 4 + ["one"] + ["two"] * 2]
    await settle()
    for flow in ["busy", "busy", "one", "two", "busy", "two", "busy"]:
        places.give_back(flow, PAY)
        await settle()
    await asyncio.gather(*tasks)
    assert got == ["busy", "one", "two", "busy", "two", "busy", "busy"]


@pytest.mark.parametrize("granted", [False, True])
async def test_whoever_gives_up_costs_no_place(granted: bool) -> None:
    places, got = Places(1), list[str]()
    await places.take("f", PAY)
    gone, stays = (asyncio.create_task(want(places, "f", got)) for _ in range(2))
    await settle()
    if granted:
        places.give_back("f", PAY)  # to `gone`, who is cancelled before it runs
    gone.cancel()
    await settle()
    if not granted:
        places.give_back("f", PAY)
    await stays
    assert (got, places.taken, places.wanted) == (["f"], 1, 0)


async def test_nothing_is_kept_of_those_who_gave_up() -> None:
    """Of the last of a flow not even the flow; those who are left get their turn."""
    places, got = Places(1), list[str]()
    await places.take("f", PAY)
    tasks = [asyncio.create_task(want(places, flow, got)) for flow in ("f", "f", "g", "h")]
    await settle()
    for gone in (tasks[0], tasks[2]):
        gone.cancel()
    await settle()
    waiting = {flow: len(turns) for flows in places._waiting.values() for flow, turns in flows.items()}
    assert waiting == {"f": 1, "h": 1}
    tasks[1].cancel()
    places.give_back("f", PAY)  # before whoever was cancelled could say so
    await settle()
    assert (got, places.taken, places.wanted, len(places._waiting)) == (["h"], 1, 0, 0)
    await asyncio.gather(*tasks, return_exceptions=True)
    places.give_back("h", PAY)
    assert (places._of_flows, places._of_callees) == ({}, {})


# Shares


async def hang(
    places: Places, count: int, *, flow: str = "f", callee: tuple[str, ...] = PAY
) -> list[asyncio.Task[None]]:
    """So many calls begin, as far as they may, and do not end."""
    tasks = [asyncio.create_task(want(places, flow, [], callee)) for _ in range(count)]
    await settle()
    return tasks


def held(tasks: list[asyncio.Task[None]]) -> int:
    return sum(task.done() for task in tasks)


async def end(*hanging: list[asyncio.Task[None]]) -> None:
    for task in [task for tasks in hanging for task in tasks]:
        task.cancel()
    await settle()


async def test_one_function_never_has_all_whoever_calls_it() -> None:
    places = Places(256)
    tasks = [task for number in range(300) for task in await hang(places, 1, flow=f"f{number}")]
    assert held(tasks) == 180
    await asyncio.wait_for(places.take("other", SHIP), 1)
    await end(tasks)


async def test_one_flow_never_has_all_whatever_it_calls() -> None:
    places = Places(256)
    tasks = [task for number in range(300) for task in await hang(places, 1, callee=(f"{number}",))]
    assert held(tasks) == 180
    await asyncio.wait_for(places.take("other", SHIP), 1)
    await end(tasks)


async def test_several_that_hang_leave_places_too() -> None:
    """Each takes three times as many as it leaves, but for the reserve, of which each gets one."""
    places = Places(256)
    hanging = [await hang(places, 300, flow=f"f{number}", callee=(f"{number}",)) for number in range(19)]
    assert [held(tasks) for tasks in hanging] == [180, 45, 11, 3, *[1] * 15]
    await asyncio.wait_for(places.take("other", SHIP), 1)
    await end(*hanging)


async def test_what_was_held_back_goes_on_when_there_is_room_again() -> None:
    """And no more places lie idle than its share leaves."""
    places = Places(8)
    mine, others = await hang(places, 6), await hang(places, 10, flow="g", callee=SHIP)
    assert (held(mine), held(others)) == (6, 1)
    had = []
    for _ in mine:
        places.give_back("f", PAY)
        await settle()
        had.append(held(others))
    assert had == [2, 3, 3, 4, 5, 6]
    await end(mine, others)


async def test_the_first_place_is_anybody_s() -> None:
    places = Places(1)
    await places.take("f", PAY)
    assert places.taken == 1
    places.give_back("f", PAY)
    await places.take("g", SHIP)
    assert places.taken == 1
