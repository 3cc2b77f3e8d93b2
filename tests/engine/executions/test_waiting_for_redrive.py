"""With a setting of their flow, executions wait for a redrive instead of failing, and the rows record it."""

import asyncio
from collections.abc import Callable

import pytest
from sqlalchemy import func, select

from flowserver.base.errors import ExecutionNotRedrivable
from flowserver.base.limits import Limits
from flowserver.engine.commit import batch_redrives
from flowserver.machine.events import EventType
from flowserver.machine.state import Status
from flowserver.machine.step_summary import Iterations
from flowserver.operations.flows import FlowChange
from flowserver.operations.redrive_plans import RedriveWish
from flowserver.store.executions.listing_of_flow import ExecutionFilter
from flowserver.store.executions.shown_executions import ExecutionRow
from flowserver.store.integrity.invariant import violations
from flowserver.store.schema.tables import executions, kept_scopes, scopes
from tests.engine.called_functions import Functions
from tests.engine.executions.test_redrive import ASK, PAY, RESERVE, TWO, Shop, changed, left, redrive, refusal
from tests.engine.held_threads import Gate
from tests.engine.nodes import FragileDatabase, Node, definition, running_node
from tests.support.clock import ManualClock

LOOP = f"""\
- type: foreach
  name: all
  iterationMapping: {{collection: $.items, item: item}}
  steps: [{PAY[2:]}]
"""


@pytest.fixture
async def shop(node: Node, functions: Functions) -> Shop:
    await node.register(functions, "shop/reserve", "shop/pay", "shop/label")
    return Shop(functions, "pay")


async def create(node: Node, steps: str, attributes: str = "") -> None:
    text = definition(steps, attributes)
    await node.operations.flows.create("f", text, on_retries_exhausted="waitForRedrive")


async def waits(node: Node, step: str = "pay") -> ExecutionRow:
    """An execution of which a step waits."""
    await node.reached("f", "e", EventType.STEP_WAITING_FOR_REDRIVE, step)
    return await node.operations.executions.describe("f", "e")


def waiting_steps(node: Node) -> int | None:
    with node.database.read() as connection:
        assert connection.execute(select(violations)).all() == []
        found: int | None = connection.execute(select(executions.c.waiting_steps)).scalar_one()
        count = select(func.count()).select_from(scopes).where(scopes.c.wait == "redrive")
        assert connection.execute(count).scalar_one() == (found or 0)
    return found


