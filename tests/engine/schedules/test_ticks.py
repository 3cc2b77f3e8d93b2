"""Ticks: each starts one execution, in the transaction that advances the schedule."""

import logging
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import func, insert, select, update

from flowserver.base.errors import InvalidArgument, ResourceThrottled, ScheduleNotExists
from flowserver.base.json_values import dump_json, load_json
from flowserver.base.limits import Limits
from flowserver.engine.due_loop import AT_ONCE
from flowserver.machine.schedules.state import Overlap
from flowserver.machine.state import Status
from flowserver.operations.schedule_fields import ScheduleChange
from flowserver.store.overview.attention import Kind
from flowserver.store.schedules.rows import row_of
from flowserver.store.schema.schedule_tables import schedules
from flowserver.store.schema.tables import definitions, executions, flows
from tests.engine.nodes import Node
from tests.engine.schedules.conftest import ENDS, NEVER_ENDS, TurnTaker
from tests.support.clock import ManualClock


async def test_a_tick_starts_an_execution_under_its_name(taker: TurnTaker) -> None:
    await taker.create(ENDS, "30 * * * * *", payload='{"k": 1}')
    await taker.turns(after_seconds=29.999)
    assert await taker.executions() == []
    await taker.turns(after_seconds=0.001)
    row = await taker.node.end_of("f", "s-20260101T000030Z")
    assert load_json(row.input) == {
        "payload": {"k": 1}, "triggerTime": "2026-01-01T00:00:30.000Z", "triggerName": "s"
    }  # fmt: skip
    await taker.turns()
    assert await taker.executions() == ["s-20260101T000030Z"]
    await taker.turns(after_seconds=60)
    assert len(await taker.executions()) == 2


async def test_the_loop_wakes_by_itself(node: Node, clock: ManualClock) -> None:
    await node.create_flow("f", ENDS)
    created = await node.operations.schedules.create("f", "s", ScheduleChange(expression="@every 1m"))
    assert created.payload == ""
    with node.engine.watchers.watch_name("f", "s-20260101T000100Z") as watch:
        node.advance(clock, seconds=60)
        assert await watch.woken.is_set_within(10)
    row = await node.operations.executions.describe("f", "s-20260101T000100Z")
    assert load_json(row.input)["payload"] == {}


async def test_a_tick_whose_answer_was_lost_starts_once(taker: TurnTaker) -> None:
    await taker.create(ENDS)
    taker.node.database.lose_answer_of(select(executions.c.execution_id))
    await taker.turns(after_seconds=60)
    assert taker.node.database.has_lied
    assert await taker.executions() == ["s-20260101T000100Z"]
    memory = (await taker.schedule()).memory
    assert (memory.started, memory.refusals, memory.skipped) == (1, 0, 0)


async def test_a_database_that_refuses_writes_is_not_asked_without_pause(taker: TurnTaker) -> None:
    await taker.create(ENDS)
    taker.clock.advance(seconds=60)
    taker.node.database.refuses = lambda _: True
    assert await taker.loop.handle_due() != AT_ONCE
    taker.node.database.refuses = lambda _: False
    await taker.turns()
    assert await taker.executions() == ["s-20260101T000100Z"]


async def test_a_crash_before_the_commit_loses_no_tick(taker: TurnTaker) -> None:
    await taker.create(ENDS)
    taker.clock.advance(seconds=60)
    taker.node.database.refuses = lambda connection: connection.execute(select(executions)).first() is not None
    await taker.loop.handle_due()
    assert await taker.executions() == []
    assert (await taker.schedule()).memory.started == 0
    taker.node.database.refuses = lambda _: False
    await taker.turns()
    assert await taker.executions() == ["s-20260101T000100Z"]


async def test_a_turn_that_was_taken_meanwhile_is_stale(taker: TurnTaker) -> None:
    await taker.create(ENDS)
    taker.clock.advance(seconds=60)
    decided, _, _ = taker.loop._look(set())
    await taker.turns()
    for each in decided:
        await taker.loop._start(each)
    memory = (await taker.schedule()).memory
    assert (memory.started, memory.refusals) == (1, 0)
    assert len(await taker.executions()) == 1


