"""Parked executions continue once the cause is fixed, and no message that arrived meanwhile is lost for good."""

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import select, update

from flowserver.base.derived_ids import child_execution_id
from flowserver.base.errors import ExecutionAlreadyCompleted, ExecutionNotParked, TaskInvalidState
from flowserver.machine import advance
from flowserver.machine.events import EventType
from flowserver.machine.state import Status
from flowserver.store.executions.saving import park_execution
from flowserver.store.executions.shown_executions import ExecutionRow
from flowserver.store.schema.tables import definitions, executions, scopes
from tests.engine.called_functions import Functions
from tests.engine.nodes import FragileDatabase, Node, running_node
from tests.support.clock import ManualClock

WAIT = "- {type: wait, name: w, duration: 60}\n- {type: pass, name: p}"
DONE = "outputMappings: [{target: done, source: 1}]"
PAY = "- {type: task, name: pay, resourceArn: 'acs:fc:::services/shop/functions/pay'}"
ASK = f"{PAY[:-1]}, pattern: waitForCallback, inputMappings: [{{target: token, source: $context.task.token}}]}}"
CHILD = "- {type: task, name: sub, resourceArn: 'acs:fnf:::flow/child', pattern: sync}"


def change(node: Node, statement: Any) -> None:
    with node.database.write() as connection:
        connection.execute(statement)


def park(node: Node, row: ExecutionRow) -> None:
    with node.database.write() as connection:
        park_execution(connection, row.execution_id, "a bug")


async def parked(node: Node, flow: str, name: str) -> str:
    """Wait until the execution is parked, and return the reason."""
    row = await node.operations.executions.describe(flow, name, wait_seconds=20)
    assert row.status is Status.RUNNING
    return str(row.parked_error)


async def restart(node: Node, flow: str, name: str) -> ExecutionRow:
    return await node.operations.executions.unpark(flow, name)


async def test_an_unreadable_definition(open_database: Callable[[], FragileDatabase], clock: ManualClock) -> None:
    async with running_node(open_database(), clock) as node:
        await node.create_flow("f", WAIT, DONE)
        await node.start("f", "e")
        with node.database.read() as connection:
            text = connection.execute(select(definitions.c.text)).scalar_one()
        change(node, update(definitions).values(text="no: flow"))
    async with running_node(open_database(), clock, node_id="next") as node:  # which has not compiled it
        node.advance(clock, seconds=60)
        assert "is not accepted" in await parked(node, "f", "e")
        assert "is not accepted" in str((await restart(node, "f", "e")).parked_error)
        change(node, update(definitions).values(text=text))
        assert (await restart(node, "f", "e")).parked_error is None
        assert await node.output_of("f", "e") == {"done": 1}


async def test_a_damaged_scope(node: Node, clock: ManualClock) -> None:
    await node.create_flow("f", WAIT, DONE)
    await node.start("f", "e")
    change(node, update(scopes).values(local="{"))
    node.advance(clock, seconds=60)
    assert "scope 1 cannot be read" in await parked(node, "f", "e")
    assert "scope 1 cannot be read" in str((await restart(node, "f", "e")).parked_error)
    change(node, update(scopes).values(local="{}"))
    await restart(node, "f", "e")
    assert await node.output_of("f", "e") == {"done": 1}


async def test_a_bug_in_a_step(node: Node, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    def bug(*_: object) -> None:
        raise ZeroDivisionError

    await node.create_flow("f", WAIT, DONE)
    with monkeypatch.context() as buggy:
        buggy.setattr(advance, "enter_pass", bug)
        await node.start("f", "e")
        node.advance(clock, seconds=60)
        assert "ZeroDivisionError" in await parked(node, "f", "e")
    await restart(node, "f", "e")
    assert await node.output_of("f", "e") == {"done": 1}
    entered = [event.step_name for event in await node.history("f", "e") if event.type is EventType.STEP_ENTERED]
    assert entered == ["w", "p"]  # the turn that raised the error wrote nothing


async def test_a_reply_that_arrived_meanwhile_is_requested_again(node: Node, functions: Functions) -> None:
    await node.register(functions, "shop/pay")
    await node.create_flow("f", PAY, "outputMappings: [{target: paid, source: $local.paid}]")
    row = await node.start("f", "e")
    first = await functions.next_call("shop/pay")
    park(node, row)
    first.reply({"paid": "unheard"})
    while node.engine.dispatcher.needs_no_dispatch((row.execution_id, 1, 1)):
        await node.engine.committer.write(lambda _: None)
    await restart(node, "f", "e")
    for _ in range(2):
        await node.engine.recovery.sweep()
    again = await functions.next_call("shop/pay")
    assert (again.key, again.attempt) == (first.key, 2)
    again.reply({"paid": True})
    assert await node.output_of("f", "e") == {"paid": True}


async def test_a_report_that_arrives_meanwhile_must_be_repeated(node: Node, functions: Functions) -> None:
    await node.register(functions, "shop/pay")
    await node.create_flow("f", ASK, "outputMappings: [{target: paid, source: $local.paid}]")
    row = await node.start("f", "e")
    call = await functions.next_call("shop/pay")
    call.reply()
    await node.reached("f", "e", EventType.TASK_SUBMITTED)
    park(node, row)
    with pytest.raises(TaskInvalidState, match="parked"):
        await node.operations.tasks.report_succeeded(call.event["token"], '{"paid": true}')
    await restart(node, "f", "e")
    await node.operations.tasks.report_succeeded(call.event["token"], '{"paid": true}')
    assert await node.output_of("f", "e") == {"paid": True}


async def test_a_sub_flow_that_ended_meanwhile_is_reported_again(node: Node, clock: ManualClock) -> None:
    await node.create_flow("child", WAIT, DONE)
    await node.create_flow("f", CHILD, "outputMappings: [{target: done, source: $local.done}]")
    row = await node.start("f", "e")
    await node.reached("f", "e", EventType.TASK_SUBMITTED)
    park(node, row)
    node.advance(clock, seconds=60)
    await node.end_of("child", child_execution_id(row.execution_id, 1, 1))
    await node.engine.recovery.sweep()  # it cannot be reported now, and stays due
    with node.database.read() as connection:
        due = select(executions.c.callback_due).where(executions.c.flow_name == "child")
        assert connection.execute(due).scalar_one()
    await restart(node, "f", "e")
    await node.engine.recovery.sweep()
    assert await node.output_of("f", "e") == {"done": 1}


async def test_only_a_parked_execution_can_be_unparked(node: Node) -> None:
    await node.create_flow("f", WAIT)
    row = await node.start("f", "e")
    with pytest.raises(ExecutionNotParked):
        await restart(node, "f", "e")
    park(node, row)
    await node.operations.executions.stop("f", "e")
    with pytest.raises(ExecutionAlreadyCompleted):
        await restart(node, "f", "e")
