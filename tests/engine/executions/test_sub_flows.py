"""Life cycles of sub-flows: their bound of depth, and their stop when the step that owns them no longer waits."""

import asyncio
from collections.abc import Callable

import pytest
from sqlalchemy import select

from flowserver.base.limits import Limits
from flowserver.engine.commit.batch_items import ReceiptKind
from flowserver.engine.executions.recovery import stop_of_ownerless
from flowserver.engine.executions.starting import Started
from flowserver.machine.events import EventType
from flowserver.machine.state import Status
from flowserver.store.executions.listing_of_flow import ExecutionFilter
from flowserver.store.executions.new_executions import NewExecution
from flowserver.store.schema.tables import executions
from tests.engine.nodes import FragileDatabase, Node, running_node
from tests.support.clock import ManualClock
from tests.support.following import follow

WAIT = "- {type: wait, name: w, duration: 1000}"
NAMED = "pattern: sync, serviceParams: {ExecutionName: $.name, Input: {name: $.of}}"
NAMES = {"name": "c", "of": "g"}
CAUGHT = f"{NAMED}, timeoutSeconds: 2, catch: [{{errors: [FnF.ALL], goto: w}}]"


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


async def begin(node: Node, step: str, attributes: str = "", grandchild: str = WAIT) -> None:
    """Start parent/e, whose step `step` starts child/c, whose step starts grandchild/g, which waits."""
    await node.create_flow("grandchild", grandchild)
    await node.create_flow("child", start_of("grandchild", NAMED.replace(", Input: {name: $.of}", "")))
    await node.create_flow("parent", step, attributes)
    await node.start("parent", "e", NAMES)
    await node.reached("parent", "e", EventType.TASK_SUBMITTED)
    await node.reached("child", "c", EventType.TASK_SUBMITTED)


async def assert_stopped(node: Node) -> None:
    for flow, name in (("child", "c"), ("grandchild", "g")):
        row = await node.end_of(flow, name)
        assert (row.status, row.error) == (Status.STOPPED, "FnF.NotAwaited")


BRANCH = "{steps: [{type: wait, name: soon, duration: 1}, {type: fail, name: no}]}"
PARALLEL = f"- {{type: parallel, name: p, branches: [{BRANCH}, {{steps: [{start_of('child', NAMED)[2:]}]}}]}}"


@pytest.mark.parametrize(
    ("step", "attributes", "ends"),
    [
        (start_of("child", f"timeoutSeconds: 2, {NAMED}"), "", True),
        (f"{start_of('child', CAUGHT)}\n{WAIT}", "", False),
        (start_of("child", NAMED), "timeoutSeconds: 2", True),
        (PARALLEL, "", True),
    ],
    ids=["the step times out", "its failure is caught", "the parent times out", "a branch fails"],
)
async def test_a_sub_flow_for_which_no_step_waits_is_stopped(
    node: Node, clock: ManualClock, step: str, attributes: str, ends: bool
) -> None:
    await begin(node, step, attributes)
    node.advance(clock, seconds=3)
    await assert_stopped(node)
    if ends:
        assert (await node.end_of("parent", "e")).status is not Status.SUCCEEDED


async def test_stopping_an_execution_stops_its_sub_flows(node: Node) -> None:
    await begin(node, start_of("child", NAMED))
    await node.operations.executions.stop("parent", "e")
    await assert_stopped(node)


async def test_deleting_a_flow_stops_the_sub_flows_of_its_executions(node: Node) -> None:
    await begin(node, start_of("child", NAMED))
    await node.operations.flows.delete("parent")
    await node.engine.recovery.sweep()
    await assert_stopped(node)


async def test_each_further_attempt_ends_the_one_before(node: Node, clock: ManualClock) -> None:
    retry = "retry: [{errors: [FnF.TaskTimeout], intervalSeconds: 0, maxAttempts: 1}]"
    await node.create_flow("child", WAIT)
    await node.create_flow("parent", start_of("child", f"pattern: sync, timeoutSeconds: 2, {retry}"))
    await node.start("parent", "e")
    await node.reached("parent", "e", EventType.TASK_SUBMITTED)
    node.advance(clock, seconds=3)
    first = await node.reached("parent", "e", EventType.TASK_TIMED_OUT)
    async for event in follow(node.operations, "parent", "e", after_event_id=first.event_id):
        if event.type is EventType.TASK_SUBMITTED:
            break
    node.advance(clock, seconds=3)
    assert await node.error_of("parent", "e") == "FnF.TaskTimeout"
    page = await node.operations.executions.list("child", ExecutionFilter(), next_token=None, limit=None)
    ends = [(await node.end_of("child", row.name)).status for row in page.items]
    assert ends == [Status.STOPPED, Status.STOPPED]


