"""Crashes: an engine dies between two commits, another starts on the same rows, and every execution completes.

Functions are called again with the same key and a higher attempt number wherever their answers were not committed.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest
from sqlalchemy import Connection, func, select

from flowserver.base.errors import ExecutionAlreadyExists
from flowserver.base.limits import Limits
from flowserver.machine.events import EventType
from flowserver.machine.invocations.lifecycle import AttemptBegan, Dequeued
from flowserver.machine.invocations.states import InvocationSettings
from flowserver.machine.state import Status
from flowserver.store.executions.listing_of_flow import ExecutionFilter
from flowserver.store.invocations.rows import find_invocations, insert_invocations
from flowserver.store.schema.tables import executions, scopes
from tests.engine.called_functions import Functions
from tests.engine.nodes import FragileDatabase, Node, running_node, take_for_dead
from tests.store.rows import invocation_row
from tests.support.clock import ManualClock

PAY = "- {type: task, name: pay, resourceArn: 'acs:fc:::services/shop/functions/pay'}"
ASK = PAY[:-1] + ", pattern: waitForCallback, inputMappings: [{target: token, source: $context.task.token}]}"
SUB = "- {type: task, name: sub, resourceArn: 'acs:fnf:::flow/child', pattern: sync}"
LONG = "\n".join(f"- {{type: pass, name: p{number}}}" for number in range(10))

Life = Callable[..., AbstractAsyncContextManager[Node]]


@pytest.fixture
def life(open_database: Callable[[], FragileDatabase], clock: ManualClock, functions: Functions) -> Life:
    """Successive servers on one database; each ends in a crash and the next begins 3 s later."""
    lives = 0

    @asynccontextmanager
    async def live(limits: Limits | None = None) -> AsyncIterator[Node]:
        nonlocal lives
        lives += 1
        database = open_database()
        if lives > 1:
            clock.advance(seconds=3)
            take_for_dead(database, f"life-{lives - 1}")
        async with running_node(database, clock, node_id=f"life-{lives}", limits=limits) as node:
            if lives == 1:
                await node.register(functions, "shop/pay", "shop/ship")
            yield node
            node.database.crashed = True

    return live


async def test_after_the_commit_of_a_start_and_before_its_call(life: Life, functions: Functions) -> None:
    async with life() as node:
        await node.create_flow("f", PAY)
        node.engine.dispatcher.dispatch = lambda *_: None  # the crash comes first
        await node.start("f", "e")
    assert functions.calls == []
    async with life() as node:
        call = await functions.next_call("shop/pay")
        assert call.attempt == 2
        call.reply({"paid": True})
        assert await node.output_of("f", "e") == {"paid": True}


async def test_before_the_commit_of_a_start(life: Life, functions: Functions) -> None:
    async with life() as node:
        await node.create_flow("f", PAY)
        node.database.refuses = lambda connection: _count(connection, executions) == 1
        with pytest.raises(Exception, match="makes the database fail"):
            await node.start("f", "e")
    async with life() as node:
        await node.start("f", "e")
        call = await functions.next_call("shop/pay")
        assert call.attempt == 1
        call.reply({})
        await node.output_of("f", "e")
        with pytest.raises(ExecutionAlreadyExists):
            await node.start("f", "e")


async def test_during_a_call(life: Life, functions: Functions) -> None:
    async with life() as node:
        await node.create_flow("f", f"{PAY}\n{PAY.replace('pay', 'ship')}")
        await node.start("f", "e", {"n": 1})
        first = await functions.next_call("shop/pay")
    await first.gone.wait()
    async with life() as node:
        second = await functions.next_call("shop/pay")
        assert (second.key, second.attempt, second.event) == (first.key, 2, {"n": 1})
    async with life() as node:
        third = await functions.next_call("shop/pay")
        assert (third.key, third.attempt) == (first.key, 3)
        third.reply({"paid": True})
        ship = await functions.next_call("shop/ship")
        assert (ship.attempt, ship.event) == (1, {"n": 1, "paid": True})
        ship.reply({"shipped": True})
        assert await node.output_of("f", "e") == {"paid": True, "shipped": True}


async def test_after_an_answer_and_before_its_commit(life: Life, functions: Functions) -> None:
    async with life() as node:
        await node.create_flow("f", PAY)
        await node.start("f", "e")
        first = await functions.next_call("shop/pay")
        node.database.crashed = True
        first.reply({"heard": False})
        await node.database.failed()
    async with life() as node:
        second = await functions.next_call("shop/pay")
        assert (second.key, second.attempt) == (first.key, 2)
        second.reply({"heard": True})
        assert await node.output_of("f", "e") == {"heard": True}


async def test_after_a_submission(life: Life, functions: Functions) -> None:
    async with life() as node:
        await node.create_flow("f", ASK)
        await node.start("f", "e")
        call = await functions.next_call("shop/pay")
        call.reply({})
        await node.reached("f", "e", EventType.TASK_SUBMITTED)
    async with life() as node:
        await node.operations.tasks.report_succeeded(call.event["token"], '{"a":1}')
        assert await node.output_of("f", "e") == {"a": 1}
    assert functions.called("shop/pay") == [(call.key, 1)]


async def test_during_a_submission(life: Life, functions: Functions) -> None:
    """The token is the same in every life; the second server may receive the first report."""
    async with life() as node:
        await node.create_flow("f", ASK)
        await node.start("f", "e")
        first = await functions.next_call("shop/pay")
    async with life() as node:
        second = await functions.next_call("shop/pay")
        assert second.event == first.event
        await node.operations.tasks.report_succeeded(first.event["token"], '{"a":1}')
        assert await node.output_of("f", "e") == {"a": 1}


async def test_during_a_wait(life: Life, clock: ManualClock) -> None:
    async with life() as node:
        await node.create_flow("f", "- {type: wait, name: w, duration: 60}")
        row = await node.start("f", "e")
    async with life() as node:
        assert (await node.operations.executions.describe("f", "e")).status is Status.RUNNING
        clock.advance(seconds=60 - 3 - 0.001)
        node.advance(clock, seconds=0.001)
        assert (await node.end_of("f", "e")).stopped_at == row.started_at + 60_000


async def test_while_a_wait_became_due(life: Life, clock: ManualClock) -> None:
    async with life() as node:
        await node.create_flow("f", "- {type: wait, name: w, duration: 60}", "timeoutSeconds: 100")
        await node.create_flow("g", "- {type: wait, name: w, duration: 600}", "timeoutSeconds: 70")
        await node.start("f", "e")
        await node.start("g", "e")
    clock.advance(seconds=80)
    async with life() as node:
        assert (await node.end_of("f", "e")).status is Status.SUCCEEDED
        assert (await node.end_of("g", "e")).status is Status.TIMED_OUT


async def test_during_a_pause_before_a_retry(life: Life, functions: Functions, clock: ManualClock) -> None:
    async with life() as node:
        await node.create_flow("f", PAY[:-1] + ", retry: [{errors: [Busy], intervalSeconds: 60, maxAttempts: 2}]}")
        await node.start("f", "e")
        first = await functions.next_call("shop/pay")
        first.fail("Busy")
        await node.reached("f", "e", EventType.TASK_FAILED)
    async with life() as node:
        node.advance(clock, seconds=57)
        second = await functions.next_call("shop/pay")
        assert (second.key, second.attempt) == (first.key, 2)
        second.reply({})
        await node.output_of("f", "e")


async def test_between_two_turns(life: Life) -> None:
    async with life(Limits(turn_steps_max=4)) as node:
        await node.create_flow("f", LONG)
        node.database.refuses = lambda connection: _ended(connection) > 0
        await node.start("f", "e")
        await node.database.failed()
    async with life(Limits(turn_steps_max=4)) as node:
        assert (await node.end_of("f", "e")).status is Status.SUCCEEDED
        ids = [event.event_id for event in await node.history("f", "e")]
        assert ids == list(range(1, len(ids) + 1))


async def test_in_the_middle_of_a_fan_out(life: Life, functions: Functions) -> None:
    """Some iterations were answered, some were called, some were not opened."""
    steps = f"""
    - type: foreach
      name: each
      iterationMapping: {{collection: $.items, item: item}}
      outputMappings: [{{target: all, source: $local}}]
      steps:
        {PAY}
    """
    limits = Limits(foreach_concurrency_max=4, invocations_in_flight_max=3)
    async with life(limits) as node:
        await node.create_flow("f", steps)
        await node.start("f", "e", {"items": list(range(8))})
        answered = await functions.next_call("shop/pay")
        held = await functions.next_call("shop/pay")
        answered.reply({"n": answered.event["item"]})
        await node.reached("f", "e", EventType.ITERATION_EXITED)
    assert not held.response.done() or held.response.cancelled()
    functions.scripts["shop/pay"] = lambda call: call.reply({"n": call.event["item"]})
    async with life(limits) as node:
        output = await node.output_of("f", "e")
    assert output == {"all": [{"n": number} for number in range(8)]}
    by_item = {call.event["item"]: call.key for call in functions.calls}
    assert all(call.key == by_item[call.event["item"]] for call in functions.calls)
    assert len([call for call in functions.calls if call.key == answered.key]) == 1


async def test_after_the_start_of_a_sub_flow_and_before_its_parent_knows(life: Life, functions: Functions) -> None:
    async with life() as node:
        await node.create_flow("child", PAY)
        await node.create_flow("parent", SUB)
        node.database.refuses = lambda connection: _waits(connection, "child") == 1
        await node.start("parent", "e")
        first = await functions.next_call("shop/pay")
        await node.database.failed()
    async with life() as node:
        second = await functions.next_call("shop/pay")
        assert (second.key, second.attempt) == (first.key, 2)
        await node.reached("parent", "e", EventType.TASK_SUBMITTED)
        second.reply({"n": 1})
        assert await node.output_of("parent", "e") == {"n": 1}
        page = await node.operations.executions.list("child", ExecutionFilter(), next_token=None, limit=None)
        assert len(page.items) == 1


async def test_after_the_end_of_a_sub_flow_and_before_its_parent_knows(life: Life, functions: Functions) -> None:
    async with life() as node:
        await node.create_flow("child", PAY)
        await node.create_flow("parent", SUB)
        await node.start("parent", "e")
        await node.reached("parent", "e", EventType.TASK_SUBMITTED)
        node.database.refuses = lambda connection: _ended(connection) == 2
        (await functions.next_call("shop/pay")).reply({"n": 1})
        await node.database.failed()
        assert (await node.operations.executions.describe("parent", "e")).status is Status.RUNNING
    async with life() as node:
        assert await node.output_of("parent", "e") == {"n": 1}


async def test_after_the_start_of_a_flow_by_action(life: Life) -> None:
    """It is found again under the name that the server generated."""
    async with life() as node:
        await node.create_flow("child", "- {type: pass, name: p}")
        await node.create_flow(
            "parent", "- {type: task, name: s, action: 'fnf:StartExecution', serviceParams: {FlowName: child}}"
        )
        node.database.refuses = lambda connection: _ended(connection) == 2
        await node.start("parent", "e")
        await node.database.failed()
    async with life() as node:
        name = (await node.output_of("parent", "e"))["Name"]
        page = await node.operations.executions.list("child", ExecutionFilter(), next_token=None, limit=None)
        assert [row.name for row in page.items] == [name]


async def test_before_an_asynchronous_call(life: Life, functions: Functions) -> None:
    async with life() as node:
        await node.create_flow("f", PAY[:-1] + ", serviceParams: {InvocationType: Async}}")
        await node.start("f", "e", {"n": 1})
        first = await functions.next_call("shop/pay")
        await node.output_of("f", "e")
    async with life():
        second = await functions.next_call("shop/pay")
        assert (second.key, second.attempt, second.event) == (first.key, 2, {"n": 1})
        second.reply({})


async def test_asynchronous_calls_of_a_dead_node_are_made(
    open_database: Callable[[], FragileDatabase], functions: Functions, clock: ManualClock
) -> None:
    database = open_database()
    begun, none_left = (Dequeued(), AttemptBegan(), AttemptBegan(), AttemptBegan()), InvocationSettings(retries=0)
    row = invocation_row("key", "gone", *begun, service="shop", function="pay", payload=b'{"n":1}', settings=none_left)
    with database.write() as connection:
        insert_invocations(connection, [row])
    async with running_node(database, clock, drain_seconds=20) as node:
        await node.register(functions, "shop/pay")
        call = await functions.next_call("shop/pay")
        assert (call.key, call.attempt, call.event) == ("key", 4, {"n": 1})
        call.fail("NobodyIsTold")
    with database.read() as connection:
        state = find_invocations(connection, ["key"])["key"].state
    assert (state.status, state.error, state.attempt) == ("Failed", "NobodyIsTold", 4)
    assert len(functions.calls) == 1


async def test_a_node_that_shuts_down_leaves_its_calls_to_the_next_at_once(
    open_database: Callable[[], FragileDatabase], functions: Functions, clock: ManualClock
) -> None:
    """No time has to pass, unlike after a crash."""
    async with running_node(open_database(), clock, node_id="first") as node:
        await node.register(functions, "shop/pay")
        await node.create_flow("f", PAY)
        await node.start("f", "e")
        first = await functions.next_call("shop/pay")
    await first.gone.wait()
    async with running_node(open_database(), clock, node_id="second") as node:
        second = await functions.next_call("shop/pay")
        assert (second.key, second.attempt) == (first.key, 2)
        second.reply({})
        await node.output_of("f", "e")


async def test_a_node_that_shuts_down_waits_for_its_calls(
    open_database: Callable[[], FragileDatabase], functions: Functions, clock: ManualClock
) -> None:
    """The step after them is left to the next node."""
    async with running_node(open_database(), clock, node_id="first", drain_seconds=20) as node:
        await node.register(functions, "shop/pay", "shop/ship")
        await node.create_flow("f", f"{PAY}\n{PAY.replace('pay', 'ship')}")
        await node.start("f", "e")
        call = await functions.next_call("shop/pay")
        stopping = asyncio.create_task(node.engine.dispatcher.drain(20))
        await asyncio.sleep(0)
        assert not stopping.done()
        call.reply({"paid": True})
        await stopping
    assert functions.called("shop/ship") == []
    async with running_node(open_database(), clock, node_id="second") as node:
        ship = await functions.next_call("shop/ship")
        assert ship.event == {"paid": True}
        ship.reply({})
        await node.output_of("f", "e")
    assert functions.called("shop/pay") == [(call.key, 1)]


def _count(connection: Connection, table: object) -> int:
    return connection.execute(select(func.count()).select_from(table)).scalar_one()


def _ended(connection: Connection) -> int:
    ended = select(func.count(executions.c.execution_id)).where(executions.c.stopped_at.is_not(None))
    return connection.execute(ended).scalar_one()


def _waits(connection: Connection, kind: str) -> int:
    return connection.execute(select(func.count()).select_from(scopes).where(scopes.c.wait == kind)).scalar_one()
