"""Life cycles of sub-flows: their bound of depth, and their stop when the step that owns them no longer waits."""

import pytest

from flowserver.base.limits import Limits
from flowserver.machine.events import EventType
from flowserver.machine.state import Status
from flowserver.store.executions.listing_of_flow import ExecutionFilter
from tests.engine.nodes import Node


def start_of(flow: str, more: str = "pattern: sync") -> str:
    return f"- {{type: task, name: sub, resourceArn: 'acs:fnf:::flow/{flow}', {more}}}"


async def count(node: Node, flow: str) -> int:
    return len((await node.operations.executions.list(flow, ExecutionFilter(), next_token=None, limit=None)).items)


@pytest.mark.parametrize("limits", [Limits(sub_flow_depth_max=3)])
@pytest.mark.parametrize("other", ["own", "other"])
async def test_a_flow_that_starts_itself_ends(node: Node, other: str) -> None:
    await node.create_flow("own", start_of(other))
    await node.create_flow("other", start_of("own"))
    await node.start("own", "e")
    row = await node.end_of("own", "e")
    assert (row.status, row.error) == (Status.FAILED, "FnF.SubFlowTooDeep")
    assert "limit sub_flow_depth_max" in str(row.cause)
    assert await count(node, "own") + await count(node, "other") == 4


NEXT = "serviceParams: {ExecutionName: $.name, Input: $.next}"
BY_ACTION = f"- {{type: task, name: sub, action: 'fnf:StartExecution', {NEXT.replace('{', '{FlowName: own, ', 1)}}}"


@pytest.mark.parametrize("limits", [Limits(sub_flow_depth_max=2)])
@pytest.mark.parametrize(
    ("step", "begun", "error"),
    [
        (start_of("own", f"pattern: requestResponse, {NEXT}"), EventType.TASK_SUCCEEDED, "FnF.SubFlowTooDeep"),
        (start_of("own", f"pattern: waitForCallback, {NEXT}"), EventType.TASK_SUBMITTED, "FnF.SubFlowTooDeep"),
        (BY_ACTION, EventType.TASK_SUCCEEDED, "fnf.SubFlowTooDeep"),
    ],
)
async def test_a_flow_that_starts_itself_without_waiting_ends(
    node: Node, step: str, begun: EventType, error: str
) -> None:
    await node.create_flow("own", step)
    await node.start("own", "a", {"name": "b", "next": {"name": "c", "next": {"name": "d", "next": {}}}})
    for name in ("a", "b"):
        await node.reached("own", name, begun)
    assert await node.error_of("own", "c") == error
    assert await count(node, "own") == 3
