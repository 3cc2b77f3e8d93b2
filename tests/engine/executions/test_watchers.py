"""A waiter of an execution is woken by its changes, and by no others."""

import asyncio
from dataclasses import replace

import pytest
from sqlalchemy import Connection

from flowserver.engine.executions.watchers import Watchers
from flowserver.machine.state import Execution, Status
from flowserver.store.executions.committed_ends import End
from flowserver.store.executions.shown_executions import ExecutionRow, find_execution
from tests.engine.nodes import Node
from tests.support.clock import ManualClock
from tests.support.following import follow

ASK = "- {type: wait, name: w, duration: 60}"


def running(execution_id: str) -> Execution:
    return Execution(execution_id, "f", "e", {}, started_at=1, deadline_at=9)


def ended(execution_id: str) -> Execution:
    return replace(running(execution_id), status=Status.SUCCEEDED, stopped_at=5, output={"n": 1})


def test_changes_and_ends_wake_the_right_waiters() -> None:
    watchers = Watchers()
    with (
        watchers.watch_changes("a") as one,
        watchers.watch_changes("a") as two,
        watchers.watch_end("a") as end,
        watchers.watch_changes("b") as other,
    ):
        watchers.notify_change(running("a"))
        assert [each.woken.is_set() for each in (one, two, end, other)] == [True, True, False, False]
        one.woken.clear()
        watchers.notify_change(ended("a"))
        assert [each.woken.is_set() for each in (one, end, other)] == [True, True, False]
        assert end.end == End(
            execution_id="a", status=Status.SUCCEEDED, stopped_at=5, output='{"n":1}', error=None, cause=None
        )


def test_an_end_wakes_waiters_by_name() -> None:
    watchers = Watchers()
    with watchers.watch_name("f", "e") as watch, watchers.watch_name("f", "other") as other:
        watchers.notify_change(running("a"))
        assert not watch.woken.is_set()
        watchers.notify_change(ended("a"))
        assert (watch.woken.is_set(), other.woken.is_set()) == (True, False)
        assert watch.end is not None
        assert watch.end.execution_id == "a"


def test_changes_of_other_nodes_must_be_read() -> None:
    watchers = Watchers()
    with watchers.watch_changes("a") as change, watchers.watch_end("a") as end:
        watchers.wake("a", ended=False)
        assert (change.woken.is_set(), end.woken.is_set()) == (True, False)
        watchers.wake("a", ended=True)
        assert (end.woken.is_set(), end.end) == (True, None)


def test_cancelled_waiters_are_removed() -> None:
    watchers = Watchers()
    with watchers.watch_changes("a") as stays:
        with watchers.watch_changes("a") as gone:
            pass
        watchers.wake("a", ended=True)
    assert (stays.woken.is_set(), gone.woken.is_set()) == (True, False)
    watchers.notify_change(ended("a"))


def test_all_waiters_are_released_when_the_server_stops() -> None:
    watchers = Watchers()
    with watchers.watch_changes("a") as one, watchers.watch_end("b") as two:
        watchers.stop()
        assert (watchers.is_stopping, one.woken.is_set(), two.woken.is_set()) == (True, True, True)


async def test_a_long_poll_ends_with_the_execution(node: Node) -> None:
    await node.create_flow("f", ASK)
    await node.start("f", "e")
    waiting = [asyncio.create_task(node.end_of("f", "e")) for _ in range(5)]
    await node.operations.executions.stop("f", "e")
    assert {row.status for row in await asyncio.gather(*waiting)} == {"Stopped"}


async def test_a_long_poll_reads_once_when_another_execution_of_its_name_has_ended(
    node: Node, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its flow was deleted and created again, and recovery stops the old execution only now."""
    reads: list[str] = []

    def counted(connection: Connection, flow_name: str, name: str, *, documents: bool) -> ExecutionRow | None:
        reads.append(name)
        return find_execution(connection, flow_name, name, documents=documents)

    monkeypatch.setattr("flowserver.operations.executions.find_execution", counted)
    await node.create_flow("f", ASK)
    await node.start("f", "e")
    poll = asyncio.create_task(node.operations.executions.describe("f", "e", wait_seconds=60))
    while not reads:
        await node.engine.reader.ask(lambda _: None)
    node.engine.watchers.notify_change(ended("the old one"))
    for _ in range(20):
        await node.engine.reader.ask(lambda _: None)
    assert len(reads) <= 2
    node.advance(clock, seconds=60)
    assert (await poll).status is Status.SUCCEEDED


async def test_a_long_poll_ends_when_the_server_stops(node: Node) -> None:
    await node.create_flow("f", ASK)
    await node.start("f", "e")
    waiting = asyncio.create_task(node.operations.executions.describe("f", "e", wait_seconds=60))
    node.engine.watchers.stop()
    assert (await waiting).status == "Running"


@pytest.mark.parametrize("ended_by", ["a stop", "its flow's deletion"])
async def test_a_history_is_followed_to_its_end(node: Node, ended_by: str) -> None:
    await node.create_flow("f", ASK)
    await node.start("f", "e")
    seen: list[str] = []
    async for event in follow(node.operations, "f", "e"):
        seen.append(event.type)
        if event.type == "StepStarted" and ended_by == "a stop":
            await node.operations.executions.stop("f", "e")
        elif event.type == "StepStarted":
            await node.operations.flows.delete("f")
    assert seen == ["ExecutionStarted", "StepEntered", "StepStarted", "ExecutionStopped"]
