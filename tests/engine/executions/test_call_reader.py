"""Calls that wait for a slot: only their keys are in memory until their turn."""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable

import pytest
from sqlalchemy import delete, update

from flowserver.base.json_values import dump_json_bytes
from flowserver.base.limits import Limits
from flowserver.engine.functions.call_queues import KEPT_BYTES_MAX
from flowserver.machine.commands import Caller, InvokeTask
from flowserver.machine.events import EventType
from flowserver.store.schema.tables import executions, scopes
from tests.engine.called_functions import Functions
from tests.engine.nodes import PATIENCE_SECONDS, FragileDatabase, Node, running_node
from tests.support.clock import ManualClock

PAY = "- {type: task, name: pay, resourceArn: 'acs:fc:::services/shop/functions/pay'}"
FEW = Limits(invocations_in_flight_max=4)
AT_ONCE = 3
"""The share of these slots for one function."""

LARGE = KEPT_BYTES_MAX + 10_000


@pytest.fixture
async def busy(
    open_database: Callable[[], FragileDatabase], clock: ManualClock, functions: Functions
) -> AsyncIterator[Node]:
    """A node with few slots, and a function that holds them until the test answers."""
    async with running_node(open_database(), clock, limits=FEW) as node:
        await node.register(functions, "shop/pay")
        yield node


def orders() -> list[InvokeTask]:
    """All payloads in memory."""
    gc.collect()
    return [each for each in gc.get_objects() if isinstance(each, InvokeTask)]


async def test_large_inputs_are_not_in_memory_while_their_calls_wait(busy: Node, functions: Functions) -> None:
    """Each function finally receives its own, in one call."""
    await busy.create_flow("f", PAY)
    for number in range(40):
        await busy.start("f", f"e{number}", {"n": number, "filling": "x" * LARGE})
    calls = [await functions.next_call("shop/pay") for _ in range(AT_ONCE)]
    assert sum(len(dump_json_bytes(each.input)) for each in orders()) < (AT_ONCE + 1) * 2 * LARGE
    assert busy.engine.dispatcher.waiting == 40 - AT_ONCE
    for number in range(40):
        calls[number].reply({"n": calls[number].event["n"]})
        if len(calls) < 40:
            calls.append(await functions.next_call("shop/pay"))
    for number in range(40):
        assert await busy.output_of("f", f"e{number}") == {"n": number}
    assert {call.attempt for call in calls} == {1}
    assert len({call.key for call in calls}) == len(functions.calls) == 40


