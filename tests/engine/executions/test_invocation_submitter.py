"""Asynchronous invocations of task steps: submitted once, awaited, and stopped when no step waits for them any more."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web
from sqlalchemy import select

from flowserver.base.limits import Limits
from flowserver.machine.events import EventType
from flowserver.machine.invocations.states import InvocationStatus
from flowserver.machine.state import Status
from flowserver.store.schema.invocation_tables import invocations
from tests.engine.called_functions import Call, Functions
from tests.engine.nodes import FragileDatabase, Node, running_node, take_for_dead
from tests.support.clock import ManualClock

PATIENCE_SECONDS = 60
S = InvocationStatus
ASYNC = """
- type: task
  name: work
  resourceArn: acs:fc:::services/shop/functions/pay
  serviceParams: {InvocationType: Async}
"""
SYNC = ASYNC + "  pattern: sync\n"
NAMED = SYNC.replace("Async}", "Async, StatefulAsyncInvocationID: $.id}")


@pytest.fixture(autouse=True)
async def registered(node: Node, functions: Functions) -> None:
    await node.register(functions, "shop/pay", "shop/ship")
    await fail_at_once(node, "pay")


async def fail_at_once(node: Node, function: str) -> None:
    """Let the function's invocations end with the first attempt that fails."""
    await node.operations.async_configs.put("shop", "", function, {"maxAsyncRetryAttempts": 0})


def rows(node: Node) -> list[Any]:
    """All invocations, in the order of their submission."""
    with node.database.read() as connection:
        return list(connection.execute(select(invocations).order_by(invocations.c.created_at)))


def statuses(node: Node) -> list[str]:
    return [row.status for row in rows(node)]


