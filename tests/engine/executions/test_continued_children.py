"""A redrive goes down into the executions of sub-flows; further attempts start them under further names."""

from asyncio import InvalidStateError
from collections import Counter
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from sqlalchemy import func, select, update

from flowserver.base.json_values import load_json
from flowserver.machine.events import EventType
from flowserver.machine.state import Status
from flowserver.operations.flows import FlowChange
from flowserver.operations.redrive_plans import RedriveWish
from flowserver.operations.redrives import ExecutionEndReported
from flowserver.store.executions.listing_of_flow import ExecutionFilter
from flowserver.store.integrity.invariant import violations
from flowserver.store.schema.tables import execution_documents, executions, kept_scopes
from tests.engine.called_functions import Call, Functions
from tests.engine.nodes import Node

CALL = "type: task, resourceArn: 'acs:fc:::services/shop/functions/{}'"
CHARGE = f"- {{name: charge, {CALL.format('charge')}}}"
SHIP = f"- {{name: ship, {CALL.format('ship')}}}"
RETRY = "retry: [{errors: [FnF.ALL], maxAttempts: 2, intervalSeconds: 0}]"
NAMED = "serviceParams: {ExecutionName: $.name}"


def sub(flow: str = "child", more: str = "") -> str:
    return f"- {{type: task, name: sub, resourceArn: 'acs:fnf:::flow/{flow}', pattern: sync{more and ', ' + more}}}"


class Shop:
    """`charge` always works; `ship` fails with E1 while it is broken."""

    def __init__(self, functions: Functions) -> None:
        self.is_broken = True
        self.functions = functions
        functions.scripts["shop/charge"] = lambda call: call.reply({"charged": True})
        functions.scripts["shop/ship"] = self._ship

    def _ship(self, call: Call) -> None:
        if call.event.get("hold"):
            return  # it never answers
        if self.is_broken:
            call.fail("E1")
        else:
            call.reply({"shipped": True})

    @property
    def calls(self) -> Counter[str]:
        return Counter(call.function.removeprefix("shop/") for call in self.functions.calls)


@pytest.fixture
async def shop(node: Node, functions: Functions) -> Shop:
    await node.register(functions, "shop/charge", "shop/ship")
    await node.create_flow("child", f"{CHARGE}\n{SHIP}")
    return Shop(functions)


async def redrive(node: Node, name: str = "e", flow: str = "parent", **wish: Any) -> None:
    await node.operations.redrives.redrive(flow, name, RedriveWish(**wish))


async def names(node: Node, flow: str = "child") -> list[str]:
    rows = (await node.operations.executions.list(flow, ExecutionFilter(), next_token=None, limit=None)).items
    return sorted(row.name for row in rows)


async def continued(node: Node, flow: str = "parent", name: str = "e") -> list[str | None]:
    """By attempt of the sub-flow step, the execution that it continued."""
    events = [each for each in await node.history(flow, name) if each.type is EventType.TASK_SCHEDULED]
    return [load_json(each.detail).get("continues") for each in events]


def broken_rules(node: Node) -> int:
    with node.database.read() as connection:
        return connection.execute(select(func.count()).select_from(violations)).scalar_one()


# Names


async def test_a_retry_starts_under_a_name_of_its_own_and_keeps_the_error(node: Node, shop: Shop) -> None:
    await node.create_flow("parent", sub(more=f"{NAMED}, {RETRY}"))
    await node.start("parent", "e", {"name": "run"})
    assert await node.error_of("parent", "e") == "E1"
    assert await names(node) == ["run", "run-2", "run-3"]


async def test_a_long_name_is_cut(node: Node, shop: Shop) -> None:
    long = "n" * 128
    await node.create_flow("parent", sub(more=f"{NAMED}, {RETRY}"))
    await node.start("parent", "e", {"name": long})
    assert await node.error_of("parent", "e") == "E1"
    assert await names(node) == sorted([long, f"{long[:126]}-2", f"{long[:126]}-3"])


async def test_a_further_name_that_is_taken_is_passed_over(node: Node, shop: Shop) -> None:
    await node.start("child", "run-2")
    await node.create_flow("parent", sub(more=f"{NAMED}, {RETRY}"))
    await node.start("parent", "e", {"name": "run"})
    assert await node.error_of("parent", "e") == "E1"
    assert await names(node) == ["run", "run-2", "run-3", "run-4"]