async def test_it_waits_shows_the_reason_and_continues_at_the_failed_step(
    node: Node, shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    await create(node, TWO)
    with caplog.at_level("INFO", "flowserver.engine.engine"):
        await node.start("f", "e")
        row = await waits(node)
    assert "flow f, execution e waits for a redrive: step pay failed with E1" in caplog.messages
    assert (row.status, row.error, row.failed_step) == (Status.RUNNING, "E1", "pay")
    assert waiting_steps(node) == 1
    assert (await node.operations.redrives.plan("f", "e", RedriveWish())).again[0].path == "pay"
    shop.broken.clear()
    row = await redrive(node)
    assert (row.redrive_count, row.error, row.failed_step) == (1, None, None)
    assert await node.output_of("f", "e") == {"reserve": 1, "pay": 1}
    assert shop.calls == {"reserve": 1, "pay": 2}
    assert (waiting_steps(node), left(node)) == (0, [0, 0, 0, 0, 0])


async def test_the_setting_at_the_start_counts(node: Node, shop: Shop) -> None:
    await node.create_flow("f", PAY)
    await node.start("f", "e")
    assert (await node.end_of("f", "e")).status is Status.FAILED
    assert waiting_steps(node) is None
    await node.operations.flows.update("f", FlowChange(on_retries_exhausted="waitForRedrive"))
    await redrive(node)
    assert (await node.end_of("f", "e")).status is Status.FAILED
    await node.start("f", "e2")
    await node.reached("f", "e2", EventType.STEP_WAITING_FOR_REDRIVE)


async def test_iterations_that_failed_wait_while_the_others_end(node: Node, shop: Shop) -> None:
    await create(node, LOOP)
    shop.broken = {"pay2", "pay4"}
    await node.start("f", "e", {"items": [1, 2, 3, 4]})
    await waits(node)
    while waiting_steps(node) != 2:
        await node.reached("f", "e", EventType.ITERATION_EXITED)
    plan = await node.operations.redrives.plan("f", "e", RedriveWish())
    assert sorted(each.path for each in plan.again) == ["all[1].pay", "all[3].pay"]
    shop.broken.clear()
    await redrive(node)
    assert (await node.end_of("f", "e")).status is Status.SUCCEEDED
    assert shop.calls == {"pay": 6}


async def test_it_is_redriven_with_another_definition_while_it_waits(node: Node, shop: Shop) -> None:
    await create(node, LOOP)
    shop.broken = {"pay2", "pay4"}
    await node.start("f", "e", {"items": [1, 2, 3, 4]})
    while (await waits(node)).waiting_steps != 2:
        await node.reached("f", "e", EventType.ITERATION_EXITED)
    other = LOOP.replace("functions/pay", "functions/label")
    new = f"- {{type: parallel, name: new, branches: [{{steps: [{{type: pass, name: p}}]}}]}}\n{other}"
    await node.operations.flows.update("f", changed(new))
    del shop.functions.scripts["shop/label"]
    row = await redrive(node, definition="current")
    assert row.redrive_count == 1
    found = await node.operations.current_steps.find(row)
    assert {each.path for each in found.steps} == {"all[1].pay", "all[3].pay"}, "rows name lists of the new definition"
    for _ in range(2):
        (await shop.functions.next_call("shop/label")).reply({})
    assert (await node.end_of("f", "e")).status is Status.SUCCEEDED
    assert shop.calls == {"pay": 4, "label": 2}
    assert (waiting_steps(node), left(node)) == (0, [0, 0, 0, 0, 0])
    steps = (await node.operations.step_summaries.summarize("f", "e", next_token=None, limit=None)).items
    assert [each.iterations for each in steps if each.iterations] == [Iterations(total=4, done=4)]


async def test_it_is_redriven_from_an_earlier_step_while_it_waits(node: Node, shop: Shop) -> None:
    await create(node, TWO)
    await node.start("f", "e")
    await waits(node)
    shop.broken.clear()
    assert (await redrive(node, from_step="reserve")).redrive_count == 1
    assert (await node.end_of("f", "e")).status is Status.SUCCEEDED
    assert shop.calls == {"reserve": 2, "pay": 2}
    assert left(node) == [0, 0, 0, 0, 0]


async def test_a_request_that_waits_for_its_end_shows_the_redrive_and_the_definition(node: Node, shop: Shop) -> None:
    await create(node, PAY)
    starting = asyncio.create_task(node.operations.executions.start_sync("f", name="e", input_text="{}"))
    while not (
        found := (await node.operations.executions.list("f", ExecutionFilter(), next_token=None, limit=1)).items
    ):
        await node.engine.reader.ask(lambda _: None)
    await node.reached("f", found[0].name, EventType.STEP_WAITING_FOR_REDRIVE)
    await node.operations.flows.update("f", changed(f"{PAY}\n- {{type: succeed, name: done}}"))
    shop.broken.clear()
    await redrive(node, found[0].name, definition="current")
    row = await starting
    assert (row.status, row.redrive_count) == (Status.SUCCEEDED, 1)
    assert row.redriven_at is not None
    assert "done" in row.definition


async def test_it_does_not_start_over_while_another_step_runs(node: Node, shop: Shop) -> None:
    branches = f"[{{steps: [{PAY[2:]}]}}, {{steps: [{{type: wait, name: w, duration: 60}}]}}]"
    await create(node, f"- {{type: parallel, name: both, branches: {branches}}}")
    await node.start("f", "e")
    await waits(node)
    for wish in ({"from_step": "both"}, {"definition": "current"}):
        await node.operations.flows.update("f", changed(PAY))
        told = await refusal(node, **wish)
        assert "it runs both[1].w; to go back to a step" in told
        assert "(flowserver executions stop f/e)" in told
    row = await node.operations.executions.stop("f", "e")
    assert (row.status, waiting_steps(node)) == (Status.STOPPED, 0)
    with node.database.read() as connection:
        failed = select(kept_scopes.c.has_failed).order_by(kept_scopes.c.scope_id)
        assert connection.execute(failed).scalars().all() == [0, 1, 0]


async def test_a_waiting_execution_that_does_not_fit_stays_as_it_is(node: Node, shop: Shop) -> None:
    await create(node, PAY)
    await node.start("f", "e")
    await waits(node)
    await node.operations.flows.update("f", changed(RESERVE))
    assert "step pay is not in the definition" in await refusal(node, definition="current")
    assert waiting_steps(node) == 1
    shop.broken.clear()
    await redrive(node)
    assert await node.output_of("f", "e") == {"pay": 1}


async def test_the_step_that_waits_may_get_another_input(node: Node, shop: Shop) -> None:
    await create(node, PAY)
    await node.start("f", "e")
    await waits(node)
    shop.broken.clear()
    await redrive(node, input={"item": 7})
    assert await node.output_of("f", "e") == {"pay": 7}


async def test_a_redrive_is_made_once_for_its_client_token(node: Node, shop: Shop) -> None:
    await create(node, PAY)
    await node.start("f", "e")
    await waits(node)
    for _ in range(2):
        assert (await redrive(node, client_token="once")).redrive_count == 1


async def test_an_execution_that_runs_and_waits_for_nothing_is_refused(node: Node, shop: Shop) -> None:
    await create(node, RESERVE[:-1] + ", pattern: waitForCallback}")
    await node.start("f", "e")
    with pytest.raises(ExecutionNotRedrivable, match="it is running"):
        await redrive(node)


async def test_its_time_limit_ends_the_wait(node: Node, shop: Shop, clock: ManualClock) -> None:
    await create(node, PAY, "timeoutSeconds: 60")
    await node.start("f", "e")
    await waits(node)
    node.advance(clock, seconds=40)
    await redrive(node)
    await node.reached("f", "e", EventType.EXECUTION_REDRIVEN)
    node.advance(clock, seconds=40)
    assert waiting_steps(node) in (0, 1)
    node.advance(clock, seconds=30)
    row = await node.end_of("f", "e")
    assert (row.status, row.error) == (Status.TIMED_OUT, "FnF.ExecutionTimeout")


async def test_a_waiting_sub_flow_is_redriven_itself_and_its_parent_continues(node: Node, shop: Shop) -> None:
    await create(node, PAY)
    await node.create_flow("parent", "- {type: task, name: sub, resourceArn: 'acs:fnf:::flow/f', pattern: sync}")
    await node.start("parent", "p")
    await node.reached("parent", "p", EventType.TASK_SUBMITTED)
    (child,) = (await node.operations.executions.list("f", ExecutionFilter(), next_token=None, limit=None)).items
    await node.reached("f", child.name, EventType.STEP_WAITING_FOR_REDRIVE)
    shop.broken.clear()
    await redrive(node, child.name)
    assert (await node.end_of("parent", "p")).status is Status.SUCCEEDED


async def test_the_count_of_running_executions_is_not_raised(node: Node, shop: Shop) -> None:
    await create(node, PAY)
    await node.start("f", "e")
    await waits(node)
    await redrive(node)
    assert node.engine.starter._running == 1


@pytest.mark.parametrize("limits", [Limits(running_executions_max=1)])
async def test_it_is_redriven_when_no_more_executions_may_run(node: Node, shop: Shop) -> None:
    await create(node, PAY)
    await node.start("f", "e")
    await waits(node)
    shop.broken.clear()
    bulk = await node.operations.redrives.redrive_many("f", RedriveWish(), ExecutionFilter(waiting_for_redrive=True))
    assert bulk.redriven == ["e"]
    assert await node.output_of("f", "e") == {"pay": 1}


async def test_it_waits_over_a_restart(
    open_database: Callable[[], FragileDatabase], clock: ManualClock, functions: Functions, limits: Limits
) -> None:
    database = open_database()
    async with running_node(database, clock, limits=limits) as node:
        await node.register(functions, "shop/reserve", "shop/pay", "shop/label")
        shop = Shop(functions, "pay")
        await create(node, PAY)
        await node.start("f", "e")
        await waits(node)
    async with running_node(database, clock, node_id="node-2", limits=limits) as node:
        assert waiting_steps(node) == 1
        shop.broken.clear()
        await redrive(node)
        assert await node.output_of("f", "e") == {"pay": 1}


async def test_the_steps_that_it_is_at_are_shown(node: Node, shop: Shop) -> None:
    """Branches that wait for a redrive, for a retry, for a report with a token, and for a sub-flow."""
    retry = ", retry: [{errors: [E1], intervalSeconds: 60}]}"
    sub = "{type: task, name: sub, resourceArn: 'acs:fnf:::flow/slow', pattern: sync}"
    steps = [PAY[2:], PAY[2:-1].replace("name: pay", "name: again") + retry, ASK[2:].replace("pay", "label"), sub]
    await node.create_flow("slow", "- {type: wait, name: w, duration: 60}")
    await create(
        node, f"- {{name: p, type: parallel, branches: [{', '.join(f'{{steps: [{each}]}}' for each in steps)}]}}"
    )
    await node.start("f", "e")
    row = await waits(node)
    await node.reached("f", "e", EventType.TASK_FAILED, "again")
    for step in ("label", "sub"):
        await node.reached("f", "e", EventType.TASK_SUBMITTED, step)
    found = await node.operations.current_steps.find(row)
    assert {each.path: str(each.standing) for each in found.steps} == {
        "p[0].pay": "WaitingForRedrive",
        "p[1].again": "Retrying",
        "p[2].label": "WaitingForToken",
        "p[3].sub": "WaitingForSubFlow",
    }
    assert (found.count, found.steps[0].path) == (4, "p[0].pay")
    assert all(each.since is not None for each in found.steps)


async def test_a_redrive_that_cannot_be_made_undoes_no_report_of_the_same_batch(
    node: Node, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def prepare(*_: object) -> None:
        raise LookupError("no such thing")

    asking = ASK[2:].replace("name: pay", "name: ask").replace("functions/pay", "functions/label")
    steps = f"- {{type: parallel, name: both, branches: [{{steps: [{PAY[2:]}]}}, {{steps: [{asking}]}}]}}"
    await create(node, steps)
    await node.start("f", "e")
    await waits(node)
    await node.reached("f", "e", EventType.TASK_SUBMITTED, "ask")
    [task] = (await node.operations.tasks.list_waiting(None, older_than_seconds=0, next_token=None, limit=None)).items
    monkeypatch.setattr(batch_redrives, "prepare_redrive", prepare)
    gate = Gate()
    gated = asyncio.create_task(node.engine.committer.write(gate))
    await gate.reached.wait()
    reporting = asyncio.create_task(node.operations.tasks.report_succeeded(task.token, "{}"))
    again = asyncio.create_task(redrive(node))
    while node.engine.committer.pending < 2:
        await node.engine.reader.ask(lambda _: None)
    gate.open()
    event_id = await reporting
    with pytest.raises(ExecutionNotRedrivable, match="no such thing"):
        await again
    await gated
    assert (await node.history("f", "e"))[event_id - 1].type == EventType.TASK_SUCCEEDED
    assert waiting_steps(node) == 1