async def ended(node: Node, status: InvocationStatus, count: int = 1) -> None:
    """Return once exactly this many invocations exist and all have this status."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while statuses(node) != [status] * count:
            await node.engine.committer.write(lambda _: None)  # changes under way come first


# Submission


async def test_a_step_continues_when_its_invocation_is_submitted(node: Node, functions: Functions) -> None:
    await node.create_flow("f", ASYNC)
    row = await node.start("f", "e", {"n": 1})
    assert await node.output_of("f", "e") == {}
    call = await functions.next_call("shop/pay")
    assert call.event == {"n": 1}
    call.reply({})
    await ended(node, S.SUCCEEDED)
    (kept,) = rows(node)
    assert (kept.execution_id, kept.step_name, kept.callback_token) == (row.execution_id, "work", None)


async def test_a_sync_step_waits_for_the_end(node: Node, functions: Functions) -> None:
    await node.create_flow("f", NAMED)
    await node.start("f", "e", {"id": "job-1"})
    submitted = await node.reached("f", "e", EventType.TASK_SUBMITTED)
    (kept,) = rows(node)
    shown = {"RequestId": kept.request_id, "StatefulAsyncInvocationId": "job-1"}
    assert json.loads(submitted.detail)["output"] == shown
    call = await functions.next_call("shop/pay")
    assert call.headers["X-Fc-Stateful-Async-Invocation-Id"] == "job-1"
    call.reply({"paid": 5})
    assert await node.output_of("f", "e") == {"paid": 5}
    assert statuses(node) == [S.SUCCEEDED]


async def test_a_function_that_accepts_asynchronous_calls_only(node: Node, functions: Functions) -> None:
    """A function behind another server of this kind, or in the cloud: it must work before it answers."""

    def answer(call: Call) -> None:
        is_only_taken_in = call.headers["X-Fc-Invocation-Type"] == "Async"
        call.response.set_result(web.Response(status=202) if is_only_taken_in else web.json_response({"paid": 5}))

    functions.scripts["shop/pay"] = answer
    await node.create_flow("f", SYNC)
    await node.start("f", "e")
    assert await node.output_of("f", "e") == {"paid": 5}


async def test_an_invocations_failure_is_that_of_the_step_in_the_functions_own_words(
    node: Node, functions: Functions
) -> None:
    await node.create_flow("f", SYNC)
    await node.start("f", "e")
    (await functions.next_call("shop/pay")).fail("CardDeclined")
    row = await node.end_of("f", "e")
    assert (row.error, json.loads(row.cause or "")["errorType"]) == ("CardDeclined", "CardDeclined")


async def test_a_result_that_is_not_an_object(node: Node, functions: Functions) -> None:
    await node.create_flow("f", SYNC)
    await node.start("f", "e")
    (await functions.next_call("shop/pay")).reply([1])
    assert await node.error_of("f", "e") == "FnF.InvalidLocal"


async def test_a_callback_is_awaited_for_every_return_value(node: Node, functions: Functions) -> None:
    mapping = "inputMappings: [{target: token, source: $context.task.token}]"
    await node.create_flow("f", f"{ASYNC}  pattern: waitForCallback\n  {mapping}\n")
    await node.start("f", "e")
    call = await functions.next_call("shop/pay")
    call.reply({"not": "this"})
    await ended(node, S.SUCCEEDED)
    await node.operations.tasks.report_succeeded(call.event["token"], '{"but":"this"}')
    assert await node.output_of("f", "e") == {"but": "this"}


async def test_a_retry_of_the_step_is_a_new_invocation(node: Node, functions: Functions) -> None:
    await node.create_flow("f", SYNC + "  retry: [{errors: [Busy], intervalSeconds: 0, maxAttempts: 1}]\n")
    await node.start("f", "e")
    (await functions.next_call("shop/pay")).fail("Busy")
    (await functions.next_call("shop/pay")).reply({"n": 2})
    assert await node.output_of("f", "e") == {"n": 2}
    assert sorted(statuses(node)) == [S.FAILED, S.SUCCEEDED]


# Failed submissions


@pytest.mark.parametrize("pattern", ["requestResponse", "sync", "waitForCallback"])
@pytest.mark.parametrize(
    ("of", "input", "error"),
    [
        ("services/shop/functions/gone", {"id": "a"}, "FC.FunctionNotFound"),
        ("services/gone/functions/pay", {"id": "a"}, "FC.ServiceNotFound"),
        ("services/shop/functions/pay", {"id": "2 b"}, "FC.InvalidArgument"),
        ("services/shop/functions/pay", {"id": "a", "much": "x" * 200_000}, "FC.EntityTooLarge"),
    ],
)
async def test_a_failed_submission_fails_the_step(
    node: Node, pattern: str, of: str, input: dict[str, str], error: str
) -> None:
    flow = NAMED.replace("services/shop/functions/pay", of).replace("pattern: sync", f"pattern: {pattern}")
    await node.create_flow("f", flow)
    await node.start("f", "e", input)
    assert await node.error_of("f", "e") == error
    assert rows(node) == []


async def test_an_id_is_used_once(node: Node, functions: Functions) -> None:
    functions.echo("shop/pay")
    await node.create_flow(
        "f",
        NAMED + "  errorMappings: [{target: error, source: $local.error}]\n"
        "  catch: [{errors: [FC.StatefulAsyncInvocationAlreadyExists], goto: known}]\n  end: true\n"
        "- {type: succeed, name: known}",
    )
    outputs = []
    for name in ("first", "second"):
        await node.start("f", name, {"id": "job-1"})
        outputs.append(await node.output_of("f", name))
    assert outputs == [{"id": "job-1"}, {"error": "FC.StatefulAsyncInvocationAlreadyExists"}]


# Stops


async def test_a_stopped_execution_stops_all_its_invocations(node: Node, functions: Functions) -> None:
    forgets = ASYNC.replace("name: work", "name: forgets").replace("functions/pay", "functions/ship")
    await node.create_flow("f", forgets + SYNC)
    await node.start("f", "e")
    calls = [await functions.next_call("shop/ship"), await functions.next_call("shop/pay")]
    await node.operations.executions.stop("f", "e", error="Enough")
    for call in calls:
        await call.gone.wait()
    await ended(node, S.STOPPED, 2)


async def test_an_execution_past_its_deadline_stops_its_invocations(
    node: Node, functions: Functions, clock: ManualClock
) -> None:
    await node.create_flow("f", SYNC, "timeoutSeconds: 60")
    await node.start("f", "e")
    call = await functions.next_call("shop/pay")
    node.advance(clock, seconds=60)
    await call.gone.wait()
    await ended(node, S.STOPPED)
    assert (await node.end_of("f", "e")).status is Status.TIMED_OUT


async def test_an_execution_that_fails_leaves_invocations_that_no_step_waits_for(
    node: Node, functions: Functions
) -> None:
    await node.create_flow("f", ASYNC + "- {type: fail, name: z}")
    await node.start("f", "e")
    await node.error_of("f", "e")
    (await functions.next_call("shop/pay")).reply({})
    await ended(node, S.SUCCEEDED)


@pytest.mark.parametrize("pattern", ["sync", "waitForCallback"])
async def test_a_step_s_time_out_stops_its_invocation(
    node: Node, functions: Functions, clock: ManualClock, pattern: str
) -> None:
    await node.create_flow("f", SYNC.replace("pattern: sync", f"pattern: {pattern}") + "  timeoutSeconds: 5\n")
    await node.start("f", "e")
    call = await functions.next_call("shop/pay")
    await node.reached("f", "e", EventType.TASK_SUBMITTED)
    node.advance(clock, seconds=5)
    assert await node.error_of("f", "e") == "FnF.TaskTimeout"
    await call.gone.wait()
    await ended(node, S.STOPPED)


async def test_a_failing_branch_stops_its_siblings_invocations(node: Node, functions: Functions) -> None:
    await node.create_flow(
        "f",
        """
        - type: parallel
          name: both
          branches:
            - steps: [{type: task, name: ship, resourceArn: 'acs:fc:::services/shop/functions/ship'}]
            - steps:
                - type: task
                  name: work
                  resourceArn: acs:fc:::services/shop/functions/pay
                  pattern: sync
                  serviceParams: {InvocationType: Async}
        """,
    )
    await node.start("f", "e")
    work = await functions.next_call("shop/pay")
    await node.reached("f", "e", EventType.TASK_SUBMITTED)
    (await functions.next_call("shop/ship")).fail("Broke")
    assert await node.error_of("f", "e") == "Broke"
    await work.gone.wait()
    await ended(node, S.STOPPED)


async def test_stopping_the_invocation_fails_the_step(node: Node, functions: Functions) -> None:
    await node.create_flow("f", NAMED)
    await node.start("f", "e", {"id": "job-1"})
    await functions.next_call("shop/pay")
    await node.engine.invocations.stop("shop", "pay", "job-1")
    assert await node.error_of("f", "e") == "FC.InvocationStopped"


async def test_an_invocation_stopped_during_submission_is_not_submitted(node: Node, functions: Functions) -> None:
    held, submit = asyncio.Event(), node.engine.invocations.submit

    async def hold(*args: Any, **options: Any) -> Any:
        await asyncio.shield(asyncio.ensure_future(go_on(*args, **options)))

    async def go_on(*args: Any, **options: Any) -> Any:
        await held.wait()
        try:
            return await submit(*args, **options)
        finally:
            over.set()

    over = asyncio.Event()
    node.engine.invocations.submit = hold  # type: ignore[assignment, method-assign]
    await node.create_flow("f", SYNC)
    await node.start("f", "e")
    await node.reached("f", "e", EventType.TASK_STARTED)
    await node.operations.executions.stop("f", "e")
    held.set()
    await over.wait()
    assert (rows(node), functions.calls) == ([], [])


# Crashes


async def test_a_requested_stop_survives_a_crash(
    node: Node, open_database: Callable[[], FragileDatabase], functions: Functions, clock: ManualClock
) -> None:
    """The first node dies between the commit of the stop and stopping the call; here it omits the second."""
    database = open_database()
    async with running_node(database, clock, node_id="dies") as other:
        await other.create_flow("f", SYNC)
        await other.start("f", "e")
        await functions.next_call("shop/pay")
        await other.reached("f", "e", EventType.TASK_SUBMITTED)
        other.engine.invocations.stop_all = _nothing  # type: ignore[method-assign]
        await other.operations.executions.stop("f", "e")
        database.crashed = True
    take_for_dead(node.database, "dies")
    await node.engine.recovery.sweep()
    await ended(node, S.STOPPED)


async def _nothing(_: Any) -> None:
    """Stops nothing."""


async def test_a_submission_that_is_ordered_again_is_the_same_invocation(
    node: Node, open_database: Callable[[], FragileDatabase], functions: Functions, clock: ManualClock
) -> None:
    """The first node dies after it has submitted, before it commits the result."""
    database = open_database()
    async with running_node(database, clock, node_id="dies") as other:
        submit = other.engine.invocations.submit

        async def last(*args: Any, **options: Any) -> Any:
            row = await submit(*args, **options)
            database.crashed = True
            return row

        other.engine.invocations.submit = last  # type: ignore[method-assign]
        await other.create_flow("f", SYNC)
        await other.start("f", "e")
        await database.failed()
    take_for_dead(node.database, "dies")
    functions.echo("shop/pay")  # from now on: a call that is still open is the dead node's
    await node.engine.recovery.sweep()
    for call in functions.calls:
        if not call.response.done():
            call.reply({"lost": True})
    assert await node.output_of("f", "e") == {}
    assert statuses(node) == [S.SUCCEEDED]


@pytest.mark.parametrize("limits", [Limits(invocations_in_flight_max=2)])
async def test_steps_that_wait_for_invocations_hold_no_slots(node: Node, functions: Functions) -> None:
    await node.create_flow(
        "f",
        """
        - type: foreach
          name: each
          iterationMapping: {collection: $.items, item: item}
          steps:
            - type: task
              name: work
              resourceArn: acs:fc:::services/shop/functions/pay
              pattern: sync
              serviceParams: {InvocationType: Async}
          outputMappings: [{target: all, source: '$local[*].item'}]
        """,
    )
    functions.echo("shop/pay")
    await node.start("f", "e", {"items": list(range(9))})
    assert await node.output_of("f", "e") == {"all": list(range(9))}