async def test_a_name_of_another_execution_is_refused_in_each_attempt(node: Node, shop: Shop) -> None:
    await node.start("child", "run")
    await node.end_of("child", "run")
    await node.create_flow("parent", sub(more=f"{NAMED}, {RETRY}"))
    await node.start("parent", "e", {"name": "run"})
    assert await node.error_of("parent", "e") == "FnF.ExecutionAlreadyExists"
    assert await names(node) == ["run"]


async def test_a_child_named_after_a_generated_name_is_retried(node: Node, shop: Shop) -> None:
    await node.create_flow("parent", sub(more=f"{NAMED}, {RETRY}"))
    name = "0e5dd3bb-6fbd-4b1c-8f5d-2f2f3b9f4c11"
    await node.start("parent", "e", {"name": name})
    assert await node.error_of("parent", "e") == "E1"
    assert await names(node) == [name, f"{name}-2", f"{name}-3"]


# Redrives


@pytest.mark.parametrize("more", ["", NAMED])
async def test_a_redrive_continues_the_failed_child(node: Node, shop: Shop, more: str) -> None:
    await node.create_flow("parent", sub(more=more))
    await node.start("parent", "e", {"name": "run"})
    assert await node.error_of("parent", "e") == "E1"
    shop.is_broken = False
    await redrive(node)
    assert await node.output_of("parent", "e") == {"charged": True, "shipped": True}
    assert shop.calls == {"charge": 1, "ship": 2}
    (name,) = await names(node)
    assert await continued(node) == [None, f"child/{name}"]
    assert (await node.end_of("child", name)).redrive_count == 1
    assert broken_rules(node) == 0


async def test_a_redrive_goes_down_to_the_deepest_execution(node: Node, shop: Shop) -> None:
    await node.create_flow("middle", sub())
    await node.create_flow("parent", sub("middle"))
    await node.start("parent", "e")
    assert await node.error_of("parent", "e") == "E1"
    for _ in range(2):
        await redrive(node)
        assert await node.error_of("parent", "e") == "E1"
    shop.is_broken = False
    await redrive(node)
    assert await node.output_of("parent", "e") == {"charged": True, "shipped": True}
    assert shop.calls == {"charge": 1, "ship": 4}
    assert len(await names(node, "middle")) == len(await names(node)) == 1


async def test_a_redrive_starts_a_new_child_if_that_is_asked_for(node: Node, shop: Shop) -> None:
    await node.create_flow("parent", sub(more=NAMED))
    await node.start("parent", "e", {"name": "run"})
    await node.end_of("parent", "e")
    shop.is_broken = False
    await redrive(node, children="new")
    await node.output_of("parent", "e")
    assert await names(node) == ["run", "run-2"]
    assert shop.calls == {"charge": 2, "ship": 2}


async def test_a_retry_after_a_redrive_starts_a_further_child(node: Node, shop: Shop) -> None:
    await node.create_flow("parent", sub(more=f"{NAMED}, {RETRY}"))
    await node.start("parent", "e", {"name": "run"})
    await node.end_of("parent", "e")
    await redrive(node)
    assert await node.error_of("parent", "e") == "E1"
    assert await continued(node) == [None, None, None, "child/run-3", None, None]
    assert await names(node) == ["run", "run-2", "run-3", "run-4", "run-5"]


async def test_a_child_that_was_deleted_is_started_anew(node: Node, shop: Shop) -> None:
    await node.create_flow("parent", sub(more=NAMED))
    await node.start("parent", "e", {"name": "run"})
    await node.end_of("parent", "e")
    with node.database.write() as connection:
        child = executions.c.flow_name == "child"
        for table in (kept_scopes, executions):
            of_child = select(executions.c.execution_id).where(child)
            connection.execute(table.delete().where(table.c.execution_id.in_(of_child)))
    shop.is_broken = False
    await redrive(node)
    assert await node.output_of("parent", "e") == {"charged": True, "shipped": True}
    assert await names(node) == ["run"]


async def test_a_child_whose_state_was_not_kept_is_started_anew(node: Node, shop: Shop) -> None:
    await node.create_flow("parent", sub(more=NAMED))
    await node.start("parent", "e", {"name": "run"})
    await node.end_of("parent", "e")
    with node.database.write() as connection:
        of_child = select(executions.c.execution_id).where(executions.c.flow_name == "child")
        connection.execute(kept_scopes.delete().where(kept_scopes.c.execution_id.in_(of_child)))
    shop.is_broken = False
    await redrive(node)
    assert await node.output_of("parent", "e") == {"charged": True, "shipped": True}
    assert await names(node) == ["run", "run-2"]