async def test_any_number_of_waiting_calls_needs_few_tasks_and_orders(
    busy: Node, functions: Functions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flowserver.engine.executions.dispatcher.KEPT_MAX", 10)
    await busy.create_flow("f", PAY)
    tasks = len(asyncio.all_tasks())
    for number in range(100):
        await busy.start("f", f"e{number}", {"n": number})
    held = [await functions.next_call("shop/pay") for _ in range(AT_ONCE)]
    assert busy.engine.dispatcher.waiting == 100 - AT_ONCE
    assert len(orders()) <= AT_ONCE + 10 + 1  # the orders of the last batch
    assert len(asyncio.all_tasks()) - tasks < 30
    for call in held:
        call.reply({})
    for _ in range(100 - AT_ONCE):
        (await functions.next_call("shop/pay")).reply({})
    for number in range(100):
        await busy.output_of("f", f"e{number}")
    assert busy.engine.slots.taken == busy.engine.dispatcher.waiting == 0


ORDERS = {
    "function": PAY,
    "parameters": f"{PAY[:-1]}, serviceParams: {{StatefulAsyncInvocationID: $.id}}}}",
    "callback": f"{PAY[:-1]}, pattern: waitForCallback, timeoutSeconds: 50}}",
    "asynchronous": f"{PAY[:-1]}, pattern: sync, serviceParams: {{InvocationType: Async}}}}",
    "sub-flow": "- {type: task, name: sub, resourceArn: 'acs:fnf:::flow/child', pattern: sync}",
    "action": "- {type: task, name: t, action: 'ocr:Recognize', serviceParams: {Side: $.id}}",
    "queue": "- {type: task, name: q, resourceArn: 'acs:mns:::/queues/q/messages', serviceParams: {MessageBody: $}}",
    "iteration": f"""
        - type: foreach
          name: each
          iterationMapping: {{collection: $.items, item: item}}
          steps:
            {PAY}
        """,
}


@pytest.mark.parametrize("kind", ORDERS)
async def test_a_call_is_read_as_it_was_ordered(busy: Node, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    dispatched: list[tuple[Caller, InvokeTask]] = []
    monkeypatch.setattr(
        busy.engine.dispatcher, "dispatch", lambda caller, command, size: dispatched.append((caller, command))
    )
    await busy.create_flow("f", ORDERS[kind])
    await busy.start("f", "e", {"id": "i", "items": [1, 2]})
    assert len(dispatched) == (2 if kind == "iteration" else 1)
    for caller, command in dispatched:
        key = (caller.execution_id, command.scope_id, command.wait_id)
        assert await busy.engine.dispatcher._orders.read(key) == (caller, command)
        assert await busy.engine.dispatcher._orders.read((key[0], key[1], key[2] + 1)) is None


@pytest.mark.parametrize("damage", ["gone", "released", "scope", "definition"])
async def test_a_call_that_cannot_be_made_any_more_leaves_its_slot_to_the_next(
    busy: Node, functions: Functions, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    """An execution that another node has ended, with a lost notice; a call that others may make; a damaged row."""
    monkeypatch.setattr("flowserver.engine.recovery.SWEEP_SECONDS", 3_600)
    monkeypatch.setattr("flowserver.engine.executions.dispatcher.KEPT_MAX", 0)
    await busy.create_flow("f", PAY)
    for number in range(AT_ONCE):
        await busy.start("f", f"e{number}")
    held = [await functions.next_call("shop/pay") for _ in range(AT_ONCE)]
    await busy.create_flow("other", PAY)
    bad = await busy.start("other", "bad")
    await busy.start("other", "good", {"good": True})
    of_bad = scopes.c.execution_id == bad.execution_id
    with busy.database.write() as connection:
        match damage:
            case "gone":
                connection.execute(delete(scopes).where(of_bad))
            case "released":
                connection.execute(update(scopes).where(of_bad).values(node_id=""))
            case "scope":
                connection.execute(update(scopes).where(of_bad).values(step_input="{"))
            case "definition":
                ids = executions.c.execution_id == bad.execution_id
                connection.execute(update(executions).where(ids).values(definition_id="gone"))
    for call in held:
        call.reply({})
    call = await functions.next_call("shop/pay")
    assert call.event == {"good": True}
    call.reply({})
    await busy.output_of("other", "good")
    assert len(functions.calls) == AT_ONCE + 1
    assert busy.engine.slots.taken == 0


async def test_a_waiting_call_is_dropped_with_its_execution(busy: Node, functions: Functions) -> None:
    await busy.create_flow("f", PAY)
    for number in range(AT_ONCE + 1):
        await busy.start("f", f"e{number}")
    held = [await functions.next_call("shop/pay") for _ in range(AT_ONCE)]
    assert busy.engine.dispatcher.waiting == 1
    await busy.operations.executions.stop("f", f"e{AT_ONCE}")
    assert busy.engine.dispatcher.waiting == 0
    for call in held:
        call.reply({})
    for number in range(AT_ONCE):
        await busy.output_of("f", f"e{number}")
    assert len(functions.calls) == AT_ONCE


ASK = f"{PAY[:-1]}, pattern: waitForCallback}}"

NEVER_ENDS = "- {type: wait, name: w, duration: 86400}"

ENTERED = 2
"""The event that enters the first step of a flow."""


@pytest.mark.parametrize("kept_max", [512, 0], ids=["in memory", "as a row"])
async def test_a_call_whose_wait_a_report_ends_is_not_made(
    busy: Node, functions: Functions, monkeypatch: pytest.MonkeyPatch, kept_max: int
) -> None:
    """The token is known from an earlier attempt. Calls under way continue."""
    monkeypatch.setattr("flowserver.engine.executions.dispatcher.KEPT_MAX", kept_max)
    await busy.create_flow("f", ASK)
    rows = [await busy.start("f", f"e{number}") for number in range(AT_ONCE + 1)]
    held = [await functions.next_call("shop/pay") for _ in range(AT_ONCE)]
    assert busy.engine.dispatcher.waiting == 1
    for row in rows:
        await busy.operations.tasks.report_succeeded(busy.engine.tokens.make(row.execution_id, 1, ENTERED, None), "{}")
    assert busy.engine.dispatcher.waiting == 0
    for call in held:
        assert not call.gone.is_set()
        call.reply({})
    await busy.engine.dispatcher.drain(PATIENCE_SECONDS)
    assert len(functions.calls) == AT_ONCE


async def test_a_call_under_way_whose_wait_a_report_ended_is_dropped_by_nothing(
    busy: Node, functions: Functions
) -> None:
    """Neither by recovery, which finds no step that waits for it, nor by the end of the execution."""
    await busy.create_flow("f", f"{ASK}\n{NEVER_ENDS}")
    row = await busy.start("f", "e")
    call = await functions.next_call("shop/pay")
    scope = busy.engine.dispatcher.held[0][1:]
    await busy.operations.tasks.report_succeeded(busy.engine.tokens.make(row.execution_id, 1, ENTERED, None), "{}")
    await busy.reached("f", "e", EventType.TASK_SUCCEEDED)
    assert busy.engine.dispatcher.held == []
    busy.engine.dispatcher.cancel((row.execution_id, *scope))
    await busy.engine.recovery.sweep()
    await busy.operations.executions.stop("f", "e")
    await busy.engine.committer.write(lambda _: None)
    assert busy.engine.dispatcher.has_begun((row.execution_id, *scope))
    call.reply({})
    await busy.engine.dispatcher.drain(PATIENCE_SECONDS)
    assert not busy.engine.dispatcher.has_begun((row.execution_id, *scope))


async def test_the_number_of_waiting_calls_is_limited(busy: Node, functions: Functions) -> None:
    """Also when the function's registration is looked up while others wait for its slots."""
    url = functions.url("shop/pay")
    await busy.operations.functions.put(
        "shop", "pay", url=url, headers={}, timeout_seconds=None, concurrency_max=1, waiting_max=2
    )
    await busy.create_flow("f", PAY)
    await busy.start("f", "begun")
    held = await functions.next_call("shop/pay")
    for number in range(3):
        await busy.start("f", f"e{number}")
    assert await busy.error_of("f", "e2") == "FC.ResourceExhausted"
    busy.engine.endpoints.forget()
    await busy.start("f", "e3")
    assert await busy.error_of("f", "e3") == "FC.ResourceExhausted"
    held.reply({})
    for _ in range(2):
        (await functions.next_call("shop/pay")).reply({})
    for name in ("begun", "e0", "e1"):
        await busy.output_of("f", name)
