"""Ticks: each starts one execution, in the transaction that advances the schedule."""

import pytest
from msgspec.structs import replace
from sqlalchemy import func, insert, select, update

from flowserver.base.errors import ScheduleNotExists
from flowserver.base.json_values import load_json
from flowserver.base.limits import Limits
from flowserver.engine.due_loop import AT_ONCE
from flowserver.machine.schedules.state import Overlap
from flowserver.machine.state import Status
from flowserver.operations.schedule_fields import ScheduleChange
from flowserver.store.schedules.rows import row_of
from flowserver.store.schema.schedule_tables import schedules
from flowserver.store.schema.tables import definitions, executions, flows
from tests.engine.nodes import Node
from tests.engine.schedules.conftest import ENDS, NEVER_ENDS, Hand
from tests.support.clock import ManualClock


async def test_a_tick_starts_an_execution_under_its_name(hand: Hand) -> None:
    await hand.create(ENDS, "30 * * * * *", payload='{"k": 1}')
    await hand.turns(after_seconds=29.999)
    assert await hand.executions() == []
    await hand.turns(after_seconds=0.001)
    row = await hand.node.end_of("f", "s-20260101T000030Z")
    assert load_json(row.input) == {
        "payload": {"k": 1}, "triggerTime": "2026-01-01T00:00:30.000Z", "triggerName": "s"
    }  # fmt: skip
    await hand.turns()
    assert await hand.executions() == ["s-20260101T000030Z"]
    await hand.turns(after_seconds=60)
    assert len(await hand.executions()) == 2


async def test_the_loop_wakes_by_itself(node: Node, clock: ManualClock) -> None:
    await node.create_flow("f", ENDS)
    created = await node.operations.schedules.create("f", "s", ScheduleChange(expression="@every 1m"))
    assert created.payload == ""
    with node.engine.watchers.watch_name("f", "s-20260101T000100Z") as watch:
        node.advance(clock, seconds=60)
        await watch.woken.wait()
    row = await node.operations.executions.describe("f", "s-20260101T000100Z")
    assert load_json(row.input)["payload"] == {}


async def test_a_tick_whose_answer_was_lost_starts_once(hand: Hand) -> None:
    await hand.create(ENDS)
    hand.node.database.lose_answer_of(select(executions.c.execution_id))
    await hand.turns(after_seconds=60)
    assert hand.node.database.has_lied
    assert await hand.executions() == ["s-20260101T000100Z"]
    memory = (await hand.schedule()).memory
    assert (memory.started, memory.refusals, memory.skipped) == (1, 0, 0)


async def test_a_database_that_refuses_writes_is_not_asked_without_pause(hand: Hand) -> None:
    await hand.create(ENDS)
    hand.clock.advance(seconds=60)
    hand.node.database.refuses = lambda _: True
    assert await hand.loop.handle_due() != AT_ONCE
    hand.node.database.refuses = lambda _: False
    await hand.turns()
    assert await hand.executions() == ["s-20260101T000100Z"]


async def test_a_crash_before_the_commit_loses_no_tick(hand: Hand) -> None:
    await hand.create(ENDS)
    hand.clock.advance(seconds=60)
    hand.node.database.refuses = lambda connection: connection.execute(select(executions)).first() is not None
    await hand.loop.handle_due()
    assert await hand.executions() == []
    assert (await hand.schedule()).memory.started == 0
    hand.node.database.refuses = lambda _: False
    await hand.turns()
    assert await hand.executions() == ["s-20260101T000100Z"]


async def test_a_turn_that_was_taken_meanwhile_is_stale(hand: Hand) -> None:
    await hand.create(ENDS)
    hand.clock.advance(seconds=60)
    decided, _, _ = hand.loop._look(set())
    await hand.turns()
    for each in decided:
        await hand.loop._start(each)
    memory = (await hand.schedule()).memory
    assert (memory.started, memory.refusals) == (1, 0)
    assert len(await hand.executions()) == 1


async def test_a_buffered_tick_starts_when_the_execution_before_it_ends(hand: Hand) -> None:
    await hand.create(NEVER_ENDS, overlap=Overlap.BUFFER_ALL)
    for _ in range(3):
        await hand.turns(after_seconds=60)
    assert await hand.executions() == ["s-20260101T000100Z"]
    for name in ("s-20260101T000100Z", "s-20260101T000200Z"):
        await hand.node.operations.executions.stop("f", name)
        await hand.turns()  # at once: the loop was notified of the end
    assert await hand.executions() == [f"s-20260101T000{minute}00Z" for minute in (1, 2, 3)]


async def test_an_end_without_a_notice_is_found_by_the_row(hand: Hand) -> None:
    await hand.create(NEVER_ENDS, overlap=Overlap.BUFFER_ONE)
    await hand.turns(after_seconds=60)
    await hand.turns(after_seconds=60)
    hand.loop._awaited.clear()
    await hand.node.operations.executions.stop("f", "s-20260101T000100Z")
    await hand.turns(after_seconds=30)
    assert len(await hand.executions()) == 2


