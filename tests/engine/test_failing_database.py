"""A database that fails for a while: no answer is false, nothing is lost, and all work continues when it is back."""

import asyncio
from collections.abc import Callable

import pytest
from sqlalchemy import Connection, Table, func, select
from sqlalchemy.exc import OperationalError

from flowserver.base.errors import FlowNotExists
from flowserver.base.limits import Limits
from flowserver.engine.commit.batch_items import ReceiptKind
from flowserver.machine.events import EventType
from flowserver.machine.messages import Stop
from flowserver.machine.state import Status
from flowserver.store.executions.listing_of_flow import ExecutionFilter
from flowserver.store.executions.new_executions import NewExecution
from flowserver.store.schema.invocation_tables import invocations
from flowserver.store.schema.tables import executions
from tests.engine.called_functions import Functions
from tests.engine.commit.test_batch import start, tell
from tests.engine.held_threads import Gate
from tests.engine.nodes import FragileDatabase, Node, running_node, take_for_dead
from tests.support.clock import ManualClock

PAY = "- {type: task, name: pay, resourceArn: 'acs:fc:::services/shop/functions/pay'}"
LONG = "\n".join(f"- {{type: pass, name: p{number}}}" for number in range(10))
WAIT = "- {type: wait, name: w, duration: 60}"
SUB = "- {type: task, name: sub, resourceArn: 'acs:fnf:::flow/child', pattern: sync}"


@pytest.fixture(autouse=True)
async def registered(node: Node, functions: Functions) -> None:
    await node.register(functions, "shop/pay")


async def test_callers_get_errors_and_nothing_is_half_written(node: Node) -> None:
    await node.create_flow("f", PAY)
    node.database.broken = True
    with pytest.raises(OperationalError):
        await node.create_flow("g", PAY)
    with pytest.raises(OperationalError):
        await node.start("f", "e")
    with pytest.raises(OperationalError):
        await node.operations.flows.describe("f")
    node.database.broken = False
    with pytest.raises(FlowNotExists):
        await node.operations.flows.describe("g")
    assert (await node.start("f", "e")).status is Status.RUNNING


async def test_a_result_is_submitted_until_it_is_accepted(node: Node, functions: Functions) -> None:
    await node.create_flow("f", f"{PAY}\n- {{type: pass, name: p}}")
    await node.start("f", "e")
    call = await functions.next_call("shop/pay")
    node.database.broken = True
    call.reply({"paid": True})
    await node.database.failed()
    node.database.broken = False
    assert await node.output_of("f", "e") == {"paid": True}
    assert functions.called("shop/pay") == [(call.key, 1)]


async def test_a_call_waits_until_its_function_can_be_looked_up(node: Node, functions: Functions) -> None:
    await node.create_flow("f", PAY)
    await node.start("f", "first")
    (await functions.next_call("shop/pay")).reply({})
    await node.end_of("f", "first")
    node.engine.endpoints.forget()
    node.database.unreadable = True
    await node.engine.starter.start(NewExecution(flow_name="f", execution_id="id", name="second"))
    await node.database.failed()
    node.database.unreadable = False
    (await functions.next_call("shop/pay")).reply({"paid": True})
    assert await node.output_of("f", "second") == {"paid": True}


async def test_a_sub_flow_is_started_once_the_database_is_back(node: Node, functions: Functions) -> None:
    await node.create_flow("child", PAY)
    await node.create_flow("parent", SUB)
    node.database.refuses = lambda connection: _count(connection, executions) == 2
    await node.start("parent", "e")
    await node.database.failed()
    node.database.refuses = lambda _: False
    (await functions.next_call("shop/pay")).reply({"n": 2})
    assert await node.output_of("parent", "e") == {"n": 2}


async def test_a_callback_that_could_not_be_delivered_is_delivered_later(node: Node) -> None:
    await node.create_flow("child", WAIT)
    await node.create_flow("parent", SUB)
    await node.start("parent", "e")
    await node.reached("parent", "e", EventType.TASK_SUBMITTED)
    [child] = (await node.operations.executions.list("child", ExecutionFilter(), next_token=None, limit=None)).items
    node.database.refuses = lambda connection: _ended(connection) == 2
    await node.operations.executions.stop("child", child.name, error="Enough")
    await node.database.failed()
    node.database.refuses = lambda _: False
    await node.engine.recovery.sweep()
    assert await node.error_of("parent", "e") == "Enough"


