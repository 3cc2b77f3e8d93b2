"""Recovery: interrupted work is found by the rows alone."""

import logging
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import delete, select, update
from sqlalchemy.exc import OperationalError

from flowserver.base.json_values import load_json
from flowserver.base.limits import Limits
from flowserver.base.nonces import Nonce
from flowserver.engine.commit.batch_items import Envelope, Receipt
from flowserver.machine.events import EventType
from flowserver.machine.state import Status
from flowserver.store.access_keys import use_nonce
from flowserver.store.cluster.nodes import register_node
from flowserver.store.executions.due import tasks_of_node
from flowserver.store.invocations.rows import insert_invocations
from flowserver.store.schema.tables import execution_documents, executions, nonces, scopes
from flowserver.store.sql.database import Database
from tests.engine.called_functions import Functions
from tests.engine.nodes import PATIENCE_SECONDS, Node, take_for_dead
from tests.store.rows import invocation_row
from tests.support.clock import ManualClock

PAY = "- {type: task, name: pay, resourceArn: 'acs:fc:::services/shop/functions/pay'}"
ASK = PAY[:-1] + ", pattern: waitForCallback, inputMappings: [{target: token, source: $context.task.token}]}"
LONG = "\n".join(f"- {{type: pass, name: p{number}}}" for number in range(10))
WAIT = "- {type: wait, name: w, duration: 60}"


@pytest.fixture(autouse=True)
async def registered(node: Node, functions: Functions) -> None:
    await node.register(functions, "shop/pay")


def change(database: Database, *statements: object) -> None:
    with database.write() as connection:
        for statement in statements:
            connection.execute(statement)
        connection.execute(update(executions).values(version=executions.c.version + 1))  # as all changes of rows do


@pytest.mark.parametrize("is_stopped_then", [False, True])
async def test_a_call_whose_task_was_reported_early_runs_to_its_own_end(
    node: Node, functions: Functions, is_stopped_then: bool
) -> None:
    await node.create_flow("f", f"{ASK}\n{WAIT}")
    await node.start("f", "e")
    call = await functions.next_call("shop/pay")
    await node.operations.tasks.report_succeeded(call.event["token"], '{"n": 1}')
    if is_stopped_then:
        await node.operations.executions.stop("f", "e")
    for _ in range(3):
        await node.engine.recovery.sweep()
    assert node.engine.slots.taken == 1
    call.reply({"n": 2})
    await node.engine.dispatcher.drain(PATIENCE_SECONDS)
    assert not call.gone.is_set()
    assert node.engine.slots.taken == 0
    succeeded = [load_json(each.detail) for each in await node.history("f", "e") if each.type == "TaskSucceeded"]
    assert [each["output"] for each in succeeded] == [{"n": 1}]