async def test_a_buffered_tick_starts_when_the_execution_before_it_ends(taker: TurnTaker) -> None:
    await taker.create(NEVER_ENDS, overlap=Overlap.BUFFER_ALL)
    for _ in range(3):
        await taker.turns(after_seconds=60)
    assert await taker.executions() == ["s-20260101T000100Z"]
    for name in ("s-20260101T000100Z", "s-20260101T000200Z"):
        await taker.node.operations.executions.stop("f", name)
        await taker.turns()  # at once: the loop was notified of the end
    assert await taker.executions() == [f"s-20260101T000{minute}00Z" for minute in (1, 2, 3)]


async def test_an_end_without_a_notice_is_found_by_the_row(taker: TurnTaker) -> None:
    await taker.create(NEVER_ENDS, overlap=Overlap.BUFFER_ONE)
    await taker.turns(after_seconds=60)
    await taker.turns(after_seconds=60)
    taker.loop._awaited.clear()
    await taker.node.operations.executions.stop("f", "s-20260101T000100Z")
    await taker.turns(after_seconds=30)
    assert len(await taker.executions()) == 2


@pytest.mark.parametrize("overlap", [Overlap.CANCEL_OTHER, Overlap.TERMINATE_OTHER])
async def test_an_overlap_policy_stops_the_running_execution(taker: TurnTaker, overlap: Overlap) -> None:
    await taker.create(NEVER_ENDS, overlap=overlap)
    await taker.turns(after_seconds=60)
    await taker.turns(after_seconds=60)
    stopped = await taker.node.end_of("f", "s-20260101T000100Z")
    assert (stopped.status, stopped.error) == (Status.STOPPED, "Schedule.Overlap")
    await taker.turns()
    second = await taker.node.operations.executions.describe("f", "s-20260101T000200Z")
    assert second.status is Status.RUNNING


@pytest.mark.parametrize("starts", [False, True], ids=["a turn that buffers", "a turn that also starts"])
async def test_a_turn_that_was_not_committed_stops_nothing(
    taker: TurnTaker, monkeypatch: pytest.MonkeyPatch, starts: bool
) -> None:
    """A user changes the overlap policy after the loop has read the schedule and before it saves the turn."""
    await taker.create(NEVER_ENDS, overlap=Overlap.TERMINATE_OTHER)
    await taker.turns(after_seconds=60)
    if starts:
        await taker.node.operations.schedules.trigger("f", "s", Overlap.TERMINATE_OTHER)
        await taker.node.operations.schedules.trigger("f", "s", Overlap.ALLOW_ALL)
    taker.clock.advance(seconds=60)
    look, changes = taker.loop._aside, [ScheduleChange(overlap=Overlap.SKIP)]

    async def look_and_change(work: Callable[[], Any]) -> Any:
        found = await look(work)
        if changes:
            assert [(bool(each.turn.stops), each.turn.start is not None) for each in found[0]] == [(True, starts)]
            await taker.node.operations.schedules.update("f", "s", changes.pop())
        return found

    monkeypatch.setattr(taker.loop, "_aside", look_and_change)
    await taker.loop.handle_due()
    first = await taker.node.operations.executions.describe("f", "s-20260101T000100Z")
    assert first.status is Status.RUNNING
    memory = (await taker.schedule()).memory
    assert (memory.started, memory.buffered) == (1, ())


async def test_a_stop_that_a_crash_lost_follows_from_the_row(taker: TurnTaker, monkeypatch: pytest.MonkeyPatch) -> None:
    await taker.create(NEVER_ENDS, overlap=Overlap.TERMINATE_OTHER)
    await taker.turns(after_seconds=60)

    async def lose(execution_id: str) -> None: ...

    with monkeypatch.context() as crash:
        crash.setattr(taker.loop, "_stop", lose)
        await taker.turns(after_seconds=60)
    assert (await taker.schedule()).memory.buffered
    await taker.turns(after_seconds=30)
    stopped = await taker.node.end_of("f", "s-20260101T000100Z")
    assert stopped.error == "Schedule.Overlap"


