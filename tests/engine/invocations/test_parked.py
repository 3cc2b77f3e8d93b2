"""Invocations that the server cannot continue are parked: not called any more, visible, restartable, stoppable."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from sqlalchemy import select, update

from flowserver.base.errors import InvalidArgument, InvocationNotExists, InvocationNotParked
from flowserver.machine.invocations.states import InvocationStatus
from flowserver.store.cluster.nodes import PARKED_HOLDER
from flowserver.store.invocations.parking import InvocationHeader
from flowserver.store.schema.invocation_tables import invocations
from flowserver.store.schema.migrating import migrate
from tests.engine.called_functions import PATIENCE_SECONDS, Functions
from tests.engine.executions.test_invocation_submitter import SYNC
from tests.engine.invocations.test_invocations import ended, new, reached, row_of
from tests.engine.nodes import FragileDatabase, Node, running_node, take_for_dead
from tests.engine.test_lost_answers import tried_twice
from tests.support.clock import ManualClock
from tests.support.metrics import metrics_with_counts
from tests.support.postgres import lose_wide_values

S = InvocationStatus
LARGE = b'"%s"' % (b"x" * 20_000)
"""A payload that is not kept in memory until its turn."""
NOT_SAVED = {"settings": '{"retries":99}', "retries": 98}
"""The end of the next pause is out of range for every column, so the attempt's result can never be written."""


@pytest.fixture(autouse=True)
async def registered(node: Node, functions: Functions) -> None:
    await node.register(functions, "shop/pay")


def spoil(node: Node, key: str, **values: Any) -> None:
    with node.database.write() as connection:
        connection.execute(update(invocations).where(invocations.c.invocation_key == key).values(**values))


def fail_by_a_bug(*_: Any) -> None:
    raise KeyError("a bug")