async def test_calls_of_a_dead_node_are_made_again(
    node: Node, functions: Functions, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    with node.database.write() as connection:
        register_node(connection, "gone", "session", clock.now_ms())
    await node.create_flow("f", PAY)
    await node.start("f", "e")
    first = await functions.next_call("shop/pay")
    node.engine.dispatcher.cancel(_key(node.database))
    await first.gone.wait()
    change(node.database, update(scopes).values(node_id="gone"))
    await node.engine.recovery.sweep()
    assert functions.called("shop/pay") == [(first.key, 1)]  # it is alive
    caplog.set_level(logging.INFO, "flowserver.engine.recovery")
    take_for_dead(node.database, "gone")
    await node.engine.recovery.sweep()
    again = await functions.next_call("shop/pay")  # ordered by this sweep, or by the node's own if that was faster
    assert (again.key, again.attempt) == (first.key, 2)
    with node.database.read() as connection:
        assert len(tasks_of_node(connection, "node-1", 9)[0]) == 1
    again.reply({"paid": True})
    assert await node.output_of("f", "e") == {"paid": True}
    assert "taken up: calls 1, executions 0, callbacks of sub-flows 0" in caplog.text


async def test_a_lost_call_is_found_at_the_second_sweep(node: Node, functions: Functions) -> None:
    await node.create_flow("f", PAY)
    await node.start("f", "e")
    first = await functions.next_call("shop/pay")
    await node.engine.recovery.sweep()
    await node.engine.recovery.sweep()
    assert len(functions.calls) == 1  # under way, so not lost
    node.engine.dispatcher.cancel(_key(node.database))
    await first.gone.wait()
    await node.engine.recovery.sweep()
    await node.engine.recovery.sweep()
    again = await functions.next_call("shop/pay")
    assert (again.key, again.attempt) == (first.key, 2)
    again.reply({})
    await node.output_of("f", "e")


async def test_calls_of_a_node_are_checked_in_portions(
    node: Node, functions: Functions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sweep reads a limited number of them, and finds every lost call, once."""
    monkeypatch.setattr("flowserver.engine.executions.recovery.HELD_PER_SWEEP", 2)
    monkeypatch.setattr("flowserver.engine.recovery.SWEEP_SECONDS", 3_600)
    await node.create_flow("f", PAY)
    for number in range(5):
        await node.start("f", f"e{number}")
    first = [await functions.next_call("shop/pay") for _ in range(5)]
    node.engine.dispatcher.drop_all()
    for call in first:
        await call.gone.wait()
    read: list[int] = []
    monkeypatch.setattr("flowserver.engine.executions.recovery.tasks_of_node", counted(read))
    for _ in range(6):  # two rounds of three looks
        await node.engine.recovery.sweep()
    again = [await functions.next_call("shop/pay") for _ in range(5)]
    assert {(call.key, call.attempt) for call in again} == {(call.key, 2) for call in first}
    assert max(read) == 2
    for call in again:
        call.reply({})
    for number in range(5):
        await node.output_of("f", f"e{number}")


def counted(read: list[int]) -> Callable[..., Any]:
    """The query, recording the number of rows of each page."""

    def page(*arguments: Any) -> Any:
        found, following = tasks_of_node(*arguments)
        read.append(len(found))
        return found, following

    return page


async def test_a_call_that_no_step_waits_for_is_dropped(node: Node, functions: Functions) -> None:
    """Another node has ended its wait, and its notice was lost. A call that is awaited continues."""
    await node.create_flow("f", PAY)
    for name in ("stays", "ended"):
        await node.start("f", name)
    calls = {
        call.headers["X-Flowserver-Execution"]: call for call in [await functions.next_call("shop/pay") for _ in "12"]
    }
    ended = select(executions.c.execution_id).where(executions.c.name == "ended").scalar_subquery()
    change(node.database, delete(scopes).where(scopes.c.execution_id == ended))
    await node.engine.recovery.sweep()
    await calls["ended"].gone.wait()
    calls["stays"].reply({"paid": True})
    assert await node.output_of("f", "stays") == {"paid": True}


async def test_a_lost_asynchronous_call_is_found_at_the_second_sweep(node: Node, functions: Functions) -> None:
    """Its commit was durable, but reported an error, so the call was not made."""
    lost = invocation_row("lost", "node-1", service="shop", function="pay", created_at=node.engine.clock.now_ms())
    with node.database.write() as connection:
        insert_invocations(connection, [lost])
    await node.engine.recovery.sweep()
    await node.engine.recovery.sweep()
    call = await functions.next_call("shop/pay")
    assert (call.key, call.attempt) == ("lost", 1)
    await node.engine.recovery.sweep()
    await node.engine.recovery.sweep()
    assert len(functions.calls) == 1  # under way, so not lost
    call.reply({})


async def test_ready_steps_continue(node: Node, functions: Functions) -> None:
    """A turn was interrupted, and no message continues it."""
    await node.create_flow("f", PAY + "\n" + LONG)
    await node.start("f", "e")
    call = await functions.next_call("shop/pay")
    change(node.database, update(scopes).values(wait="ready", node_id=None, step_index=5))
    await node.engine.recovery.sweep()
    assert (await node.end_of("f", "e")).status is Status.SUCCEEDED
    await call.gone.wait()  # no step waits for it


async def test_an_undelivered_callback(node: Node, functions: Functions) -> None:
    await node.create_flow("parent", ASK)
    await node.create_flow("child", "- {type: pass, name: p}", "outputMappings: [{target: a, source: 1}]")
    await node.start("parent", "e")
    call = await functions.next_call("shop/pay")
    await node.operations.executions.start("child", name="c")
    await node.end_of("child", "c")
    token = call.event["token"]
    change(
        node.database,
        update(executions).where(executions.c.name == "c").values(callback_token=token, callback_due=True),
    )
    await node.engine.recovery.sweep()
    assert await node.output_of("parent", "e") == {"a": 1}
    with node.database.read() as connection:
        assert list(connection.execute(select(executions.c.callback_due)).scalars()) == [False, False]
    call.reply({})


async def test_a_damaged_callback_fails_its_task_and_delays_nothing(node: Node, functions: Functions) -> None:
    await node.create_flow("parent", ASK)
    await node.create_flow("child", "- {type: pass, name: p}")
    tokens = {}
    for name in ("good", "bad"):
        await node.start("parent", name)
        tokens[name] = (await functions.next_call("shop/pay")).event["token"]
        await node.start("child", name)
        await node.end_of("child", name)
    with node.database.write() as connection:
        for name, token in tokens.items():
            child = (executions.c.name == name) & (executions.c.flow_name == "child")
            connection.execute(update(executions).where(child).values(callback_token=token, callback_due=True))
            ids = select(executions.c.execution_id).where(child)
            if name == "bad":
                documents = execution_documents.c.execution_id.in_(ids)
                connection.execute(update(execution_documents).where(documents).values(output="{"))
        lost = invocation_row("lost", "gone", service="shop", function="pay", created_at=node.engine.clock.now_ms())
        insert_invocations(connection, [lost])
    await node.engine.recovery.sweep()
    assert await node.error_of("parent", "bad") == "FnF.RuntimeError"
    assert await node.output_of("parent", "good") == {}
    assert (await functions.next_call("shop/pay")).key == "lost"


async def test_a_callback_with_a_token_of_another_key_is_dropped(node: Node) -> None:
    await node.create_flow("child", "- {type: pass, name: p}")
    await node.start("child", "c")
    await node.end_of("child", "c")
    change(node.database, update(executions).values(callback_token="not ours", callback_due=True))
    await node.engine.recovery.sweep()
    with node.database.read() as connection:
        assert connection.execute(select(executions.c.callback_due)).scalar_one() is False


async def test_executions_of_a_deleted_flow_are_stopped(node: Node, functions: Functions) -> None:
    await node.create_flow("f", PAY)
    row = await node.start("f", "e")
    call = await functions.next_call("shop/pay")
    await node.operations.flows.delete("f")
    await call.gone.wait()
    query = select(executions.c.status).where(executions.c.execution_id == row.execution_id)
    with node.database.read() as connection:
        assert connection.execute(query).scalar_one() == "Stopped"


@pytest.mark.parametrize("limits", [Limits(turn_steps_max=4)])
async def test_long_runs_need_no_sweep(node: Node) -> None:
    await node.create_flow("f", LONG)
    await node.start("f", "e")
    assert (await node.end_of("f", "e")).status is Status.SUCCEEDED


async def test_a_parked_execution_is_left_alone(node: Node, functions: Functions) -> None:
    await node.create_flow("f", PAY)
    await node.start("f", "e")
    call = await functions.next_call("shop/pay")
    change(node.database, update(scopes).values(local="{"))
    call.reply({})
    row = await node.operations.executions.describe("f", "e", wait_seconds=20)
    assert row.parked_error is not None
    for _ in range(3):
        await node.engine.recovery.sweep()
    assert len(functions.calls) == 1
    assert [event.type for event in await node.history("f", "e")][-1] is EventType.TASK_STARTED


def _key(database: Database) -> tuple[str, int, int]:
    """The only call that node-1 has under way."""
    with database.read() as connection:
        [ref], _ = tasks_of_node(connection, "node-1", 9)
    return ref.execution_id, ref.scope_id, ref.wait_id


async def test_a_failing_commit_does_not_prevent_the_others(
    node: Node, functions: Functions, monkeypatch: pytest.MonkeyPatch
) -> None:
    await node.create_flow("f", PAY)
    refused, fine = [await node.start("f", name) for name in ("refused", "fine")]
    first = [await functions.next_call("shop/pay") for _ in (refused, fine)]
    submit = node.engine.committer.submit

    async def refuse_one(envelope: Envelope, *, by_caller: bool = False) -> Receipt:
        if envelope.execution_id == refused.execution_id:
            raise OperationalError("COMMIT", None, Exception("as the test wants it"))
        return await submit(envelope, by_caller=by_caller)

    monkeypatch.setattr(node.engine.committer, "submit", refuse_one)
    asynchronous = invocation_row(
        "asynchronous", "gone", service="shop", function="pay", created_at=node.engine.clock.now_ms()
    )
    with node.database.write() as connection:
        connection.execute(update(scopes).values(node_id="gone"))
        insert_invocations(connection, [asynchronous])
    node.engine.dispatcher.drop_all()
    for call in first:
        await call.gone.wait()
    await node.engine.recovery.sweep()
    again = {(await functions.next_call("shop/pay")).key for _ in range(2)}
    assert again == {"asynchronous", *(call.key for call in first if call.key.startswith(fine.execution_id))}


async def test_a_sweep_deletes_nonces_that_have_expired(node: Node, clock: ManualClock) -> None:
    """A row for each signed request: without this the table would grow for ever."""
    now = clock.now_ms()
    with node.database.write() as connection:
        for name, expires_at in (("over", now - 1), ("valid", now + 60_000)):
            assert use_nonce(connection, Nonce("ak", name, expires_at))
    await node.engine.recovery.sweep()
    with node.database.read() as connection:
        kept = connection.execute(select(nonces.c.nonce).where(nonces.c.access_key_id == "ak")).scalars().all()
    assert kept == ["valid"]
