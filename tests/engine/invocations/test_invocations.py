"""Asynchronous invocations: states, retries, stops, hooks, limits, and takeover."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest
from sqlalchemy import Connection, func, select, update
from sqlalchemy.exc import OperationalError

from flowserver.base.errors import (
    FlowServerError,
    FunctionNotFound,
    InvalidArgument,
    InvocationExists,
    InvocationNotExists,
    ResourceThrottled,
    ServiceNotFound,
)
from flowserver.base.json_values import dump_json
from flowserver.base.limits import Limits
from flowserver.engine.deletion_pace import ROW_BYTES, ROWS_MAX
from flowserver.engine.functions.call_queues import QueueKey
from flowserver.machine.invocations.states import InvocationSettings, InvocationStatus
from flowserver.store.functions import put_function
from flowserver.store.invocations.rows import InvocationRow, find_invocations, insert_invocations
from flowserver.store.invocations.stops import stop_all
from flowserver.store.invocations.submissions import NewInvocation
from flowserver.store.schema.invocation_tables import invocations
from flowserver.store.schema.tables import async_configs
from tests.engine.called_functions import PATIENCE_SECONDS, Functions
from tests.engine.held_threads import Gate
from tests.engine.nodes import FragileDatabase, Node, running_node, take_for_dead
from tests.store.rows import function_row, invocation_row
from tests.support.clock import ManualClock

S = InvocationStatus
OpenDatabase = Callable[[], FragileDatabase]


@pytest.fixture(autouse=True)
async def registered(node: Node, functions: Functions) -> None:
    await node.register(functions, "shop/pay")


def new(key: str, **changes: Any) -> NewInvocation:
    values: dict[str, Any] = {
        "service": "shop",
        "qualifier": "",
        "function": "pay",
        "payload": b'{"n":1}',
        "invocation_key": key,
        "request_id": f"request-{key}",
    }
    return NewInvocation(**{**values, **changes})


def configure(node: Node, **document: Any) -> None:
    values = {"service": "shop", "function": "pay", "qualifier": "", "created_at": 1, "modified_at": 1}
    with node.database.write() as connection:
        connection.execute(async_configs.insert().values(**values, document=dump_json(document)))


def bound(node: Node, functions: Functions, **bounds: Any) -> None:
    """Register the function again with changes."""
    row = function_row("shop", "pay", url=functions.url("shop/pay"), headers={}, **bounds)
    with node.database.write() as connection:
        put_function(connection, row)
    node.engine.functions_changed()


def row_of(node: Node, key: str) -> InvocationRow:
    return node.database.run_read(lambda connection: find_invocations(connection, [key]))[key]


def states(row: InvocationRow) -> list[str]:
    return [event.status for event in row.state.events]


async def ended(node: Node, key: str) -> InvocationRow:
    """The invocation, once it has ended."""
    return await reached(node, key, lambda row: row.state.is_over)


async def reached(node: Node, key: str, holds: Callable[[InvocationRow], bool]) -> InvocationRow:
    """The invocation, once the condition holds; checked after every commit."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not holds(row := row_of(node, key)):
            await node.engine.committer.write(lambda _: None)
    return row


async def test_every_state_is_visible_while_it_lasts(node: Node, functions: Functions, clock: ManualClock) -> None:
    submitted = await node.engine.invocations.submit(new("k", invocation_id="task"))
    assert (submitted.state.status, submitted.invocation_id) == (S.ENQUEUED, "task")
    call = await functions.next_call("shop/pay")
    assert (call.event, call.key, call.attempt) == ({"n": 1}, "k", 1)
    assert call.headers["X-Fc-Request-Id"] == "request-k"
    assert call.headers["X-Fc-Stateful-Async-Invocation-Id"] == "task"
    assert states(row_of(node, "k")) == ["Enqueued", "Dequeued", "Running"]
    clock.advance(seconds=2)
    call.fail("KeyError")
    row = await reached(node, "k", lambda row: row.state.status is S.RETRYING)
    assert (row.state.error, row.state.wake_at) == ("KeyError", clock.now_ms() + 500)
    node.advance(clock, seconds=0.5)
    again = await functions.next_call("shop/pay")
    assert (again.key, again.attempt) == ("k", 2)
    again.reply({"paid": True})
    row = await ended(node, "k")
    assert states(row) == ["Enqueued", "Dequeued", "Running", "Retrying", "Running", "Succeeded"]
    assert (row.state.result, row.state.error, row.state.retries) == (b'{"paid": true}', None, 1)


