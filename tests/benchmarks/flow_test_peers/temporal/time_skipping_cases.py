"""The three cases with Temporal's time-skipping test server."""

from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from temporalio import activity
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ApplicationError
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker
from workflows import Approval, Payment, Trip

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def env() -> AsyncIterator[WorkflowEnvironment]:
    async with await WorkflowEnvironment.start_time_skipping() as started:
        yield started


async def run(env: WorkflowEnvironment, workflow: Any, activities: list[Callable[..., Any]], *args: Any) -> Any:
    queue = str(uuid4())
    async with Worker(env.client, task_queue=queue, workflows=[workflow], activities=activities):
        return await env.client.execute_workflow(workflow.run, *args, id=queue, task_queue=queue)


def recorded(calls: list[str], name: str, errors: list[ApplicationError] | None = None, result: Any = None) -> Any:
    left = list(errors or [])

    @activity.defn(name=name)
    async def mock(*_: Any) -> Any:
        calls.append(name)
        if left:
            raise left.pop(0)
        return result

    return mock


async def failure_of(env: WorkflowEnvironment, workflow: Any, activities: list[Callable[..., Any]]) -> str | None:
    with pytest.raises(WorkflowFailureError) as raised:
        await run(env, workflow, activities)
    assert isinstance(raised.value.cause, ApplicationError)
    return raised.value.cause.type


async def test_paid_at_the_third_call(env: WorkflowEnvironment) -> None:
    calls: list[str] = []
    busy = [ApplicationError("busy", type="Throttled") for _ in range(2)]
    began = await env.get_current_time()
    assert await run(env, Payment, [recorded(calls, "charge", busy, {"paid": True})], "o1") == {"paid": True}
    assert len(calls) == 3
    assert await env.get_current_time() - began >= timedelta(seconds=6)


async def test_not_approved_in_30_days(env: WorkflowEnvironment) -> None:
    began = await env.get_current_time()
    assert await failure_of(env, Approval, [recorded([], "ask")]) == "NotApprovedInTime"
    assert await env.get_current_time() - began >= timedelta(days=30)


async def test_no_flight(env: WorkflowEnvironment) -> None:
    calls: list[str] = []
    sold_out = [ApplicationError("sold out", type="SoldOut")]
    mocks = [recorded(calls, "book_hotel"), recorded(calls, "book_flight", sold_out), recorded(calls, "cancel_hotel")]
    assert await failure_of(env, Trip, mocks) == "TripFailed"
    assert calls == ["book_hotel", "book_flight", "cancel_hotel"]
