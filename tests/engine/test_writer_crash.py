"""A crashing writer: every caller gets an error, and the process is notified."""

import asyncio
from collections.abc import Callable

import pytest
from sqlalchemy import Connection

from flowserver.base.errors import MessageNotExist
from flowserver.engine.commit.committer import WriterCrashed
from flowserver.engine.commit.fair_queue import FairQueue
from flowserver.invokers.outcomes import Returned
from flowserver.machine.state import Status
from flowserver.operations.queues import QueueAttributes
from tests.engine.called_functions import Functions
from tests.engine.nodes import PATIENCE_SECONDS, FragileDatabase, running_node
from tests.support.clock import ManualClock


async def test_a_writer_that_crashes_leaves_no_caller_waiting(
    open_database: Callable[[], FragileDatabase],
    clock: ManualClock,
    functions: Functions,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither for an execution, nor for a message or a function."""
    crashes: list[bool] = []
    async with running_node(open_database(), clock) as node:
        node.engine.on_crash = lambda: crashes.append(True)
        await node.register(functions, "shop/pay")
        await node.create_flow("f", "- {type: wait, name: w, duration: 60}")
        await node.start("f", "e")
        operations = node.operations
        await operations.queues.create("q", QueueAttributes())
        waiting = asyncio.create_task(operations.executions.describe("f", "e", wait_seconds=PATIENCE_SECONDS))
        polling = asyncio.create_task(operations.queues.receive("q", wait_seconds=30))
        calling = asyncio.create_task(operations.invocations.invoke("shop", "", "pay", b"{}", request_id="r"))
        await functions.next_call("shop/pay")
        monkeypatch.setattr(FairQueue, "take", lambda _: 1 // 0)
        with pytest.raises(WriterCrashed):
            await node.engine.committer.write(_nothing)
        assert (await waiting).status is Status.RUNNING
        with pytest.raises(MessageNotExist):
            await polling
        called = await calling
        assert isinstance(called, Returned)
        assert b"the server stopped before it replied" in called.payload
    assert crashes == [True]


def _nothing(_: Connection) -> None:
    """No change."""