async def parked(node: Node, key: str) -> InvocationHeader:
    """Wait until the invocation is parked and this node holds it no longer."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            await node.engine.committer.write(lambda _: None)
            page = await node.operations.async_invocations.list_parked(next_token=None, limit=None)
            found = next((each for each in page.items if each.invocation_key == key), None)
            if found is not None and not node.engine.invocations.holds(key):
                return found


async def submit_spoilt(node: Node, functions: Functions, key: str, **values: Any) -> None:
    """Submit an invocation whose row is damaged before its turn."""
    await node.operations.functions.put(
        "shop", "pay", url=functions.url("shop/pay"), headers={}, timeout_seconds=None, concurrency_max=1
    )
    for each in ("first", key):
        await node.engine.invocations.submit(new(each, payload=LARGE))
    first = await functions.next_call("shop/pay")
    spoil(node, key, **values)
    first.reply({})


async def test_an_invocation_whose_outcome_cannot_be_written_is_called_once(node: Node, functions: Functions) -> None:
    await submit_spoilt(node, functions, "bad", **NOT_SAVED)
    (await functions.next_call("shop/pay")).fail("Broke")
    found = await parked(node, "bad")
    assert found.status == S.RUNNING
    assert row_of(node, "bad").node_id == PARKED_HOLDER
    for _ in range(3):  # a call may be between two commits: it is lost only if two looks miss it
        await node.engine.recovery.sweep()
    functions.echo("shop/pay")
    await node.engine.invocations.submit(new("good"))
    await ended(node, "good")
    assert functions.called("shop/pay") == [("first", 1), ("bad", 1), ("good", 1)]


async def test_an_invocation_that_fails_in_the_servers_own_code_is_called_once(
    node: Node, functions: Functions, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("flowserver.engine.invocations.runs.outcome_of_attempt", fail_by_a_bug)
        await node.engine.invocations.submit(new("bad"))
        (await functions.next_call("shop/pay")).reply({})
        assert (await parked(node, "bad")).parked_error == "KeyError: 'a bug'"
    for _ in range(3):
        await node.engine.recovery.sweep()
    assert functions.called("shop/pay") == [("bad", 1)]
    functions.echo("shop/pay")
    assert (await node.operations.async_invocations.unpark("shop", "pay", "request-bad")).parked_error is None
    assert (await ended(node, "bad")).state.status is S.SUCCEEDED
    assert functions.called("shop/pay") == [("bad", 1), ("bad", 2)]
    with pytest.raises(InvocationNotParked):
        await node.operations.async_invocations.unpark("shop", "pay", "request-bad")


async def test_a_repeated_unpark_is_reported_once(node: Node, functions: Functions) -> None:
    await submit_spoilt(node, functions, "bad", events="nonsense")
    await parked(node, "bad")
    unpark = node.operations.async_invocations.unpark
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(node.engine.invocations, "take_over", lambda _: None)  # or it would be parked again
        first, second = await tried_twice(
            node,
            select(invocations).where(invocations.c.invocation_key == "bad", invocations.c.node_id != PARKED_HOLDER),
            *(unpark("shop", "pay", "request-bad") for _ in range(2)),
        )
    assert (first.parked_error, type(second)) == (None, InvocationNotParked)


async def test_a_repeated_stop_is_not_refused_because_it_has_ended_the_invocation(
    node: Node, functions: Functions, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("flowserver.engine.invocations.runs.outcome_of_attempt", fail_by_a_bug)
        await node.engine.invocations.submit(new("bad"))
        (await functions.next_call("shop/pay")).reply({})
        await parked(node, "bad")
    stops = [node.engine.invocations.stop("shop", "pay", "request-bad") for _ in range(2)]
    is_stopped = select(invocations).where(invocations.c.status == str(S.STOPPED))
    first, second = await tried_twice(node, is_stopped, *stops)
    assert first.state.status is S.STOPPED
    assert isinstance(second, InvalidArgument)


async def test_an_unreadable_invocation_waits_until_its_row_is_repaired(node: Node, functions: Functions) -> None:
    await submit_spoilt(node, functions, "bad", events="nonsense")
    assert "InvocationDamaged" in ((await parked(node, "bad")).parked_error or "")
    unpark = node.operations.async_invocations.unpark
    await unpark("shop", "pay", "request-bad")
    assert "InvocationDamaged" in ((await parked(node, "bad")).parked_error or "")
    spoil(node, "bad", events="[]")
    functions.echo("shop/pay")
    await unpark("shop", "pay", "request-bad")
    assert (await ended(node, "bad")).state.status is S.SUCCEEDED


async def test_a_restart_of_the_server_leaves_it_parked(
    node: Node, functions: Functions, open_database: Callable[[], FragileDatabase], clock: ManualClock
) -> None:
    database = open_database()
    async with running_node(database, clock, node_id="dies") as dies:
        await submit_spoilt(dies, functions, "bad", **NOT_SAVED)
        (await functions.next_call("shop/pay")).fail("Broke")
        await parked(dies, "bad")
        database.crashed = True
    take_for_dead(node.database, "dies")
    for _ in range(3):
        await node.engine.recovery.sweep()
    assert row_of(node, "bad").node_id == PARKED_HOLDER
    assert functions.called("shop/pay") == [("first", 1), ("bad", 1)]
    page = await node.operations.async_invocations.list_parked(next_token=None, limit=None)
    assert [each.invocation_id for each in page.items] == ["request-bad"]
    assert "flowserver_parked_invocations 1.0" in await metrics_with_counts(node.operations)


@pytest.mark.parametrize("spoilt", [NOT_SAVED, {"events": "nonsense"}], ids=["unwritable", "unreadable"])
async def test_a_parked_invocation_can_be_stopped(node: Node, functions: Functions, spoilt: dict[str, Any]) -> None:
    await submit_spoilt(node, functions, "bad", **spoilt)
    functions.scripts["shop/pay"] = lambda call: call.fail("Broke")
    await parked(node, "bad")
    await node.operations.async_invocations.stop("shop", "", "pay", "request-bad")
    stopped = row_of(node, "bad")
    assert (stopped.state.status, stopped.parked_error, stopped.payload) == (S.STOPPED, None, LARGE)


async def test_the_end_of_its_execution_ends_a_parked_invocation(
    node: Node, functions: Functions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flowserver.engine.invocations.runs.outcome_of_attempt", fail_by_a_bug)
    await node.create_flow("f", SYNC)
    await node.start("f", "e")
    call = await functions.next_call("shop/pay")
    call.reply({})
    found = await parked(node, call.key)
    assert (found.flow_name, found.execution_name, found.step_name) == ("f", "e", "work")
    await node.operations.executions.stop("f", "e")
    await reached(node, call.key, lambda row: row.state.is_over)
    assert row_of(node, call.key).state.status is S.STOPPED


async def test_an_invocation_that_does_not_exist(node: Node) -> None:
    with pytest.raises(InvocationNotExists):
        await node.operations.async_invocations.unpark("shop", "pay", "unknown")


# Rows that PostgreSQL itself cannot read


@pytest.fixture
async def lone_node(postgres_url: str, clock: ManualClock) -> AsyncIterator[Node]:
    """A node over a database whose tables may be damaged."""
    database = FragileDatabase(postgres_url)
    migrate(database)
    async with running_node(database, clock) as node:
        yield node
    database.close()


async def test_rows_that_the_database_cannot_read_stop_no_other(
    lone_node: Node, postgres_url: str, functions: Functions
) -> None:
    node = lone_node
    await node.operations.functions.put(
        "shop", "pay", url=functions.url("shop/pay"), headers={}, timeout_seconds=None, concurrency_max=1
    )
    await node.engine.invocations.submit(new("first"))
    first = await functions.next_call("shop/pay")
    for key in ("bad", "worse"):
        await node.engine.invocations.submit(new(key, payload=secrets.token_bytes(30_000)))
    await node.engine.invocations.submit(new("good"))
    lose_wide_values(postgres_url, "invocations")
    first.reply({})
    functions.echo("shop/pay")
    for key in ("bad", "worse"):
        assert (await parked(node, key)).parked_error
    assert (await ended(node, "good")).state.status is S.SUCCEEDED
    await node.operations.async_invocations.stop("shop", "", "pay", "request-bad")
    await node.engine.invocations.stop_all(["worse", "good"])
    for key in ("bad", "worse"):
        assert (row_of(node, key).state.status, row_of(node, key).payload) == (S.STOPPED, b"")
    assert functions.called("shop/pay") == [("first", 1), ("good", 1)]