async def test_the_child_itself_is_redriven_through_its_parent(node: Node, shop: Shop) -> None:
    await node.create_flow("middle", sub())
    await node.create_flow("parent", sub("middle"))
    await node.start("parent", "e")
    await node.end_of("parent", "e")
    (name,) = await names(node)
    with pytest.raises(ExecutionEndReported) as refused:
        await redrive(node, name, "child")
    assert refused.value.redrive_instead == "parent/e"


async def test_a_child_that_runs_or_is_being_stopped_continues(node: Node, functions: Functions, shop: Shop) -> None:
    calls: list[Call] = []
    functions.scripts["shop/ship"] = calls.append
    await node.create_flow("parent", sub(more=NAMED))
    await node.start("parent", "e", {"name": "run"})
    await node.reached("parent", "e", EventType.TASK_SUBMITTED)
    await node.reached("child", "run", EventType.TASK_STARTED, "ship")
    await node.operations.executions.stop("parent", "e")
    shop.is_broken = False
    functions.scripts["shop/ship"] = shop._ship
    await redrive(node)
    for call in calls:
        with suppress(InvalidStateError):  # the call was dropped with its execution's stop
            call.reply({"shipped": True})
    assert await node.output_of("parent", "e") == {"charged": True, "shipped": True}
    assert await names(node) == ["run"]
    assert shop.calls["charge"] == 1
    assert broken_rules(node) == 0


async def test_the_result_of_a_child_that_has_succeeded_is_taken(node: Node, shop: Shop) -> None:
    await node.create_flow("parent", sub())
    await node.start("parent", "e")
    await node.end_of("parent", "e")
    (name,) = await names(node)
    with node.database.write() as connection:  # as if it had succeeded after its step had timed out
        (child_id,) = connection.execute(select(executions.c.execution_id).where(executions.c.name == name)).one()
        connection.execute(update(executions).where(executions.c.name == name).values(status="Succeeded"))
        of_child = execution_documents.c.execution_id == child_id
        connection.execute(update(execution_documents).where(of_child).values(output='{"late": 1}', error=None))
        connection.execute(kept_scopes.delete().where(kept_scopes.c.execution_id == child_id))
    await redrive(node)
    assert await node.output_of("parent", "e") == {"late": 1}
    assert await node.output_of("child", name) == {"late": 1}
    assert shop.calls == {"charge": 1, "ship": 1}


async def test_a_child_that_waits_for_a_redrive_goes_on_with_its_parent(node: Node, shop: Shop) -> None:
    waits = FlowChange(on_retries_exhausted="waitForRedrive")
    await node.operations.flows.update("child", waits)
    await node.create_flow("parent", sub())
    await node.start("parent", "e")
    await node.reached("parent", "e", EventType.TASK_SUBMITTED)
    (name,) = await names(node)
    await node.reached("child", name, EventType.STEP_WAITING_FOR_REDRIVE)
    await node.operations.executions.stop("parent", "e")
    shop.is_broken = False
    await redrive(node)
    assert await node.output_of("parent", "e") == {"charged": True, "shipped": True}
    assert shop.calls == {"charge": 1, "ship": 2}


async def test_a_parent_that_waits_for_a_redrive_continues_its_child(node: Node, shop: Shop) -> None:
    await node.create_flow("parent", sub())
    await node.operations.flows.update("parent", FlowChange(on_retries_exhausted="waitForRedrive"))
    await node.start("parent", "e")
    await node.reached("parent", "e", EventType.STEP_WAITING_FOR_REDRIVE)
    shop.is_broken = False
    await redrive(node)
    assert await node.output_of("parent", "e") == {"charged": True, "shipped": True}
    assert shop.calls == {"charge": 1, "ship": 2}


async def test_a_bulk_redrive_of_parents_and_children_continues_each_child_once(node: Node, shop: Shop) -> None:
    await node.create_flow("own", f"{CHARGE}\n{sub('child', more='')}")
    for name in ("a", "b"):
        await node.start("own", name)
        await node.end_of("own", name)
    shop.is_broken = False
    children = await node.operations.redrives.redrive_many(
        "child", RedriveWish(), ExecutionFilter(status=Status.FAILED)
    )
    assert {(each.code, each.redrive_instead) for each in children.refused} == {
        ("ExecutionEndReported", "own/a"),
        ("ExecutionEndReported", "own/b"),
    }
    done = await node.operations.redrives.redrive_many("own", RedriveWish(), ExecutionFilter(status=Status.FAILED))
    assert (sorted(done.redriven), done.refused) == (["a", "b"], [])
    for name in ("a", "b"):
        await node.output_of("own", name)
    assert shop.calls == {"charge": 4, "ship": 4}