async def test_retries_are_exhausted(node: Node, functions: Functions, clock: ManualClock) -> None:
    configure(node, maxAsyncRetryAttempts=1)
    await node.engine.invocations.submit(new("k"))
    (await functions.next_call("shop/pay")).fail("First")
    await reached(node, "k", lambda row: row.state.status is S.RETRYING)
    node.advance(clock, seconds=0.5)
    (await functions.next_call("shop/pay")).fail("Second")
    row = await ended(node, "k")
    assert (row.state.status, row.state.error, row.state.attempt) == (S.FAILED, "Second", 2)


async def test_an_invocation_that_waited_too_long_expires(node: Node, functions: Functions, clock: ManualClock) -> None:
    configure(node, maxAsyncEventAgeInSeconds=5)
    bound(node, functions, concurrency_max=1)
    await node.engine.invocations.submit(new("first"))
    await node.engine.invocations.submit(new("second"))
    call = await functions.next_call("shop/pay")
    clock.advance(seconds=6)
    call.reply({})
    row = await ended(node, "second")
    assert states(row) == ["Enqueued", "Dequeued", "Expired"]
    assert len(functions.calls) == 1


async def test_a_function_deleted_meanwhile_makes_it_invalid(node: Node, functions: Functions) -> None:
    bound(node, functions, concurrency_max=1)
    await node.engine.invocations.submit(new("first"))
    await node.engine.invocations.submit(new("second"))
    call = await functions.next_call("shop/pay")
    await node.operations.functions.delete("shop", "pay")
    call.reply({})
    row = await ended(node, "second")
    assert (states(row), row.state.error) == (["Enqueued", "Dequeued", "Invalid"], "FC.ServiceNotFound")


@pytest.mark.parametrize(
    ("changes", "error"),
    [({"service": "no"}, ServiceNotFound), ({"function": "no"}, FunctionNotFound)],
)
async def test_a_function_that_does_not_exist(node: Node, changes: Any, error: type[FlowServerError]) -> None:
    with pytest.raises(error):
        await node.engine.invocations.submit(new("k", **changes))


async def test_submitting_again(node: Node, functions: Functions) -> None:
    """The same key identifies the same invocation; an id is unique within a function."""
    first = await node.engine.invocations.submit(new("k", invocation_id="task"))
    again = await node.engine.invocations.submit(new("k", invocation_id="task", payload=b"other"))
    assert (again.invocation_key, again.payload) == (first.invocation_key, first.payload)
    with pytest.raises(InvocationExists):
        await node.engine.invocations.submit(new("other", invocation_id="task"))
    (await functions.next_call("shop/pay")).reply({})
    await ended(node, "k")
    assert len(functions.calls) == 1


async def test_a_check_in_the_submission_s_own_transaction(node: Node) -> None:
    def refuse(_: object) -> None:
        raise InvalidArgument("as the test wants it")

    submissions = [
        node.engine.invocations.submit(new("refused"), check=refuse),
        node.engine.invocations.submit(new("good"), check=lambda _: None),
    ]
    refused, good = await asyncio.gather(*submissions, return_exceptions=True)
    assert isinstance(refused, InvalidArgument)
    assert isinstance(good, InvocationRow)
    assert not node.database.run_read(lambda connection: find_invocations(connection, ["refused"]))


# Stops


async def test_stopping_drops_the_call_and_calls_the_stop_hook(node: Node, functions: Functions) -> None:
    bound(node, functions, pre_stop_url=functions.url("hook"))
    await node.engine.invocations.submit(new("k", invocation_id="task"))
    call = await functions.next_call("shop/pay")
    stopping = await node.engine.invocations.stop("shop", "pay", "task")
    assert stopping.state.status is S.STOPPING
    await call.gone.wait()
    hook = await functions.next_call("hook")
    assert (hook.method, hook.headers["X-Fc-Request-Id"]) == ("GET", "request-k")
    assert row_of(node, "k").state.status is S.STOPPING
    assert (await node.engine.invocations.stop("shop", "pay", "task")).state.status is S.STOPPING
    hook.reply({}, status=404)  # logged, without further effect
    row = await ended(node, "k")
    assert states(row) == ["Enqueued", "Dequeued", "Running", "Stopping", "Stopped"]
    with pytest.raises(InvalidArgument):
        await node.engine.invocations.stop("shop", "pay", "task")


