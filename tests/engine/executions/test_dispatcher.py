"""Calls of functions: requests, the handling of answers, and sub-flows."""

import asyncio
import logging
from math import inf

import pytest
from aiohttp import web
from sqlalchemy import update

from flowserver.base.json_values import load_json
from flowserver.base.limited_log import LINES_PER_KEY
from flowserver.base.limits import Limits
from flowserver.invokers.outcomes import Returned
from flowserver.machine.events import EventType
from flowserver.machine.state import Status
from flowserver.store.executions.listing_of_flow import ExecutionFilter
from flowserver.store.schema.tables import scopes
from tests.engine.called_functions import Functions
from tests.engine.nodes import Node
from tests.support.clock import ManualClock

PAY = "- {type: task, name: pay, resourceArn: 'acs:fc:::services/shop/functions/pay'}"
WAIT = "- {type: wait, name: w, duration: 60}"


@pytest.fixture(autouse=True)
async def registered(node: Node, functions: Functions) -> None:
    await node.register(functions, "shop/pay", "shop/ship")


async def test_a_request_names_the_execution_and_step(node: Node, functions: Functions) -> None:
    await node.create_flow("order", PAY)
    row = await node.start("order", "run-1", {"price": 10**30, "of": "中"})
    call = await functions.next_call("shop/pay")
    assert call.event == {"price": 10**30, "of": "中"}
    assert call.headers["Content-Type"] == "application/json"
    assert (call.headers["X-Flowserver-Flow"], call.headers["X-Flowserver-Execution"]) == ("order", "run-1")
    assert (call.headers["X-Flowserver-Step"], call.attempt) == ("pay", 1)
    assert call.key.startswith(row.execution_id)
    call.reply({"paid": True})
    assert await node.output_of("order", "run-1") == {"paid": True}


async def test_a_call_has_one_request_id_for_the_function_the_history_and_the_log(
    node: Node, functions: Functions, caplog: pytest.LogCaptureFixture
) -> None:
    await node.create_flow("order", f"{PAY[:-1]}, retry: [{{errors: [Busy], intervalSeconds: 0, maxAttempts: 3}}]}}")
    with caplog.at_level(logging.INFO):
        await node.start("order", "e")
        (await functions.next_call("shop/pay")).fail("Busy")
        (await functions.next_call("shop/pay")).reply({})
        await node.output_of("order", "e")
    first, second = (call.headers["X-Fc-Request-Id"] for call in functions.calls)
    history = (await node.operations.executions.history("order", "e", next_token=None, limit=None)).items
    kinds = (EventType.TASK_FAILED, EventType.TASK_SUCCEEDED)
    assert [load_json(event.detail)["requestId"] for event in history if event.type in kinds] == [first, second]
    logged = [record.getMessage() for record in caplog.records if first in record.getMessage()]
    assert logged == [
        "the call of acs:fc:::services/shop/functions/pay failed with Busy: "
        f"request id {first}, flow order, execution e, step pay, attempt 1"
    ]
    assert second not in caplog.text


async def test_a_function_that_fails_often_writes_a_few_lines(
    node: Node, functions: Functions, caplog: pytest.LogCaptureFixture
) -> None:
    functions.scripts["shop/pay"] = lambda call: call.fail("Busy")
    retry = f"retry: [{{errors: [Busy], intervalSeconds: 0, maxAttempts: {2 * LINES_PER_KEY}}}]"
    await node.create_flow("order", f"{PAY[:-1]}, {retry}}}")
    node.engine.step_calls._failures._now = lambda: 0.0
    with caplog.at_level(logging.INFO):
        await node.start("order", "e")
        await node.end_of("order", "e")
    assert len(functions.calls) == 2 * LINES_PER_KEY + 1
    assert sum(" failed with Busy: request id " in each for each in caplog.messages) == LINES_PER_KEY