@pytest.mark.parametrize(
    "more",
    [
        f"{NAMED}, childLifecycle: independent",
        NAMED.replace("sync", "requestResponse"),
        NAMED.replace("sync", "waitForCallback"),
    ],
)
async def test_other_sub_flows_run_on(node: Node, more: str) -> None:
    await node.create_flow("child", WAIT)
    await node.create_flow("parent", f"{start_of('child', more)}\n{WAIT}")
    await node.start("parent", "e", NAMES)
    waits_for_child = "requestResponse" not in more
    await node.reached("parent", "e", EventType.TASK_SUBMITTED if waits_for_child else EventType.TASK_SUCCEEDED)
    await node.operations.executions.stop("parent", "e")
    await node.engine.recovery.sweep()
    assert (await node.operations.executions.describe("child", "c")).status is Status.RUNNING


async def test_the_setting_lets_sub_flows_run_on(
    open_database: Callable[[], FragileDatabase], clock: ManualClock
) -> None:
    async with running_node(open_database(), clock, child_lifecycle="independent") as node:
        owned = start_of("child", NAMED.replace("$.name", "$.of") + ", childLifecycle: owned")
        await node.create_flow("child", WAIT)
        await node.create_flow("parent", start_of("child", NAMED))
        await node.create_flow("other", owned)
        for flow in ("parent", "other"):
            await node.start(flow, "e", NAMES)
            await node.reached(flow, "e", EventType.TASK_SUBMITTED)
            await node.operations.executions.stop(flow, "e")
        assert (await node.end_of("child", "g")).error == "FnF.NotAwaited"
        assert (await node.operations.executions.describe("child", "c")).status is Status.RUNNING


async def test_after_a_crash_recovery_stops_the_sub_flow(
    open_database: Callable[[], FragileDatabase], clock: ManualClock
) -> None:
    database = open_database()
    async with running_node(database, clock) as node:
        await begin(node, start_of("child", NAMED))
        # The node dies between the commit of the parent's end and the stop of the child.
        stops_child = select(executions).where(executions.c.flow_name == "child", executions.c.stopped_at.is_not(None))
        database.refuses = lambda connection: connection.execute(stops_child).first() is not None
        await node.operations.executions.stop("parent", "e")
        await database.failed()
        database.crashed = True
    async with running_node(open_database(), clock, node_id="node-2") as node:
        await assert_stopped(node)


async def test_a_stop_that_a_redrive_has_made_pointless_is_stale(node: Node) -> None:
    await node.create_flow("child", WAIT)
    row = await node.start("child", "c")
    receipt = await node.engine.committer.submit(stop_of_ownerless(row.execution_id))
    assert receipt.kind is ReceiptKind.STALE
    assert (await node.operations.executions.describe("child", "c")).status is Status.RUNNING


@pytest.mark.parametrize("ends_by", ["stop", "time-out"])
async def test_a_start_under_way_when_the_wait_ends_starts_nothing(
    node: Node, clock: ManualClock, ends_by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The start waits for the database while the parent's step ends: whichever commits first, no child is left."""
    start, may_start, asked = node.engine.starter.start, asyncio.Event(), asyncio.Event()

    async def late(request: NewExecution, *, by_step: bool = False) -> Started:
        if by_step:
            asked.set()
            await may_start.wait()
        try:
            return await start(request, by_step=by_step)
        finally:
            if by_step:
                answered.set()

    answered = asyncio.Event()
    monkeypatch.setattr(node.engine.starter, "start", late)
    monkeypatch.setattr(node.engine.dispatcher, "cancel", lambda *_, **__: True)
    await node.create_flow("child", WAIT)
    await node.create_flow("parent", start_of("child", "timeoutSeconds: 2, pattern: sync"))
    await node.start("parent", "e")
    await asked.wait()
    if ends_by == "stop":
        await node.operations.executions.stop("parent", "e")
    else:
        node.advance(clock, seconds=3)
    await node.end_of("parent", "e")
    may_start.set()
    await answered.wait()
    assert await count(node, "child") == 0


async def test_the_sub_flows_that_run_on_are_named(node: Node) -> None:
    """Those of a sub-flow that is stopped, too; only flows that the caller may see."""
    await node.create_flow("grandchild", WAIT)
    independent = NAMED.replace(", Input: {name: $.of}", "") + ", childLifecycle: independent"
    await node.create_flow("child", start_of("grandchild", independent))
    await node.create_flow("parent", start_of("child", NAMED))
    row = await node.start("parent", "e", NAMES)
    await node.reached("parent", "e", EventType.TASK_SUBMITTED)
    await node.reached("child", "c", EventType.TASK_SUBMITTED)
    await node.operations.executions.stop("parent", "e")
    await node.end_of("child", "c")
    assert await node.operations.executions.independent_sub_flows(row, "") == ["grandchild/g"]
    assert await node.operations.executions.independent_sub_flows(row, "child") == []