@pytest.mark.parametrize("answers", ["not at all", "404"])
async def test_a_failing_hook_is_logged_without_further_effect(
    node: Node, functions: Functions, caplog: pytest.LogCaptureFixture, answers: str
) -> None:
    bound(node, functions, pre_stop_url=functions.url("hook"), hook_seconds=1)
    await node.engine.invocations.submit(new("k", invocation_id="task"))
    await functions.next_call("shop/pay")
    await node.engine.invocations.stop("shop", "pay", "task")
    hook = await functions.next_call("hook")
    if answers == "404":
        hook.reply({}, status=404)
    assert (await ended(node, "k")).state.status is S.STOPPED
    reason = "did not reply within 1 s" if answers == "not at all" else "it answered 404"
    [told] = [record.message for record in caplog.records if "pre-stop hook" in record.message]
    assert told.startswith("the pre-stop hook of shop/pay failed: ")
    assert reason in told


async def test_stopping_on_another_node(
    node: Node, open_database: OpenDatabase, functions: Functions, clock: ManualClock
) -> None:
    """The node that holds it drops the call, and calls the stop hook."""
    async with running_node(open_database(), clock, node_id="other") as other:
        bound(node, functions, pre_stop_url=functions.url("hook"))
        await node.engine.invocations.submit(new("k", invocation_id="task"))
        call = await functions.next_call("shop/pay")
        stopping = await other.engine.invocations.stop("shop", "pay", "task")
        assert stopping.state.status is S.STOPPING
        await node.engine.recovery.sweep()
        await call.gone.wait()
        (await functions.next_call("hook")).reply({})
        assert (await ended(node, "k")).state.status is S.STOPPED


async def test_stopping_an_invocation_that_is_not_being_called(
    node: Node, functions: Functions, clock: ManualClock
) -> None:
    bound(node, functions, concurrency_max=1, pre_stop_url=functions.url("hook"))
    for key in ("running", "waiting", "last"):
        await node.engine.invocations.submit(new(key, invocation_id=key))
    call = await functions.next_call("shop/pay")
    row = await node.engine.invocations.stop("shop", "pay", "waiting")
    assert states(row) == ["Enqueued", "Stopping", "Stopped"]
    call.fail("Broke")
    await reached(node, "running", lambda row: row.state.status is S.RETRYING)
    row = await node.engine.invocations.stop("shop", "pay", "running")
    assert states(row)[-3:] == ["Retrying", "Stopping", "Stopped"]
    last = await functions.next_call("shop/pay")
    assert last.key == "last"
    node.advance(clock, seconds=60)
    last.reply({})
    await ended(node, "last")
    assert [key for key, _ in functions.called("shop/pay")] == ["running", "last"]
    assert not functions.called("hook")


async def test_stopping_an_invocation_that_does_not_exist(node: Node) -> None:
    with pytest.raises(InvocationNotExists):
        await node.engine.invocations.stop("shop", "pay", "unknown")


async def test_invocations_that_a_turn_wants_stopped_are_found(node: Node, functions: Functions) -> None:
    await node.engine.invocations.submit(new("k"))
    call = await functions.next_call("shop/pay")
    with node.database.write() as connection:
        connection.execute(update(invocations).values(is_unwanted=True))
    await node.engine.recovery.sweep()
    await call.gone.wait()
    assert (await ended(node, "k")).state.status is S.STOPPED


# Hooks


async def test_a_function_is_initialized_once_before_its_first_call(node: Node, functions: Functions) -> None:
    bound(node, functions, initialize_url=functions.url("hook"))
    for key in ("a", "b"):
        await node.engine.invocations.submit(new(key))
    hook = await functions.next_call("hook")
    assert hook.method == "POST"
    await reached(node, "b", lambda row: row.state.status is S.DEQUEUED)
    assert not functions.called("shop/pay")
    hook.reply({})
    for _ in "ab":
        (await functions.next_call("shop/pay")).reply({})
    assert (await ended(node, "b")).state.status is S.SUCCEEDED
    assert len(functions.called("hook")) == 1