async def test_no_answer_names_an_execution_of_a_flow_that_the_key_is_not_for(node: Node, shop: Shop) -> None:
    await node.create_flow("parent", sub())
    await node.start("parent", "e")
    await node.end_of("parent", "e")
    (name,) = await names(node)

    def sees_children(flow: str) -> bool:
        return flow.startswith("child")

    redrives, wish = node.operations.redrives, RedriveWish()
    with pytest.raises(ExecutionEndReported) as refused:
        await redrives.redrive("child", name, wish, sees=sees_children)
    assert (refused.value.redrive_instead, "parent" in refused.value.message) == (None, False)
    many = await redrives.redrive_many("child", wish, ExecutionFilter(status=Status.FAILED), sees=sees_children)
    assert [(each.redrive_instead, "parent" in each.reason) for each in many.refused] == [(None, False)]
    plan = await redrives.plan("parent", "e", wish, sees=lambda flow: flow == "parent")
    assert [(each.does, each.child) for each in plan.children] == [("continues", None)]
    row = await node.operations.executions.describe("child", name)
    assert (await node.operations.current_steps.find(row)).parent == "parent/e"
    assert (await node.operations.current_steps.find(row, sees=sees_children)).parent is None
    row = await node.operations.executions.describe("parent", "e")
    for sees, child in ((lambda _: True, f"child/{name}"), (lambda flow: flow == "parent", None)):
        assert [each.child for each in (await node.operations.current_steps.find(row, sees=sees)).steps] == [child]


# The dry run


@pytest.mark.parametrize("seed", range(24))
async def test_the_dry_run_says_what_the_redrive_does(node: Node, shop: Shop, seed: int) -> None:
    random = Random(seed)
    name = random.choice(["run", "n" * 128, "0e5dd3bb-6fbd-4b1c-8f5d-2f2f3b9f4c11"])
    second = f"{name[:126] if name.startswith('n') else name}-2"
    holder = random.choice(["none", "none", "ended", "running"])
    is_named, retries, takes_second = random.random() < 0.8, random.random() < 0.3, random.random() < 0.4
    if holder != "none" and not name.startswith("0"):
        await node.start("child", name, {"hold": holder == "running"})
        await node.reached("child", name, EventType.TASK_STARTED, "ship")
        if holder == "ended":
            await node.end_of("child", name)
    if takes_second and not name.startswith("0"):
        await node.start("child", second)
        await node.end_of("child", second)
    middle = random.choice(["", "middle"])
    more = ", ".join([NAMED] * is_named + [RETRY] * retries)
    await node.create_flow("middle", sub(more=more))
    flow = "middle" if not middle else "parent"
    await node.create_flow("parent", sub("middle"))
    await node.start(flow, "e", {"name": name})
    assert (await node.end_of(flow, "e")).status is Status.FAILED
    spoilt = random.choice(["", "", "kept", "gone"])
    if spoilt:
        with node.database.write() as connection:
            of_child = select(executions.c.execution_id).where(
                executions.c.flow_name == "child", executions.c.parent_wait.is_not(None)
            )
            for table in (kept_scopes, executions)[: 1 + (spoilt == "gone")]:
                connection.execute(table.delete().where(table.c.execution_id.in_(of_child)))
    wish = RedriveWish(children=random.choice(["continue", "continue", "new"]))
    plan = await node.operations.redrives.plan(flow, "e", wish)
    before = await node.history(flow, "e")
    shop.is_broken = random.random() < 0.5
    await node.operations.redrives.redrive(flow, "e", wish)
    await node.end_of(flow, "e")
    assert len(plan.children) == (2 if middle and wish.children == "continue" else 1)
    for planned in plan.children:
        parent = planned.parent.split("/")
        events = await node.history(*parent)
        events = events[len(before) :] if parent[0] == flow else events
        redriven = max(index for index, each in enumerate(events) if each.type is EventType.EXECUTION_REDRIVEN)
        after = [each for each in events[redriven:] if each.step_name == "sub"]
        begun = next(load_json(each.detail) for each in after if each.type is EventType.TASK_SCHEDULED)
        failures = (EventType.TASK_FAILED, EventType.TASK_SUBMIT_FAILED)
        ended = next((load_json(each.detail) for each in after if each.type in failures), {})
        assert begun.get("continues") == (planned.child if planned.does == "continues" else None)
        assert (ended.get("error") if planned.does == "fails" else "") == planned.reason * (planned.does == "fails")
        if planned.does in ("continues", "starts"):
            row = await node.end_of(*str(planned.child).split("/"))
            assert (row.redrive_count > 0) == (planned.does == "continues")
    assert broken_rules(node) == 0