@pytest.mark.parametrize(("answered", "is_known"), [("own-id", True), ("with blanks", False), ("x" * 129, False)])
async def test_the_request_id_that_the_function_returns_counts(
    node: Node, functions: Functions, answered: str, is_known: bool
) -> None:
    await node.create_flow("order", PAY)
    await node.start("order", "e")
    call = await functions.next_call("shop/pay")
    call.response.set_result(web.json_response({}, headers={"X-Fc-Request-Id": answered}))
    await node.output_of("order", "e")
    history = (await node.operations.executions.history("order", "e", next_token=None, limit=None)).items
    detail = next(load_json(event.detail) for event in history if event.type is EventType.TASK_SUCCEEDED)
    assert detail["requestId"] == (answered if is_known else call.headers["X-Fc-Request-Id"])


async def test_retries_are_new_attempts_of_one_task(node: Node, functions: Functions) -> None:
    await node.create_flow(
        "order",
        f"""
        {PAY[:-1]}, retry: [{{errors: [Busy], intervalSeconds: 0, maxAttempts: 3}}]}}
        """,
    )
    await node.start("order", "e")
    for _ in range(2):
        (await functions.next_call("shop/pay")).fail("Busy")
    (await functions.next_call("shop/pay")).reply({})
    await node.output_of("order", "e")
    keys, attempts = zip(*functions.called("shop/pay"), strict=True)
    assert len(set(keys)) == 1
    assert attempts == (1, 2, 3)


async def test_two_steps_are_two_tasks(node: Node, functions: Functions) -> None:
    functions.echo("shop/pay")
    await node.create_flow("order", f"{PAY}\n{PAY.replace('name: pay', 'name: again')}")
    await node.start("order", "e")
    await node.end_of("order", "e")
    assert len({key for key, _ in functions.called("shop/pay")}) == 2


@pytest.mark.parametrize(
    ("arn", "error"),
    [
        ("services/unknown/functions/pay", "FC.ServiceNotFound"),
        ("services/shop/functions/unknown", "FC.FunctionNotFound"),
        ("functions/unknown", "FC.FunctionNotFound"),
    ],
)
async def test_a_function_that_does_not_exist(node: Node, arn: str, error: str) -> None:
    await node.create_flow("order", f"- {{type: task, name: t, resourceArn: 'acs:fc:::{arn}'}}")
    await node.start("order", "e")
    assert await node.error_of("order", "e") == error


async def test_stopping_drops_the_connection(node: Node, functions: Functions) -> None:
    await node.create_flow("order", PAY)
    await node.start("order", "e")
    call = await functions.next_call("shop/pay")
    row = await node.operations.executions.stop("order", "e", error="Enough", cause="C")
    assert (row.status, row.error) == (Status.STOPPED, "Enough")
    await call.gone.wait()


async def test_a_failing_branch_drops_its_siblings_calls(node: Node, functions: Functions) -> None:
    await node.create_flow(
        "order",
        f"""
        - type: parallel
          name: both
          branches:
            - steps:
              {PAY}
            - steps:
              {PAY.replace("pay", "ship")}
        """,
    )
    await node.start("order", "e")
    pay, ship = await functions.next_call("shop/pay"), await functions.next_call("shop/ship")
    pay.fail("Broke")
    assert await node.error_of("order", "e") == "Broke"
    await ship.gone.wait()


@pytest.mark.parametrize("limits", [Limits(invocations_in_flight_max=2)])
async def test_calls_wait_for_a_slot(node: Node, functions: Functions) -> None:
    await node.create_flow(
        "order",
        f"""
        - type: foreach
          name: each
          iterationMapping: {{collection: $.items, item: item}}
          steps:
            {PAY}
        """,
    )
    await node.start("order", "e", {"items": list(range(6))})
    for _ in range(6):
        call = await functions.next_call("shop/pay")
        assert len([call for call in functions.calls if not call.response.done()]) <= 2
        call.reply({})
    await node.end_of("order", "e")
    assert sorted(call.event["item"] for call in functions.calls) == list(range(6))


FAN_OUT = f"""
- type: foreach
  name: each
  iterationMapping: {{collection: $.items, item: item}}
  steps:
    {PAY}
"""