async def test_a_function_that_does_not_start(node: Node, functions: Functions) -> None:
    bound(node, functions, initialize_url=functions.url("hook"))
    await node.engine.invocations.submit(new("first"))
    (await functions.next_call("hook")).reply({}, status=500)
    row = await ended(node, "first")
    assert (row.state.status, row.state.error) == (S.INVALID, "FC.FunctionNotStarted")
    await node.engine.invocations.submit(new("second"))
    (await functions.next_call("hook")).reply({})
    (await functions.next_call("shop/pay")).reply({})
    assert (await ended(node, "second")).state.status is S.SUCCEEDED


async def test_steps_wait_for_the_hook_too(node: Node, functions: Functions) -> None:
    bound(node, functions, initialize_url=functions.url("hook"))
    step = "- {type: task, name: pay, resourceArn: 'acs:fc:::services/shop/functions/pay'}"
    await node.create_flow("f", step)
    await node.start("f", "bad")
    (await functions.next_call("hook")).reply({}, status=500)
    assert await node.error_of("f", "bad") == "FC.FunctionNotStarted"
    await node.start("f", "good")
    (await functions.next_call("hook")).reply({})
    (await functions.next_call("shop/pay")).reply({"done": True})
    assert await node.output_of("f", "good") == {"done": True}


# Limits


async def test_no_more_calls_than_the_functions_limit(node: Node, functions: Functions) -> None:
    bound(node, functions, concurrency_max=2)
    step = "- {type: task, name: pay, resourceArn: 'acs:fc:::services/shop/functions/pay'}"
    await node.create_flow("f", step)
    for number in range(4):
        await node.start("f", f"e{number}")
        await node.engine.invocations.submit(new(str(number)))
    for _ in range(8):
        call = await functions.next_call("shop/pay")
        assert sum(not each.response.done() for each in functions.calls) <= 2
        call.reply({})
    for number in range(4):
        await node.output_of("f", f"e{number}")
        await ended(node, str(number))


async def test_a_full_queue(node: Node, functions: Functions) -> None:
    bound(node, functions, concurrency_max=1, waiting_max=1)
    step = "- {type: task, name: pay, resourceArn: 'acs:fc:::services/shop/functions/pay'}"
    await node.create_flow("f", step)
    await node.engine.invocations.submit(new("running"))
    call = await functions.next_call("shop/pay")
    await node.engine.invocations.submit(new("waiting"))
    with pytest.raises(ResourceThrottled):
        await node.engine.invocations.submit(new("third"))
    await node.start("f", "waits")
    await node.start("f", "refused")
    assert await node.error_of("f", "refused") == "FC.ResourceExhausted"
    call.reply({})
    for _ in range(2):
        (await functions.next_call("shop/pay")).reply({})
    await ended(node, "waiting")
    assert await node.output_of("f", "waits") == {}


@pytest.mark.parametrize("limits", [Limits(invocations_in_flight_max=4)])
async def test_a_busy_function_delays_no_other(node: Node, functions: Functions) -> None:
    """Ten wait for its slots, and hold none of the node's slots."""
    bound(node, functions, concurrency_max=1)
    await node.register(functions, "shop/ship")
    step = "- {type: task, name: pay, resourceArn: 'acs:fc:::services/shop/functions/pay'}"
    await node.create_flow("f", step)
    for number in range(10):
        await node.start("f", f"e{number}")
    held = await functions.next_call("shop/pay")
    await node.engine.invocations.submit(new("other", function="ship"))
    (await functions.next_call("shop/ship")).reply({})
    assert (await ended(node, "other")).state.status is S.SUCCEEDED
    held.reply({})


# Ends


async def test_old_ones_are_deleted(node: Node, functions: Functions, clock: ManualClock) -> None:
    functions.echo("shop/pay")
    await node.engine.invocations.submit(new("k"))
    await ended(node, "k")
    clock.advance(seconds=7 * 86_400)
    assert await node.engine.invocation_retention.run_once() == 0
    clock.advance(seconds=1)
    assert await node.engine.invocation_retention.run_once() == 1


async def test_none_is_deleted_by_a_clock_that_was_set(node: Node, functions: Functions, clock: ManualClock) -> None:
    functions.echo("shop/pay")
    await node.engine.invocations.submit(new("k"))
    await ended(node, "k")
    clock.step(32 * 86_400_000)
    assert await node.engine.invocation_retention.run_once() == 0