@pytest.mark.parametrize("overlap", [Overlap.CANCEL_OTHER, Overlap.TERMINATE_OTHER])
async def test_an_overlap_policy_stops_the_running_execution(hand: Hand, overlap: Overlap) -> None:
    await hand.create(NEVER_ENDS, overlap=overlap)
    await hand.turns(after_seconds=60)
    await hand.turns(after_seconds=60)
    stopped = await hand.node.end_of("f", "s-20260101T000100Z")
    assert (stopped.status, stopped.error) == (Status.STOPPED, "Schedule.Overlap")
    await hand.turns()
    second = await hand.node.operations.executions.describe("f", "s-20260101T000200Z")
    assert second.status is Status.RUNNING


async def test_a_failure_pauses_at_once(hand: Hand) -> None:
    await hand.create("- {type: fail, name: x, error: E}", pauses_on_failure=True)
    await hand.turns(after_seconds=60)
    await hand.node.end_of("f", "s-20260101T000100Z")
    await hand.turns()
    schedule = await hand.schedule()
    assert not schedule.is_enabled
    assert schedule.note == "paused because the execution s-20260101T000100Z failed"


@pytest.mark.parametrize("limits", [Limits(running_executions_max=1)])
async def test_a_refused_start_is_retried_within_its_catch_up_window(hand: Hand) -> None:
    await hand.node.create_flow("busy", NEVER_ENDS)
    await hand.node.start("busy", "e")
    await hand.create(ENDS)
    await hand.turns(after_seconds=60)
    memory = (await hand.schedule()).memory
    assert memory.refusal is not None
    assert (memory.refusal.code, memory.refusals) == ("ResourceThrottled", 1)
    for _ in range(5):
        await hand.turns(after_seconds=12)
        assert (await hand.schedule()).memory.missed == 0
    await hand.turns(after_seconds=30)
    assert (await hand.schedule()).memory.missed == 1
    await hand.node.operations.executions.stop("busy", "e")
    await hand.turns(after_seconds=60)
    assert "s-20260101T000300Z" in await hand.executions()


async def test_a_refused_start_does_not_stop_the_others(hand: Hand) -> None:
    await hand.create(ENDS)
    await hand.create("- {type: pass, name: other}", flow="g")
    with hand.node.database.write() as connection:
        flow_id = select(flows.c.flow_id).where(flows.c.name == "f").scalar_subquery()
        connection.execute(update(definitions).where(definitions.c.flow_id == flow_id).values(text="damaged"))
    await hand.turns(after_seconds=60)
    assert await hand.executions("g") == ["s-20260101T000100Z"]
    memory = (await hand.schedule()).memory
    assert memory.refusal is not None
    assert (memory.refusal.code, memory.started) == ("InternalServerError", 0)


async def test_schedules_are_deleted_with_their_flow(hand: Hand) -> None:
    await hand.create(ENDS)
    await hand.node.operations.flows.delete("f")
    await hand.node.create_flow("f", ENDS)
    await hand.turns(after_seconds=60)
    assert await hand.executions() == []
    with pytest.raises(ScheduleNotExists):
        await hand.schedule()


async def test_a_damaged_schedule_does_not_stop_the_others(hand: Hand) -> None:
    await hand.create(ENDS)
    await hand.create(ENDS, flow="g")
    with hand.node.database.write() as connection:
        connection.execute(update(schedules).where(schedules.c.flow_name == "f").values(memory="no JSON"))
    await hand.turns(after_seconds=60)
    assert await hand.executions("g") == ["s-20260101T000100Z"]
    assert await hand.executions("f") == []
    await hand.node.operations.schedules.delete("f", "s")
    await hand.turns(after_seconds=60)
    assert len(await hand.executions("g")) == 2


async def test_an_unreadable_expression_waits_to_be_changed(hand: Hand) -> None:
    await hand.create(ENDS)
    with hand.node.database.write() as connection:
        connection.execute(update(schedules).values(expression="0 0 0 L * ?"))
    await hand.turns(after_seconds=60)
    assert await hand.executions() == []
    await hand.node.operations.schedules.update("f", "s", ScheduleChange(expression="@every 1m"))
    await hand.turns(after_seconds=60)
    assert len(await hand.executions()) == 1


async def test_a_thousand_schedules_due_at_once_take_three_looks(hand: Hand, clock: ManualClock) -> None:
    """Two looks of 500 find them, the third finds nothing; each look reads its schedules in one query."""
    first = await hand.create(ENDS)
    rows = [
        row_of(replace(first, schedule_id=f"id{number}", name=f"s{number}", wake_at=first.next_at))
        for number in range(999)
    ]
    with hand.node.database.write() as connection:
        connection.execute(insert(schedules), rows)
    clock.advance(seconds=60)
    looks = 1
    while await hand.loop.handle_due() == AT_ONCE:
        looks += 1
    assert looks == 3
    with hand.node.database.read() as connection:
        assert connection.execute(select(func.count()).select_from(executions)).scalar_one() == 1_000
        left = schedules.c.next_at <= clock.now_ms()
        assert connection.execute(select(func.count()).select_from(schedules).where(left)).scalar_one() == 0


async def test_a_schedule_of_a_version_waits_until_that_version_exists(hand: Hand) -> None:
    await hand.create(ENDS, qualifier="prod")
    await hand.turns(after_seconds=60)
    refusal = (await hand.schedule()).memory.refusal
    assert refusal is not None
    assert refusal.code == "FlowAliasNotExists"
    await hand.node.operations.schedules.update("f", "s", ScheduleChange(qualifier="LATEST"))
    await hand.turns(after_seconds=1)
    assert await hand.executions() == ["s-20260101T000100Z"]