@pytest.mark.parametrize("limits", [Limits(invocations_in_flight_max=8)])
async def test_a_function_that_hangs_leaves_slots_to_others(node: Node, functions: Functions) -> None:
    """Three executions of one flow call it, then an asynchronous invocation, another flow, and an API caller."""
    await node.create_flow("busy", FAN_OUT)
    await node.create_flow("other", PAY.replace("functions/pay", "functions/ship"))
    functions.echo("shop/ship")
    for number in range(3):
        await node.start("busy", f"e{number}", {"items": list(range(10))})
    for _ in range(6):
        await functions.next_call("shop/pay")
    await node.operations.async_invocations.submit("shop", "", "pay", b"{}", request_id="r1")
    await node.start("other", "e")
    await node.output_of("other", "e")
    reply = await node.operations.invocations.invoke("shop", "", "ship", b"{}", request_id="r2")
    assert isinstance(reply, Returned)
    assert len(functions.called("shop/pay")) == 6


@pytest.mark.parametrize("limits", [Limits(invocations_in_flight_max=8)])
async def test_api_calls_that_hang_leave_slots_to_others(node: Node, functions: Functions) -> None:
    functions.echo("shop/ship")
    invoke = node.operations.invocations.invoke
    hanging = [asyncio.create_task(invoke("shop", "", "pay", b"{}", request_id=f"r{number}")) for number in range(10)]
    for _ in range(6):
        await functions.next_call("shop/pay")
    assert isinstance(await invoke("shop", "", "ship", b"{}", request_id="other"), Returned)
    assert len(functions.called("shop/pay")) == 6
    for each in hanging:
        each.cancel()
    await asyncio.wait(hanging)


async def test_an_answer_after_the_report_changes_nothing(node: Node, functions: Functions) -> None:
    await node.create_flow(
        "order",
        f"""
        {PAY[:-1]}, pattern: waitForCallback, inputMappings: [{{target: token, source: $context.task.token}}]}}
        """,
    )
    await node.start("order", "e")
    call = await functions.next_call("shop/pay")
    await node.operations.tasks.report_succeeded(call.event["token"], '{"by":"report"}')
    assert await node.output_of("order", "e") == {"by": "report"}
    count = len(await node.history("order", "e"))
    call.reply({"by": "reply"})
    await node.create_flow("after", WAIT)  # commits after the reply's message
    assert len(await node.history("order", "e")) == count


# Asynchronous calls


ASYNC = PAY[:-1] + ", serviceParams: {InvocationType: Async}}"


async def test_an_asynchronous_call_does_not_hold_the_step(node: Node, functions: Functions) -> None:
    await node.create_flow("order", ASYNC)
    await node.start("order", "e", {"n": 1})
    assert await node.output_of("order", "e") == {}
    call = await functions.next_call("shop/pay")
    assert call.event == {"n": 1}
    assert call.attempt == 1
    call.fail("NobodyIsTold")


# Sub-flows


def child(pattern: str, name: str = "") -> str:
    params = f"serviceParams: {{ExecutionName: {name}}}" if name else "timeoutSeconds: 100"
    return f"- {{type: task, name: sub, resourceArn: 'acs:fnf:::flow/child', pattern: {pattern}, {params}}}"


async def children(node: Node) -> list[str]:
    page = await node.operations.executions.list("child", ExecutionFilter(), next_token=None, limit=None)
    return [row.name for row in page.items]


async def test_a_sync_sub_flow_gives_its_output(node: Node, functions: Functions) -> None:
    await node.create_flow("child", PAY)
    await node.create_flow("parent", child("sync"))
    await node.start("parent", "e", {"n": 1})
    call = await functions.next_call("shop/pay")
    assert call.event == {"n": 1}
    assert call.headers["X-Flowserver-Flow"] == "child"
    submitted = await node.reached("parent", "e", EventType.TASK_SUBMITTED)
    [name] = await children(node)
    assert load_json(submitted.detail)["output"]["Name"] == name
    call.reply({"paid": True})
    assert await node.output_of("parent", "e") == {"paid": True}


