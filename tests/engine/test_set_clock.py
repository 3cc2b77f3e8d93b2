"""A clock that was set: nothing is deleted by its age, and schedules continue."""

import pytest
from sqlalchemy import Table, func, insert, select

from flowserver.base.clock import DAY_MS
from flowserver.base.limits import Limits
from flowserver.engine.background_loop import PeriodicLoop
from flowserver.engine.clock_loop import ClockLoop
from flowserver.engine.retention import ExecutionRetention
from flowserver.machine.retention_rules import Rules
from flowserver.operations.audit_retention import AuditRetention
from flowserver.operations.queues import OutgoingMessage, QueueAttributes
from flowserver.operations.schedule_fields import ScheduleChange
from flowserver.store.audit import AuditRecord, begin_record, record_id_at
from flowserver.store.schema.audit_tables import audit_records
from flowserver.store.schema.queue_tables import queue_messages
from flowserver.store.schema.tables import executions, nonces
from tests.engine.nodes import Node
from tests.support.clock import ManualClock

TABLES: dict[str, Table] = {table.name: table for table in (executions, queue_messages, nonces, audit_records)}
"""Tables from which rows are deleted by their age."""

ENDS = "- {type: pass, name: p}"
JUMP_MS = 400 * DAY_MS


async def _fill(node: Node, clock: ManualClock) -> None:
    """A row in each table from which rows are deleted by their age."""
    now = clock.now_ms()
    await node.create_flow("f", ENDS)
    await node.start("f", "e")
    await node.end_of("f", "e")
    await node.operations.queues.create("q", QueueAttributes(retention_seconds=60))
    await node.operations.queues.send("q", [OutgoingMessage(body="old")])
    with node.database.write() as connection:
        connection.execute(insert(nonces), {"access_key_id": "k", "nonce": "n", "expires_at": now + 1_000})
        begin_record(connection, AuditRecord(record_id=record_id_at(now), at=now, operation="o"))


async def _delete_all(node: Node) -> dict[str, int]:
    """Run every loop that deletes; returns how many rows are left."""
    engine = node.engine
    retention = ExecutionRetention(engine.context, Rules(days=30, bytes_max=0), lambda _: None)
    loops = [each for each in engine.loops if isinstance(each, PeriodicLoop)]
    for loop in (retention, AuditRetention(engine.context, days=30), *loops):
        await loop.run_once()
        await loop.stop()
    await engine.recovery.sweep()
    with node.database.read() as connection:
        counted = {name: select(func.count()).select_from(table) for name, table in TABLES.items()}
        return {name: connection.execute(query).scalar_one() for name, query in counted.items()}


async def test_a_clock_that_is_ahead_for_a_while_deletes_nothing(node: Node, clock: ManualClock) -> None:
    """Reported: 32 days ahead for 75 s, and all executions were gone."""
    await _fill(node, clock)
    clock.step(JUMP_MS)
    assert await _delete_all(node) == dict.fromkeys(TABLES, 1)
    clock.advance(seconds=75)
    assert await _delete_all(node) == dict.fromkeys(TABLES, 1)
    clock.step(-JUMP_MS)
    assert await _delete_all(node) == dict.fromkeys(TABLES, 1)
    settings = Limits()
    clock.advance(seconds=settings.clock_settle_seconds)
    left = await _delete_all(node)
    assert (left["executions"], left["audit_records"]) == (1, 1)
    assert (left["nonces"], left["queue_messages"]) == (0, 0)
    clock.advance(ms=JUMP_MS)
    assert await _delete_all(node) == dict.fromkeys(TABLES, 0)


async def test_another_nodes_clock_deletes_nothing(node: Node, clock: ManualClock) -> None:
    await _fill(node, clock)
    node.engine.clock_watch.compare_others(JUMP_MS)
    clock.advance(ms=JUMP_MS)
    assert await _delete_all(node) == dict.fromkeys(TABLES, 1)


@pytest.mark.parametrize("expression", ["@every 1m", "0 * * * * *", "0 0 0/1 * * ?"])
async def test_schedules_continue_after_a_clock_that_was_ahead(
    node: Node, clock: ManualClock, expression: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Reported: they stayed silent until the instant that the clock had shown."""
    loop = node.engine.schedules
    await loop.stop()
    watching = ClockLoop(node.engine.context, loop.compute_again)
    await node.create_flow("f", ENDS)
    first = (await node.operations.schedules.create("f", "s", ScheduleChange(expression=expression))).next_at
    assert first is not None
    assert await watching.run_once() == 0
    clock.step(JUMP_MS)
    await loop.handle_due()
    assert ((await node.operations.schedules.describe("f", "s")).next_at or 0) > first
    clock.step(-JUMP_MS)
    assert await watching.run_once() == 1
    assert await watching.run_once() == 0
    schedule = await node.operations.schedules.describe("f", "s")
    assert schedule.next_at == first
    assert "schedules are computed anew" in caplog.text
    clock.advance(ms=first - clock.now_ms())
    await loop.handle_due()
    assert (await node.operations.schedules.describe("f", "s")).memory.recent[-1].at == first
    await loop.stop()
