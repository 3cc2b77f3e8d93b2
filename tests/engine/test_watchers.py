"""Who waits for an execution is woken by its changes, and by nobody else's."""

import asyncio

from flowserver.engine.watchers import Watchers
from tests.engine.nodes import Node

ASK = "- {type: wait, name: w, duration: 60}"


def test_changes_and_ends_wake_whom_they_concern() -> None:
    watchers = Watchers()
    with (
        watchers.watch_changes("a") as one,
        watchers.watch_changes("a") as two,
        watchers.watch_end("a") as end,
        watchers.watch_changes("b") as other,
    ):
        watchers.notify("a", ended=False)
        assert (one.is_set(), two.is_set(), end.is_set(), other.is_set()) == (True, True, False, False)
        one.clear()
        watchers.notify("a", ended=True)
        assert (one.is_set(), end.is_set(), other.is_set()) == (True, True, False)


def test_whoever_left_is_forgotten() -> None:
    watchers = Watchers()
    with watchers.watch_changes("a") as stays:
        with watchers.watch_changes("a") as gone:
            pass
        watchers.notify("a", ended=True)
    assert (stays.is_set(), gone.is_set()) == (True, False)
    watchers.notify("a", ended=True)


def test_everybody_is_released_when_the_server_stops() -> None:
    watchers = Watchers()
    with watchers.watch_changes("a") as one, watchers.watch_end("b") as two:
        watchers.release()
        assert (watchers.released, one.is_set(), two.is_set()) == (True, True, True)


async def test_a_long_poll_ends_with_the_execution(node: Node) -> None:
    await node.create_flow("f", ASK)
    await node.start("f", "e")
    waiting = [asyncio.create_task(node.end_of("f", "e")) for _ in range(5)]
    await node.operations.executions.stop("f", "e")
    assert {row.status for row in await asyncio.gather(*waiting)} == {"Stopped"}


async def test_a_long_poll_ends_when_the_server_stops(node: Node) -> None:
    await node.create_flow("f", ASK)
    await node.start("f", "e")
    waiting = asyncio.create_task(node.operations.executions.describe("f", "e", wait_seconds=60))
    node.engine.watchers.release()
    assert (await waiting).status == "Running"


async def test_a_history_is_followed_to_its_end(node: Node) -> None:
    await node.create_flow("f", ASK)
    await node.start("f", "e")
    seen: list[str] = []
    async for event in node.operations.executions.follow("f", "e"):
        seen.append(event.type)
        if event.type == "StepStarted":
            await node.operations.executions.stop("f", "e")
    assert seen == ["ExecutionStarted", "StepEntered", "StepStarted", "ExecutionStopped"]
