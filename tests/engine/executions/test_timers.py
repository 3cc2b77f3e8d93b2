"""Waits and deadlines fire when they are due, and not before."""

import asyncio

import pytest
from sqlalchemy import delete, insert, select

from flowserver.engine.commit.batch_items import Envelope, Receipt
from flowserver.machine.events import EventType
from flowserver.machine.state import Status
from flowserver.store.schema.tables import execution_documents, scopes
from tests.engine.called_functions import Functions
from tests.engine.nodes import Node
from tests.support.clock import ManualClock


def wait(seconds: int, name: str = "w") -> str:
    return f"- {{type: wait, name: {name}, duration: {seconds}}}"


async def test_a_wait_ends_when_it_is_due(node: Node, clock: ManualClock) -> None:
    await node.create_flow("f", wait(60))
    row = await node.start("f", "e")
    node.advance(clock, seconds=59.999)
    await node.create_flow("marker", wait(1))
    assert (await node.operations.executions.describe("f", "e")).status is Status.RUNNING
    node.advance(clock, seconds=0.001)
    ended = await node.end_of("f", "e")
    assert (ended.status, ended.stopped_at) == (Status.SUCCEEDED, row.started_at + 60_000)


async def test_waits_of_different_lengths_end_in_their_order(node: Node, clock: ManualClock) -> None:
    for seconds in (30, 10, 20):
        await node.create_flow(f"f{seconds}", wait(seconds))
        await node.start(f"f{seconds}", "e")
    for seconds in (10, 20, 30):
        node.advance(clock, seconds=10)
        await node.end_of(f"f{seconds}", "e")
        running = [s for s in (10, 20, 30) if s > seconds]
        rows = [await node.operations.executions.describe(f"f{s}", "e") for s in running]
        assert {row.status for row in rows} <= {Status.RUNNING}


async def test_a_wait_that_is_due_at_once(node: Node) -> None:
    await node.create_flow("f", wait(0))
    await node.start("f", "e")
    assert (await node.end_of("f", "e")).status is Status.SUCCEEDED


async def test_an_earlier_instant_wakes_the_timers(node: Node) -> None:
    """The loop sleeps towards the later instant when it notices the earlier one; a little real time passes here."""
    await node.create_flow("late", wait(3600))
    await node.create_flow("soon", "- {type: wait, name: w, timestamp: '2020-01-01T00:00:00Z'}\n" + wait(0, "x"))
    await node.start("late", "e")
    await node.start("soon", "e")
    assert (await node.end_of("soon", "e")).status is Status.SUCCEEDED


async def test_an_execution_reaches_its_deadline(node: Node, clock: ManualClock) -> None:
    await node.create_flow("f", wait(60), "timeoutSeconds: 10")
    await node.start("f", "e")
    node.advance(clock, seconds=10)
    row = await node.end_of("f", "e")
    assert (row.status, row.error) == (Status.TIMED_OUT, "FnF.ExecutionTimeout")


async def test_a_call_that_times_out_is_dropped_and_retried(
    node: Node, functions: Functions, clock: ManualClock
) -> None:
    await node.register(functions, "s/slow")
    await node.create_flow(
        "f",
        """
        - type: task
          name: t
          resourceArn: acs:fc:::services/s/functions/slow
          timeoutSeconds: 100
          retry: [{errors: [FnF.TaskTimeout], intervalSeconds: 5, maxAttempts: 1}]
        """,
    )
    await node.start("f", "e")
    first = await functions.next_call("s/slow")
    node.advance(clock, seconds=100)
    await first.gone.wait()
    await node.reached("f", "e", EventType.TASK_TIMED_OUT)
    node.advance(clock, seconds=5)
    second = await functions.next_call("s/slow")
    assert (second.key, second.attempt) == (first.key, 2)
    second.reply({"in": "time"})
    assert await node.output_of("f", "e") == {"in": "time"}


async def test_many_waits_due_together(node: Node, clock: ManualClock) -> None:
    """More than one look finds."""
    await node.create_flow(
        "f",
        """
        - type: foreach
          name: each
          iterationMapping: {collection: $.items, item: item}
          steps:
            - {type: wait, name: w, duration: 60}
        """,
    )
    names = [f"e{number}" for number in range(7)]
    await asyncio.gather(*(node.start("f", name, {"items": [0] * 100}) for name in names))
    node.advance(clock, seconds=60)
    ended = await asyncio.gather(*(node.end_of("f", name) for name in names))
    assert {row.status for row in ended} == {Status.SUCCEEDED}


async def test_a_failing_database_only_delays_a_timer(node: Node, clock: ManualClock) -> None:
    await node.create_flow("f", wait(60))
    await node.start("f", "e")
    node.database.broken = True
    node.advance(clock, seconds=60)
    await node.database.failed()
    node.database.broken = False
    assert (await node.end_of("f", "e")).status is Status.SUCCEEDED


async def test_a_timer_that_cannot_fire_is_not_retried_without_pause(
    node: Node, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of its execution is missing here, so it cannot even be parked. The others are not delayed."""
    await node.create_flow("f", wait(60))
    await node.create_flow("g", wait(0))
    broken = await node.start("f", "broken")
    with node.database.write() as connection:
        connection.execute(delete(execution_documents))
    submit, tries = node.engine.committer.submit, 0

    async def count(envelope: Envelope, **bounds: bool) -> Receipt:
        nonlocal tries
        tries += envelope.execution_id == broken.execution_id
        return await submit(envelope, **bounds)

    monkeypatch.setattr(node.engine.committer, "submit", count)
    node.advance(clock, seconds=60)
    await node.start("g", "e")
    await node.end_of("g", "e")
    for _ in range(2):
        await node.engine.recovery.sweep()
    assert 1 <= tries < 10


async def test_invalid_rows_delay_nothing(node: Node, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """An ended execution has more waits than one look reads, all due before the valid one."""
    monkeypatch.setattr("flowserver.engine.executions.timers.FIRED_AT_ONCE", 3)
    await node.create_flow("f", wait(60))
    await node.start("f", "ended")
    with node.database.write() as connection:
        row = connection.execute(select(scopes)).one()._asdict()
    await node.operations.executions.stop("f", "ended")
    await node.start("f", "counts")
    with node.database.write() as connection:
        connection.execute(insert(scopes), [{**row, "scope_id": number, "wake_at": 1} for number in range(1, 10)])
    looks, look = 0, node.engine.timers._look

    def count() -> tuple[list[tuple[Envelope, int]], int | None]:
        nonlocal looks
        looks += 1
        return look()

    monkeypatch.setattr(node.engine.timers, "_look", count)
    node.advance(clock, seconds=60)
    assert (await node.end_of("f", "counts")).status is Status.SUCCEEDED
    assert looks < 10