@pytest.mark.parametrize("limits", [Limits(turn_steps_max=4)])
async def test_a_long_run_that_was_interrupted_continues(node: Node) -> None:
    await node.create_flow("f", LONG)
    node.database.refuses = lambda connection: _ended(connection) == 1
    await node.start("f", "e")
    await node.database.failed()
    node.database.refuses = lambda _: False
    await node.engine.recovery.sweep()
    assert (await node.end_of("f", "e")).status is Status.SUCCEEDED


async def test_an_asynchronous_call_is_made_once_and_ends_when_the_database_is_back(
    node: Node, open_database: Callable[[], FragileDatabase], functions: Functions, clock: ManualClock
) -> None:
    await node.create_flow("f", PAY[:-1] + ", serviceParams: {InvocationType: Async}}")
    database = open_database()
    async with running_node(database, clock, node_id="node-2", drain_seconds=20) as other:
        await other.start("f", "e")
        call = await functions.next_call("shop/pay")
        database.broken = True
        call.reply({})
        await database.failed()
        database.broken = False
    query = select(invocations.c.status)
    assert node.database.run_read(lambda connection: connection.execute(query).scalars().all()) == ["Succeeded"]
    assert functions.called("shop/pay") == [(call.key, 1)]


async def test_stopping_completes_while_the_database_fails(
    node: Node, open_database: Callable[[], FragileDatabase], functions: Functions, clock: ManualClock
) -> None:
    await node.create_flow("f", PAY)
    database = open_database()
    async with running_node(database, clock, node_id="node-2") as other:
        await other.start("f", "e")
        call = await functions.next_call("shop/pay")
        database.broken = True
        call.reply({})
        await database.failed()
    take_for_dead(node.database, "node-2")
    await node.engine.recovery.sweep()
    again = await functions.next_call("shop/pay")
    assert (again.key, again.attempt) == (call.key, 2)
    again.reply({"at": "last"})
    assert await node.output_of("f", "e") == {"at": "last"}


async def test_a_start_fails_if_the_node_cannot_be_registered(
    open_database: Callable[[], FragileDatabase], clock: ManualClock
) -> None:
    database = open_database()
    database.broken = True
    with pytest.raises(OperationalError):
        async with running_node(database, clock, node_id="node-2"):
            raise AssertionError("the node runs")


def _count(connection: Connection, table: Table) -> int:
    return connection.execute(select(func.count()).select_from(table)).scalar_one()


def _ended(connection: Connection) -> int:
    ended = select(func.count(executions.c.execution_id)).where(executions.c.stopped_at.is_not(None))
    return connection.execute(ended).scalar_one()


def _count_now(node: Node, table: Table) -> int:
    return node.database.run_read(lambda connection: _count(connection, table))


async def test_commits_of_a_divided_batch_take_effect_although_a_later_one_ended_the_execution(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    await node.create_flow("calls", PAY)
    tries: list[int] = []

    def fail_once(_: Connection) -> None:
        tries.append(1)
        if len(tries) == 1:
            raise OperationalError("a statement", None, Exception("the database fails"))

    gate, committer = Gate(), node.engine.committer
    gated = asyncio.create_task(committer.write(gate))
    await gate.reached.wait()
    begun = start("calls")
    items = [committer.submit(begun), committer.submit(tell(begun.execution_id, Stop())), committer.write(fail_once)]
    tasks = [asyncio.create_task(item) for item in items]
    await asyncio.sleep(0)
    gate.open()
    first, second, _ = await asyncio.gather(*tasks)
    await gated
    assert (first.kind, second.kind, len(tries)) == (ReceiptKind.APPLIED, ReceiptKind.APPLIED, 2)
    assert "acting on a commit failed" not in caplog.text
