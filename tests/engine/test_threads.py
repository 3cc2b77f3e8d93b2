"""Slow queries delay only each other: urgent work has its own threads and connections."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from flowserver.base.errors import ResourceThrottled
from flowserver.base.limits import Limits
from flowserver.engine.parts import CHECK_THREADS
from flowserver.engine.reads.slow_reads import LIST_THREADS
from flowserver.machine.state import Status
from tests.engine.held_threads import Gate
from tests.engine.nodes import Node, definition
from tests.support.clock import ManualClock

WAIT = "- {type: wait, name: w, duration: 60}"
PASS = "- {type: pass, name: p}"


@contextmanager
def blocked(node: Node, more: int = 3) -> Iterator[list[Gate]]:
    """Occupy every thread for lists and every thread for checks until the block ends, while `more` wait for one."""
    lists = [Gate() for _ in range(LIST_THREADS + more)]
    checks = [Gate() for _ in range(CHECK_THREADS + more)]
    tasks = [asyncio.create_task(node.engine.slow_reads.ask(gate)) for gate in lists]
    tasks += [asyncio.create_task(node.engine.checks.run(gate.block)) for gate in checks]
    try:
        yield [*lists[:LIST_THREADS], *checks[:CHECK_THREADS]]
    finally:
        for gate in (*lists, *checks):
            gate.open()


async def test_timers_fire_while_every_list_and_check_is_slow(node: Node, clock: ManualClock) -> None:
    await node.create_flow("f", WAIT)
    with blocked(node) as gates:
        await asyncio.gather(*(gate.reached.wait() for gate in gates))
        await node.start("f", "e")
        node.advance(clock, seconds=60)
        assert (await node.end_of("f", "e")).status is Status.SUCCEEDED
        await node.engine.recovery.sweep()
        assert (await node.operations.flows.describe("f")).name == "f"
        assert await node.operations.monitoring.is_ready()
        assert await node.operations.monitoring.metrics()


@pytest.mark.parametrize("limits", [Limits(pending_messages_max=2)])
async def test_lists_and_checks_that_wait_are_bounded(node: Node) -> None:
    with blocked(node, more=2) as gates:
        await asyncio.gather(*(gate.reached.wait() for gate in gates))
        with pytest.raises(ResourceThrottled):
            await node.operations.flows.list(next_token=None, limit=None)
        with pytest.raises(ResourceThrottled):
            await node.operations.flows.validate(definition(PASS))


@pytest.mark.parametrize("limits", [Limits(running_executions_max=2)])
async def test_ended_starts_release_capacity(node: Node) -> None:
    await node.create_flow("short", PASS)
    await node.create_flow("long", WAIT)
    for number in range(5):
        await node.start("short", f"e{number}")
    for number in range(3):
        await node.start("long", f"e{number}")
        await node.operations.executions.stop("long", f"e{number}")
    await node.start("long", "one")
    await node.start("long", "two")
    with pytest.raises(ResourceThrottled):
        await node.start("long", "three")
    await node.operations.executions.stop("long", "one")
    await node.start("long", "three")


@pytest.mark.parametrize("limits", [Limits(running_executions_max=1)])
async def test_executions_that_ran_before_the_node_started_use_capacity(
    node: Node,
) -> None:
    await node.create_flow("long", WAIT)
    await node.start("long", "e")
    node.engine.starter._counted_at = -float("inf")  # as in a process that has just started
    node.engine.starter._running = 0
    with pytest.raises(ResourceThrottled):
        await node.start("long", "another")
