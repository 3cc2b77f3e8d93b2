"""Places for calls: bounded, given out in order, and the flows take turns."""

import asyncio

import pytest

from flowserver.engine.places import Places


async def want(places: Places, flow: str, got: list[str]) -> None:
    await places.take(flow)
    got.append(flow)


async def settle() -> None:
    """Let every task run until it waits."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_there_are_only_so_many() -> None:
    places, got = Places(2), list[str]()
    tasks = [asyncio.create_task(want(places, "f", got)) for _ in range(3)]
    await settle()
    assert (got, places.taken, places.wanted, places.are_taken) == (["f", "f"], 2, 1, True)
    places.give_back()
    await asyncio.gather(*tasks)
    assert (places.taken, places.wanted) == (2, 0)
    for _ in range(2):
        places.give_back()
    assert (places.taken, places.are_taken) == (0, False)


async def test_flows_take_turns() -> None:
    places, got = Places(1), list[str]()
    await places.take("busy")
    tasks = [asyncio.create_task(want(places, flow, got)) for flow in ["busy"] * 4 + ["one"] + ["two"] * 2]
    await settle()
    for _ in tasks:
        places.give_back()
        await settle()
    await asyncio.gather(*tasks)
    assert got == ["busy", "one", "two", "busy", "two", "busy", "busy"]


@pytest.mark.parametrize("granted", [False, True])
async def test_whoever_gives_up_costs_no_place(granted: bool) -> None:
    places, got = Places(1), list[str]()
    await places.take("f")
    gone, stays = (asyncio.create_task(want(places, "f", got)) for _ in range(2))
    await settle()
    if granted:
        places.give_back()  # to `gone`, who is cancelled before it runs
    gone.cancel()
    await settle()
    if not granted:
        places.give_back()
    await stays
    assert (got, places.taken, places.wanted) == (["f"], 1, 0)


async def test_nothing_is_kept_of_those_who_gave_up() -> None:
    """Of the last of a flow not even the flow; those who are left get their turn."""
    places, got = Places(1), list[str]()
    await places.take("f")
    tasks = [asyncio.create_task(want(places, flow, got)) for flow in ("f", "f", "g", "h")]
    await settle()
    for gone in (tasks[0], tasks[2]):
        gone.cancel()
    await settle()
    assert {flow: len(turns) for flow, turns in places._waiting.items()} == {"f": 1, "h": 1}
    tasks[1].cancel()
    places.give_back()  # before whoever was cancelled could say so
    await settle()
    assert (got, places.taken, places.wanted, len(places._waiting)) == (["h"], 1, 0, 0)
    await asyncio.gather(*tasks, return_exceptions=True)