async def test_a_sub_flow_that_ends_at_once(node: Node) -> None:
    """Its end may be reported before its start."""
    await node.create_flow("child", "- {type: pass, name: p}", "outputMappings: [{target: a, source: 1}]")
    await node.create_flow("parent", child("sync"))
    await node.start("parent", "e")
    assert await node.output_of("parent", "e") == {"a": 1}


async def test_a_sync_sub_flow_s_error_is_the_step_s(node: Node) -> None:
    await node.create_flow("child", "- {type: fail, name: f, error: Own, cause: because}")
    await node.create_flow(
        "parent",
        f"""
        {child("sync")[:-1]}, catch: [{{errors: [Own], goto: after}}],
          errorMappings: [{{target: why, source: $local.cause}}]}}
        - {{type: fail, name: not_caught}}
        - {{type: pass, name: after}}
        """,
    )
    await node.start("parent", "e")
    assert await node.output_of("parent", "e") == {"why": "because"}


@pytest.mark.parametrize(("error", "seen"), [("Enough", "Enough"), (None, "FnF.ExecutionStopped")])
async def test_a_sync_sub_flow_that_is_stopped(node: Node, error: str | None, seen: str) -> None:
    await node.create_flow("child", WAIT)
    await node.create_flow("parent", child("sync", "known"))
    await node.start("parent", "e")
    await node.reached("parent", "e", EventType.TASK_SUBMITTED)
    await node.operations.executions.stop("child", "known", error=error)
    assert await node.error_of("parent", "e") == seen


async def test_a_sync_sub_flow_that_takes_too_long(node: Node, clock: ManualClock) -> None:
    await node.create_flow("child", WAIT, "timeoutSeconds: 30")
    await node.create_flow("parent", child("sync"))
    await node.start("parent", "e")
    await node.reached("parent", "e", EventType.TASK_SUBMITTED)
    node.advance(clock, seconds=30)
    assert await node.error_of("parent", "e") == "FnF.TaskTimeout"
    [name] = await children(node)
    assert (await node.end_of("child", name)).status is Status.TIMED_OUT


async def test_a_step_that_waits_too_long_for_its_sub_flow(node: Node, clock: ManualClock) -> None:
    await node.create_flow("child", WAIT.replace("60", "600"))
    await node.create_flow("parent", child("sync"))
    await node.start("parent", "e")
    await node.reached("parent", "e", EventType.TASK_SUBMITTED)
    node.advance(clock, seconds=100)
    assert await node.error_of("parent", "e") == "FnF.TaskTimeout"


@pytest.mark.parametrize("ended", [True, False])
async def test_a_sync_sub_flow_needs_its_own_name(node: Node, ended: bool) -> None:
    await node.create_flow("child", WAIT)
    await node.create_flow("parent", child("sync", "taken"))
    await node.start("child", "taken")
    if ended:
        await node.operations.executions.stop("child", "taken")
    await node.start("parent", "e")
    assert await node.error_of("parent", "e") == "FnF.ExecutionAlreadyExists"


@pytest.mark.parametrize("limits", [Limits(running_executions_max=2)])
async def test_a_repeated_start_needs_no_capacity(node: Node, functions: Functions) -> None:
    """The child runs already, its parent has no answer yet, and the limit of executions is reached."""
    await node.create_flow("child", PAY)
    await node.create_flow("parent", child("sync"))
    parent = await node.start("parent", "e")
    call = await functions.next_call("shop/pay")
    with node.database.write() as connection:
        of_parent = update(scopes).where(scopes.c.execution_id == parent.execution_id)
        connection.execute(of_parent.values(wait="task", node_id="gone", child_execution_id=None))
    node.engine.starter._counted_at = -inf  # as in a process that has just started
    await node.engine.recovery.sweep()
    call.reply({"paid": True})
    assert await node.output_of("parent", "e") == {"paid": True}