async def test_a_failure_pauses_at_once(taker: TurnTaker) -> None:
    await taker.create("- {type: fail, name: x, error: E}", pauses_on_failure=True)
    await taker.turns(after_seconds=60)
    await taker.node.end_of("f", "s-20260101T000100Z")
    await taker.turns()
    schedule = await taker.schedule()
    assert not schedule.is_enabled
    assert schedule.note == "paused because the execution s-20260101T000100Z failed"


@pytest.mark.parametrize("limits", [Limits(running_executions_max=1)])
async def test_a_refused_start_is_retried_within_its_catch_up_window(taker: TurnTaker) -> None:
    await taker.node.create_flow("busy", NEVER_ENDS)
    await taker.node.start("busy", "e")
    await taker.create(ENDS)
    await taker.turns(after_seconds=60)
    memory = (await taker.schedule()).memory
    assert memory.refusal is not None
    assert (memory.refusal.code, memory.refusals) == ("ResourceThrottled", 1)
    for _ in range(5):
        await taker.turns(after_seconds=12)
        assert (await taker.schedule()).memory.missed == 0
    await taker.turns(after_seconds=30)
    assert (await taker.schedule()).memory.missed == 1
    await taker.node.operations.executions.stop("busy", "e")
    await taker.turns(after_seconds=60)
    assert "s-20260101T000300Z" in await taker.executions()


@pytest.mark.parametrize("limits", [Limits(step_data_bytes_max=400)])
async def test_a_payload_that_no_execution_could_take_is_refused(taker: TurnTaker) -> None:
    """A start adds to the payload."""
    with pytest.raises(InvalidArgument, match="step_data_bytes_max"):
        await taker.create(ENDS, payload=dump_json({"k": "x" * 300}))
    await taker.node.operations.schedules.create(
        "f", "s", ScheduleChange(expression="@every 1m", payload=dump_json({"k": "x" * 150}))
    )
    await taker.turns(after_seconds=60)
    assert await taker.executions() == ["s-20260101T000100Z"]


async def test_a_start_is_not_refused_because_callers_wait_for_the_writer(taker: TurnTaker) -> None:
    await taker.create(ENDS)
    engine = taker.node.engine
    object.__setattr__(engine.limits, "pending_messages_max", 0)
    with pytest.raises(ResourceThrottled):
        await engine.committer.write(lambda _: None, by_caller=True)
    await taker.turns(after_seconds=60)
    object.__setattr__(engine.limits, "pending_messages_max", 100)
    assert await taker.executions() == ["s-20260101T000100Z"]


async def test_a_refused_start_does_not_stop_the_others(taker: TurnTaker) -> None:
    await taker.create(ENDS)
    await taker.create("- {type: pass, name: other}", flow="g")
    with taker.node.database.write() as connection:
        flow_id = select(flows.c.flow_id).where(flows.c.name == "f").scalar_subquery()
        connection.execute(update(definitions).where(definitions.c.flow_id == flow_id).values(text="damaged"))
    await taker.turns(after_seconds=60)
    assert await taker.executions("g") == ["s-20260101T000100Z"]
    memory = (await taker.schedule()).memory
    assert memory.refusal is not None
    assert (memory.refusal.code, memory.started) == ("InternalServerError", 0)


async def test_schedules_are_deleted_with_their_flow(taker: TurnTaker) -> None:
    await taker.create(ENDS)
    await taker.node.operations.flows.delete("f")
    await taker.node.create_flow("f", ENDS)
    await taker.turns(after_seconds=60)
    assert await taker.executions() == []
    with pytest.raises(ScheduleNotExists):
        await taker.schedule()