async def test_old_ones_are_deleted_in_portions_of_bytes(node: Node, clock: ManualClock) -> None:
    """24 MB in all, of which one transaction may delete 16."""
    many = [invocation_row(f"k{number:02}", payload=b"p" * 1_000_000) for number in range(24)]
    with node.database.write() as connection:
        insert_invocations(connection, many)
        ended_values = {"status": "Stopped", "node_id": None, "ended_at": 1}
        connection.execute(update(invocations).values(ended_values))
    left: list[int] = [len(many)]

    def note(connection: Connection) -> bool:
        left.append(connection.execute(select(func.count()).select_from(invocations)).scalar_one())
        return False

    node.database.refuses = note
    assert await node.engine.invocation_retention.run_once() == len(many)
    assert left[-1] == 0
    assert max(before - after for before, after in pairwise(left)) <= ROWS_MAX * ROW_BYTES // 1_000_000


# Crashes and several nodes


async def test_invocations_continue_after_a_crash(
    node: Node, open_database: OpenDatabase, functions: Functions, clock: ManualClock
) -> None:
    database = open_database()
    async with running_node(database, clock, node_id="dies") as dies:
        for key in ("running", "stopping", "pausing"):
            await dies.engine.invocations.submit(new(key, invocation_id=key))
        calls = {call.key: call for call in [await functions.next_call("shop/pay") for _ in range(3)]}
        calls["pausing"].fail("Broke")
        await reached(dies, "pausing", lambda row: row.state.status is S.RETRYING)
        database.crashed = True
    await node.engine.invocations.stop("shop", "pay", "stopping")
    take_for_dead(node.database, "dies")
    clock.advance(seconds=3)
    await node.engine.recovery.sweep()
    node.engine.retries.notice(0)
    again = {call.key: call for call in [await functions.next_call("shop/pay") for _ in range(2)]}
    assert {key: call.attempt for key, call in again.items()} == {"running": 2, "pausing": 2}
    for call in again.values():
        call.reply({})
    assert [(await ended(node, key)).state.status for key in ("running", "pausing", "stopping")] == [
        S.SUCCEEDED,
        S.SUCCEEDED,
        S.STOPPED,
    ]


async def test_a_lost_answer_changes_nothing(node: Node, functions: Functions) -> None:
    """Each commit succeeds, and reports that it failed."""
    await node.engine.recovery.stop()
    node.database.lose_answer_of(select(invocations))
    with suppress(OperationalError):  # another change in that commit would make it a retry at once
        await node.engine.invocations.submit(new("k"))
    await node.database.failed()
    again = await node.engine.invocations.submit(new("k"))
    call = await functions.next_call("shop/pay")
    assert (again.invocation_key, call.attempt) == ("k", 1)
    node.database.lose_answer_of(select(invocations).where(invocations.c.status == S.SUCCEEDED))
    call.reply({"paid": True})
    await node.database.failed()
    row = await ended(node, "k")
    assert states(row) == ["Enqueued", "Dequeued", "Running", "Succeeded"]


async def test_the_outcome_waits_for_a_database_that_is_down(node: Node, functions: Functions) -> None:
    await node.engine.invocations.submit(new("k"))
    call = await functions.next_call("shop/pay")
    node.database.broken = True
    call.reply({})
    await node.database.failed()
    node.database.broken = False
    assert (await ended(node, "k")).state.attempt == 1
    assert len(functions.calls) == 1


async def test_a_stop_that_only_the_holder_knows_of(node: Node, functions: Functions) -> None:
    """Recovery has seen the request in the rows; the node that made it has not stopped the call yet."""
    await node.engine.recovery.stop()
    await node.engine.invocations.submit(new("k"))
    call = await functions.next_call("shop/pay")
    node.engine.invocations.notice_stopping(["k"])
    await call.gone.wait()
    row = await ended(node, "k")
    assert states(row) == ["Enqueued", "Dequeued", "Running", "Stopping", "Stopped"]
    assert row.state.attempt == 1


async def test_very_many_are_stopped_a_few_at_a_time(
    node: Node, functions: Functions, monkeypatch: pytest.MonkeyPatch
) -> None:
    together: list[int] = []

    def counting(connection: Connection, keys: Sequence[str], now_ms: int) -> list[InvocationRow]:
        together.append(len(keys))
        return stop_all(connection, keys, now_ms)

    monkeypatch.setattr("flowserver.engine.invocations.invocations.stop_all", counting)
    bound(node, functions, concurrency_max=1)
    keys = [str(number) for number in range(450)]
    await asyncio.gather(*(node.engine.invocations.submit(new(key)) for key in keys))
    await functions.next_call("shop/pay")
    await node.engine.invocations.stop_all(keys)
    assert (together, node.engine.invocations.waiting) == ([200, 200, 50], 0)
    assert (await ended(node, "0")).state.status is S.STOPPED