async def test_a_sub_flow_may_be_named_after_its_parent(node: Node) -> None:
    """The server generated the parent's name."""
    await node.create_flow("child", "- {type: pass, name: p}")
    named = child("sync", "$.me")[:-1] + ", inputMappings: [{target: me, source: $context.execution.name}]}"
    await node.create_flow("parent", named)
    for chosen in (None, "sync"):
        row = await node.operations.executions.start_sync("parent", name=chosen)
        assert row.status is Status.SUCCEEDED
        assert row.name in await children(node)


async def test_a_sub_flow_started_without_waiting(node: Node) -> None:
    await node.create_flow("child", WAIT)
    await node.create_flow("parent", child("requestResponse", "known"))
    await node.start("parent", "one", {"n": 1})
    reply = await node.output_of("parent", "one")
    assert (reply["FlowName"], reply["Name"], reply["Status"]) == ("child", "known", "Running")
    row = await node.operations.executions.describe("child", "known")
    assert (row.status, row.input) == (Status.RUNNING, '{"n":1}')
    await node.start("parent", "two")  # it runs already, which counts as success
    assert (await node.output_of("parent", "two"))["Name"] == "known"
    await node.operations.executions.stop("child", "known")
    await node.start("parent", "three")
    assert await node.error_of("parent", "three") == "FnF.ExecutionAlreadyExists"


@pytest.mark.parametrize(
    ("step", "error"),
    [
        (child("sync"), "FnF.FlowNotExists"),
        (child("requestResponse", "1_is_no_name"), "FnF.InvalidArgument"),
        ("- {type: task, name: t, action: 'fnf:StartExecution', serviceParams: {FlowName: no}}", "fnf.FlowNotExists"),
        # A computed name may contain it; PostgreSQL cannot even search for it.
        (
            '- {type: task, name: t, action: "fnf:StartExecution", serviceParams: {FlowName: "a\\0b"}}',
            "fnf.FlowNotExists",
        ),
        (
            '- {type: task, name: t, action: "fnf:StartExecution", serviceParams: {FlowName: f, ExecutionName: "\\0"}}',
            "fnf.InvalidArgument",
        ),
    ],
)
async def test_a_sub_flow_that_cannot_be_started(node: Node, step: str, error: str) -> None:
    await node.create_flow("parent", step)
    if "1_is" in step:
        await node.create_flow("child", WAIT)
    await node.start("parent", "e")
    assert await node.error_of("parent", "e") == error


@pytest.mark.parametrize("given", ["{n: 7}", "'{\"n\":7}'", "$.wanted"])
async def test_starting_a_flow_by_action(node: Node, given: str) -> None:
    await node.create_flow("child", WAIT)
    await node.create_flow(
        "parent",
        f"""
        - type: task
          name: start
          action: fnf:StartExecution
          serviceParams: {{FlowName: child, ExecutionName: known, Input: {given}}}
        """,
    )
    await node.start("parent", "e", {"wanted": {"n": 7}})
    assert (await node.output_of("parent", "e"))["Name"] == "known"
    row = await node.operations.executions.describe("child", "known")
    assert load_json(row.input) == {"n": 7}


# APIs of other products


ACTION = "- {type: task, name: t, action: 'ocr:Recognize', serviceParams: {Side: $.side}}"


async def test_an_action_calls_the_function_that_implements_it(node: Node, functions: Functions) -> None:
    await node.register(functions, "ocr/Recognize")
    await node.create_flow("order", ACTION)
    await node.start("order", "good", {"side": "face"})
    call = await functions.next_call("ocr/Recognize")
    assert call.event == {"Side": "face"}
    call.reply({"name": "n"})
    assert await node.output_of("order", "good") == {"name": "n"}
    await node.start("order", "bad", {"side": "back"})
    (await functions.next_call("ocr/Recognize")).fail("NoCard")
    assert await node.error_of("order", "bad") == "ocr.NoCard"


async def test_an_action_that_no_function_implements(node: Node) -> None:
    await node.create_flow("order", ACTION)
    await node.start("order", "e", {"side": "face"})
    assert await node.error_of("order", "e") == "FC.ServiceNotFound"