async def test_a_damaged_schedule_does_not_stop_the_others(taker: TurnTaker) -> None:
    await taker.create(ENDS)
    await taker.create(ENDS, flow="g")
    with taker.node.database.write() as connection:
        connection.execute(update(schedules).where(schedules.c.flow_name == "f").values(memory="no JSON"))
    await taker.turns(after_seconds=60)
    assert await taker.executions("g") == ["s-20260101T000100Z"]
    assert await taker.executions("f") == []
    await taker.node.operations.schedules.delete("f", "s")
    await taker.turns(after_seconds=60)
    assert len(await taker.executions("g")) == 2


async def test_an_unreadable_expression_waits_to_be_changed(taker: TurnTaker) -> None:
    await taker.create(ENDS)
    with taker.node.database.write() as connection:
        connection.execute(update(schedules).values(expression="0 0 0 L * ?"))
    await taker.turns(after_seconds=60)
    assert await taker.executions() == []
    await taker.node.operations.schedules.update("f", "s", ScheduleChange(expression="@every 1m"))
    await taker.turns(after_seconds=60)
    assert len(await taker.executions()) == 1


async def test_a_thousand_schedules_due_at_once_take_three_looks(taker: TurnTaker, clock: ManualClock) -> None:
    """Two looks of 500 find them, the third finds nothing; each look reads its schedules in one query."""
    first = await taker.create(ENDS)
    rows = [
        row_of(replace(first, schedule_id=f"id{number}", name=f"s{number}", wake_at=first.next_at))
        for number in range(999)
    ]
    with taker.node.database.write() as connection:
        connection.execute(insert(schedules), rows)
    clock.advance(seconds=60)
    looks = 1
    while await taker.loop.handle_due() == AT_ONCE:
        looks += 1
    assert looks == 3
    with taker.node.database.read() as connection:
        assert connection.execute(select(func.count()).select_from(executions)).scalar_one() == 1_000
        left = schedules.c.next_at <= clock.now_ms()
        assert connection.execute(select(func.count()).select_from(schedules).where(left)).scalar_one() == 0


async def test_a_schedule_of_a_version_waits_until_that_version_exists(taker: TurnTaker) -> None:
    await taker.create(ENDS, qualifier="prod")
    await taker.turns(after_seconds=60)
    refusal = (await taker.schedule()).memory.refusal
    assert refusal is not None
    assert refusal.code == "FlowAliasNotExists"
    await taker.node.operations.schedules.update("f", "s", ScheduleChange(qualifier="LATEST"))
    await taker.turns(after_seconds=1)
    assert await taker.executions() == ["s-20260101T000100Z"]


async def test_missed_and_skipped_runs_are_counted_logged_and_shown(
    taker: TurnTaker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    engine = taker.node.engine
    await taker.create(NEVER_ENDS, overlap=Overlap.SKIP, catch_up_seconds=60)
    await taker.turns(after_seconds=5 * 60)
    await taker.turns(after_seconds=60)
    memory = (await taker.schedule()).memory
    assert (memory.started, memory.missed, memory.skipped) == (1, 3, 2)
    assert "schedule s of flow f missed 3 scheduled runs, the last of 2026-01-01T00:03:00.000Z: late" in caplog.text
    assert "schedule s of flow f skipped 1 scheduled runs, the last of 2026-01-01T00:06:00.000Z: overlap" in caplog.text
    counted = engine.metrics.text({}).decode()
    assert "flowserver_missed_schedule_runs_total 3.0" in counted
    assert "flowserver_skipped_schedule_runs_total 2.0" in counted
    assert "flowserver_schedule_lateness_seconds_sum 60.0" in counted
    assert [each[:2] for each in engine.schedules.missed_since(0)] == [("f", "s")]
    shown = (await taker.node.operations.overview.show(None)).snapshot.attention
    assert [(each.kind, each.name, each.text) for each in shown] == [
        (Kind.MISSED_RUN, "s", "the last missed run is that of 2026-01-01T00:03:00.000Z (late)")
    ]