async def test_stopped_invocations_release_their_capacity(node: Node, functions: Functions) -> None:
    bound(node, functions, concurrency_max=1, waiting_max=1)
    await node.engine.invocations.submit(new("running"))
    call = await functions.next_call("shop/pay")
    for number in range(3):
        await node.engine.invocations.submit(new(str(number), invocation_id=f"id-{number}"))
        await node.engine.invocations.stop("shop", "pay", f"id-{number}")
    assert node.engine.invocations.waiting == 0
    call.reply({})
    await ended(node, "running")


async def test_with_no_waiting_allowed_a_free_slot_is_used(node: Node, functions: Functions) -> None:
    bound(node, functions, concurrency_max=1, waiting_max=0)
    await node.engine.invocations.submit(new("first"))
    call = await functions.next_call("shop/pay")
    with pytest.raises(ResourceThrottled):
        await node.engine.invocations.submit(new("second"))
    call.reply({})
    await ended(node, "first")


async def test_concurrent_submissions_fill_the_queue_exactly(node: Node, functions: Functions) -> None:
    bound(node, functions, concurrency_max=1, waiting_max=2)
    together = [node.engine.invocations.submit(new(str(number))) for number in range(9)]
    answers = await asyncio.gather(*together, return_exceptions=True)
    assert [isinstance(answer, ResourceThrottled) for answer in answers] == [False] * 3 + [True] * 6
    for _ in range(3):
        (await functions.next_call("shop/pay")).reply({})


@pytest.mark.parametrize("limits", [Limits(pending_messages_max=2)])
async def test_submissions_of_callers_are_refused_while_too_many_wait_for_the_writer(
    node: Node, functions: Functions
) -> None:
    functions.echo("shop/pay")
    together = [node.engine.invocations.submit(new(str(number))) for number in range(9)]
    answers = await asyncio.gather(*together, return_exceptions=True)
    assert [isinstance(answer, ResourceThrottled) for answer in answers] == [False] * 2 + [True] * 7
    together = [node.engine.invocations.submit(new(f"e{number}", execution_id="e")) for number in range(9)]
    assert len(await asyncio.gather(*together)) == 9


async def test_a_step_that_submits_again_gets_its_own_although_the_queue_is_full(
    node: Node, functions: Functions
) -> None:
    """As after a crash between the submission and the step's next turn."""
    bound(node, functions, concurrency_max=1, waiting_max=0)
    first = await node.engine.invocations.submit(new("k", execution_id="e"))
    again = await node.engine.invocations.submit(new("k", execution_id="e"))
    assert again.request_id == first.request_id
    await node.operations.functions.delete("shop", "pay")
    again = await node.engine.invocations.submit(new("k", execution_id="e"))
    assert again.request_id == first.request_id
    (await functions.next_call("shop/pay")).reply({})


async def test_a_lost_invocation_is_found_among_very_many(
    node: Node, functions: Functions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flowserver.engine.invocations.recovery.HELD_PER_SWEEP", 2)
    await node.engine.recovery.stop()
    bound(node, functions, concurrency_max=1)
    for number in range(5):
        await node.engine.invocations.submit(new(str(number)))
    held = await functions.next_call("shop/pay")
    node.engine.invocations._held.discard("3")  # as if this node had forgotten it
    node.engine.invocations._queues.drop(QueueKey.of(("shop", "", "pay")), "3")
    for _ in range(6):
        await node.engine.recovery.sweep()
    assert node.engine.invocations.holds("3")
    held.reply({})


async def test_settings_read_before_a_change_are_not_cached_after_it(node: Node) -> None:
    settings, gate = node.engine.invocations.settings, Gate()
    blocked = asyncio.create_task(node.engine.reader.ask(gate))
    await gate.reached.wait()
    asking = asyncio.create_task(settings.find(("shop", "", "pay")))
    await asyncio.sleep(0)
    settings.forget()
    gate.open()
    await blocked
    assert (await asking).retries == InvocationSettings().retries
    configure(node, maxAsyncRetryAttempts=7)
    assert (await settings.find(("shop", "", "pay"))).retries == 7
