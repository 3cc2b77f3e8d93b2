"""Executions that ended without success continue where they failed; successful steps are not repeated."""

from collections import Counter
from typing import Any

import pytest
from sqlalchemy import Connection, func, select, text, update

from flowserver.base.clock import INSTANT_MS_MAX
from flowserver.base.errors import ExecutionNotExists, ExecutionNotRedrivable, TaskAlreadyCompleted
from flowserver.base.json_values import load_json
from flowserver.base.limits import Limits
from flowserver.engine.commit import batch_redrives
from flowserver.engine.commit.batch_items import Receipt
from flowserver.machine.events import EventType
from flowserver.machine.state import Status
from flowserver.operations.flows import FlowChange
from flowserver.operations.redrive_plans import RedriveWish
from flowserver.store.executions.listing_of_flow import ExecutionFilter
from flowserver.store.executions.redriving import prepare_redrive
from flowserver.store.executions.retention import delete_ended
from flowserver.store.executions.saving_headers import VersionConflict
from flowserver.store.executions.shown_executions import ExecutionRow
from flowserver.store.integrity.invariant import violations
from flowserver.store.schema.tables import finished_items, kept_items, kept_scopes, scopes
from tests.engine.called_functions import Call, Functions
from tests.engine.nodes import Node, definition
from tests.support.clock import ManualClock

CALL = "type: task, resourceArn: 'acs:fc:::services/shop/functions/{}'"
RESERVE = f"- {{name: reserve, {CALL.format('reserve')}}}"
PAY = f"- {{name: pay, {CALL.format('pay')}}}"
ASK = PAY[:-1] + ", pattern: waitForCallback, inputMappings: [{target: token, source: $context.task.token}]}"
TWO = f"{RESERVE}\n{PAY}"


class Shop:
    """Functions that return their event, and fail with E1 while they are in `broken`."""

    def __init__(self, functions: Functions, *broken: str) -> None:
        self.broken = set(broken)
        self.functions = functions
        for name in ("reserve", "pay", "label"):
            functions.scripts[f"shop/{name}"] = self._answer

    def _answer(self, call: Call) -> None:
        name = call.function.removeprefix("shop/")
        item = call.event.get("item") if isinstance(call.event, dict) else None
        if name in self.broken or f"{name}{item}" in self.broken:
            call.fail("E1")
        else:
            call.reply({name: call.event.get("item", 1)})

    @property
    def calls(self) -> Counter[str]:
        """How often each function was called."""
        return Counter(call.function.removeprefix("shop/") for call in self.functions.calls)


@pytest.fixture
async def shop(node: Node, functions: Functions) -> Shop:
    await node.register(functions, "shop/reserve", "shop/pay", "shop/label")
    return Shop(functions, "pay")


async def failed(node: Node, steps: str, attributes: str = "", input: Any = None) -> None:
    await node.create_flow("f", steps, attributes)
    await node.start("f", "e", input)
    assert (await node.end_of("f", "e")).status is Status.FAILED


async def redrive(node: Node, name: str = "e", **wish: Any) -> ExecutionRow:
    return await node.operations.redrives.redrive("f", name, RedriveWish(**wish))


async def refusal(node: Node, name: str = "e", **wish: Any) -> str:
    with pytest.raises(ExecutionNotRedrivable) as refused:
        await redrive(node, name, **wish)
    plan = await node.operations.redrives.plan("f", name, RedriveWish(**wish))
    assert "; ".join(plan.reasons) in refused.value.message
    return refused.value.message


def changed(steps: str) -> FlowChange:
    return FlowChange(definition=definition(steps, ""))


def left(node: Node) -> list[int]:
    """The numbers of live scopes and items, of kept scopes and items, and of violations."""
    tables = (scopes, finished_items, kept_scopes, kept_items, violations)
    with node.database.read() as connection:
        return [connection.execute(select(func.count()).select_from(table)).scalar_one() for table in tables]


async def types(node: Node) -> list[str]:
    return [event.type for event in await node.history("f", "e")]


async def entered(node: Node) -> Counter[str]:
    return Counter(event.step_name for event in await node.history("f", "e") if event.type is EventType.STEP_ENTERED)


# One list


async def test_only_the_failed_step_is_called_again(node: Node, shop: Shop) -> None:
    await failed(node, TWO)
    assert left(node) == [0, 0, 1, 0, 0]
    before = await node.history("f", "e")
    shop.broken.clear()
    row = await redrive(node)
    assert (row.redrive_count, row.error) == (1, None)
    assert await node.output_of("f", "e") == {"reserve": 1, "pay": 1}
    assert shop.calls == {"reserve": 1, "pay": 2}
    after = await node.history("f", "e")
    assert after[: len(before)] == before
    assert [event.event_id for event in after] == list(range(1, len(after) + 1))
    assert after[len(before)].type is EventType.EXECUTION_REDRIVEN
    assert load_json(after[len(before)].detail) == {"redriveCount": 1}
    assert left(node) == [0, 0, 0, 0, 0]


async def test_a_call_is_repeated_under_its_key(node: Node, shop: Shop) -> None:
    await failed(node, PAY)
    shop.broken.clear()
    await redrive(node)
    await node.output_of("f", "e")
    (first, one), (second, two) = shop.functions.called("shop/pay")
    assert first == second
    assert (one, two) == (1, 2)


async def test_an_execution_may_fail_and_be_redriven_repeatedly(node: Node, shop: Shop) -> None:
    await failed(node, TWO)
    for count in (1, 2, 3):
        await redrive(node)
        row = await node.end_of("f", "e")
        assert (row.status, row.error, row.redrive_count) == (Status.FAILED, "E1", count)
        assert left(node) == [0, 0, 1, 0, 0]
    shop.broken.clear()
    await redrive(node)
    assert await node.output_of("f", "e") == {"reserve": 1, "pay": 1}
    assert shop.calls == {"reserve": 1, "pay": 5}


async def test_retries_count_from_zero(node: Node, shop: Shop) -> None:
    retry = ", retry: [{errors: [E1], maxAttempts: 2, intervalSeconds: 0}]}"
    await failed(node, PAY[:-1] + retry)
    assert shop.calls == {"pay": 3}
    await redrive(node)
    await node.end_of("f", "e")
    assert shop.calls == {"pay": 6}


async def test_the_time_limit_counts_from_the_redrive(node: Node, functions: Functions, clock: ManualClock) -> None:
    await node.register(functions, "shop/pay")
    await node.create_flow("f", PAY, "timeoutSeconds: 10")
    await node.start("f", "e")
    await functions.next_call("shop/pay")
    node.advance(clock, seconds=11)
    assert (await node.end_of("f", "e")).status is Status.TIMED_OUT
    node.advance(clock, seconds=100)
    await redrive(node)
    call = await functions.next_call("shop/pay")
    node.advance(clock, seconds=9)
    call.reply({"a": 1})
    assert await node.output_of("f", "e") == {"a": 1}


async def test_a_second_time_limit_is_reported_at_its_full_length(
    node: Node, functions: Functions, clock: ManualClock
) -> None:
    await node.register(functions, "shop/pay")
    await node.create_flow("f", PAY, "timeoutSeconds: 10")
    await node.start("f", "e")
    await functions.next_call("shop/pay")
    node.advance(clock, seconds=11)
    await node.end_of("f", "e")
    await redrive(node)
    await functions.next_call("shop/pay")
    node.advance(clock, seconds=11)
    assert (await node.end_of("f", "e")).cause == "the execution took longer than 10 seconds"


async def test_a_stopped_execution_continues_with_its_aborted_steps(node: Node, functions: Functions) -> None:
    await node.register(functions, "shop/pay")
    await node.create_flow("f", PAY)
    await node.start("f", "e")
    late = await functions.next_call("shop/pay")
    await node.operations.executions.stop("f", "e", error="Enough")
    await redrive(node)
    call = await functions.next_call("shop/pay")
    assert late.key == call.key
    call.reply({"a": 1})
    assert await node.output_of("f", "e") == {"a": 1}


async def test_a_finished_wait_is_not_repeated(node: Node, shop: Shop, clock: ManualClock) -> None:
    await node.create_flow("f", f"- {{type: wait, name: w, duration: 60}}\n{PAY}")
    await node.start("f", "e")
    node.advance(clock, seconds=60)
    await node.end_of("f", "e")
    shop.broken.clear()
    await redrive(node)
    assert await node.output_of("f", "e") == {"pay": 1}


async def test_a_callback_gets_a_new_token_and_the_old_one_is_refused(node: Node, functions: Functions) -> None:
    await node.register(functions, "shop/pay")
    await node.create_flow("f", ASK)
    await node.start("f", "e")
    first = await functions.next_call("shop/pay")
    first.reply()
    await node.operations.executions.stop("f", "e")
    await redrive(node)
    second = await functions.next_call("shop/pay")
    assert first.event["token"] != second.event["token"]
    with pytest.raises(TaskAlreadyCompleted):
        await node.operations.tasks.report_succeeded(first.event["token"], "{}")
    second.reply()
    await node.operations.tasks.report_succeeded(second.event["token"], '{"a": 1}')
    assert await node.output_of("f", "e") == {"a": 1}


async def test_a_failed_mapping_is_evaluated_again(node: Node, shop: Shop) -> None:
    await failed(node, "- {type: wait, name: w, duration: $.n}\n- {type: pass, name: p}", input={"n": "x"})
    await redrive(node, input={"n": 0})
    assert (await node.end_of("f", "e")).status is Status.SUCCEEDED


# Lists within lists


async def test_a_finished_branch_is_kept(node: Node, shop: Shop) -> None:
    branches = f"branches: [{{steps: [{RESERVE[2:]}, {PAY[2:]}]}}, {{steps: [{RESERVE[2:]}]}}]"
    mapped = "outputMappings: [{target: all, source: $local}]"
    await failed(node, f"- {{type: parallel, name: both, {mapped}, {branches}}}")
    shop.broken.clear()
    before = shop.calls["reserve"]
    await redrive(node)
    assert await node.output_of("f", "e") == {"all": [{"reserve": 1, "pay": 1}, {"reserve": 1}]}
    assert shop.calls["reserve"] <= before + 1
    assert left(node) == [0, 0, 0, 0, 0]


EACH = (
    "- {type: foreach, name: pack, iterationMapping: {collection: $.items, item: item}, "
    "outputMappings: [{target: all, source: '$local[*].label'}], "
    f"steps: [{{name: label, {CALL.format('label')}}}]}}"
)


@pytest.mark.parametrize("limits", [Limits(foreach_concurrency_max=1)])
async def test_only_unfinished_iterations_run_again(node: Node, shop: Shop) -> None:
    shop.broken = {"label3"}
    await failed(node, EACH, input={"items": [1, 2, 3, 4, 5]})
    assert left(node) == [0, 0, 2, 2, 0]
    shop.broken.clear()
    await redrive(node)
    assert await node.output_of("f", "e") == {"all": [1, 2, 3, 4, 5]}
    assert Counter(call.event["item"] for call in shop.functions.calls) == {1: 1, 2: 1, 3: 2, 4: 1, 5: 1}
    assert left(node) == [0, 0, 0, 0, 0]


async def test_aborted_iterations_run_again_beside_the_failed_one(node: Node, functions: Functions) -> None:
    await node.register(functions, "shop/label")
    await node.create_flow("f", EACH)
    await node.start("f", "e", {"items": [1, 2, 3]})
    calls = {call.event["item"]: call for call in [await functions.next_call("shop/label") for _ in range(3)]}
    calls[1].reply({"label": 1})
    while not any(event.type is EventType.ITERATION_EXITED for event in await node.history("f", "e")):
        pass
    calls[2].fail("E1")
    await node.end_of("f", "e")
    plan = await node.operations.redrives.plan("f", "e", RedriveWish())
    assert [(each.path, each.why) for each in plan.again] == [("pack[1].label", "failed"), ("pack[2].label", "aborted")]
    assert (plan.again_count, plan.failed_count, plan.calls_again_count) == (2, 1, 2)
    assert plan.kept == {"label": 1}
    await redrive(node)
    for call in [await functions.next_call("shop/label") for _ in range(2)]:
        call.reply({"label": call.event["item"]})
    assert await node.output_of("f", "e") == {"all": [1, 2, 3]}


async def test_finished_steps_in_a_failed_iteration_are_kept(node: Node, shop: Shop) -> None:
    steps = EACH.replace("steps: [", f"steps: [{RESERVE[2:]}, ")
    shop.broken = {"label2"}
    await failed(node, steps, input={"items": [2]})
    shop.broken.clear()
    await redrive(node)
    assert (await node.output_of("f", "e"))["all"] == [2]
    assert shop.calls == {"reserve": 1, "label": 2}


async def test_the_chosen_option_stays_chosen(node: Node, shop: Shop) -> None:
    choice = f"- {{type: choice, name: c, choices: [{{condition: '$.a == 1', steps: [{RESERVE[2:]}, {PAY[2:]}]}}]}}"
    await failed(node, choice, input={"a": 1})
    shop.broken.clear()
    await redrive(node)
    assert (await node.output_of("f", "e"))["pay"] == 1
    assert shop.calls == {"reserve": 1, "pay": 2}


def wordy(call: Call) -> None:
    call.reply({"label": call.event.get("item", 0), "text": "x" * 900})


@pytest.mark.parametrize("limits", [Limits(step_data_bytes_max=4_000)])
async def test_a_failed_join_is_repeated_with_its_collected_results(node: Node, shop: Shop) -> None:
    shop.functions.scripts["shop/label"] = wordy
    await failed(node, EACH.replace("'$local[*].label'", "'$local'"), input={"items": [1, 2, 3]})
    assert left(node) == [0, 0, 1, 3, 0]
    await redrive(node)
    assert (await node.end_of("f", "e")).error == "FnF.RuntimeError"
    assert left(node) == [0, 0, 1, 3, 0]
    await node.operations.flows.update("f", changed(EACH))
    await redrive(node, definition="current")
    assert await node.output_of("f", "e") == {"all": [1, 2, 3]}
    assert shop.calls == {"label": 3}


@pytest.mark.parametrize("limits", [Limits(step_data_bytes_max=2_000)])
async def test_a_choice_that_failed_after_its_steps_keeps_their_results(node: Node, shop: Shop) -> None:
    shop.functions.scripts["shop/label"] = wordy
    label = f"{{name: label, {CALL.format('label')}}}"
    twice = "outputMappings: [{target: t, source: $local}, {target: u, source: $local}]"
    choice = f"- {{type: choice, name: c, {twice}, choices: [{{condition: '$.a == 1', steps: [{label}]}}]}}"
    await failed(node, choice, input={"a": 1})
    assert left(node) == [0, 0, 2, 0, 0]
    await node.operations.flows.update("f", changed(choice.replace(twice, "outputMappings: []")))
    await redrive(node, definition="current")
    assert await node.output_of("f", "e") == {}
    assert shop.calls == {"label": 1}


# Refusals


async def test_an_impossible_redrive_is_refused_with_the_reason(node: Node, shop: Shop, functions: Functions) -> None:
    await node.create_flow("f", TWO)
    del functions.scripts["shop/pay"]
    await node.start("f", "e")
    call = await functions.next_call("shop/pay")
    assert "it is running" in await refusal(node)
    call.reply({})
    await node.output_of("f", "e")
    assert "it has succeeded" in await refusal(node)
    with pytest.raises(ExecutionNotExists):
        await redrive(node, "other")


async def test_the_execution_of_a_sub_flow_is_redriven_with_its_parent(node: Node, shop: Shop) -> None:
    await node.create_flow("f", PAY)
    await node.create_flow("g", "- {type: task, name: sub, resourceArn: 'acs:fnf:::flow/f', pattern: sync}")
    await node.start("g", "e")
    assert (await node.end_of("g", "e")).status is Status.FAILED
    (child,) = (await node.operations.executions.list("f", ExecutionFilter(), next_token=None, limit=None)).items
    assert "it has reported its end to g/e; redrive that" in await refusal(node, child.name)
    shop.broken.clear()
    await node.operations.redrives.redrive("g", "e", RedriveWish())
    assert await node.output_of("g", "e") == {"pay": 1}


@pytest.mark.parametrize("limits", [Limits(events_max=20)])
async def test_a_full_history_refuses_a_redrive(node: Node, shop: Shop) -> None:
    await failed(node, TWO)
    assert "its history has no room" in await refusal(node)


async def test_a_token_makes_a_redrive_idempotent(node: Node, shop: Shop) -> None:
    await failed(node, PAY)
    await redrive(node, client_token="t")
    await node.end_of("f", "e")
    row = await redrive(node, client_token="t")
    assert (row.status, row.redrive_count) == (Status.FAILED, 1)
    assert (await redrive(node, client_token="u")).redrive_count == 2
    await node.end_of("f", "e")
    assert shop.calls == {"pay": 3}


async def test_a_conflict_with_another_node_is_retried(node: Node, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    conflicts = [True]

    def prepare(connection: Connection, *arguments: Any) -> Receipt | None:
        if conflicts and conflicts.pop():
            if connection.dialect.name == "sqlite":
                raise VersionConflict
            connection.execute(text("DO $$ BEGIN RAISE EXCEPTION 'deadlock' USING ERRCODE = '40P01'; END $$"))
        return prepare_redrive(connection, *arguments)

    await failed(node, PAY)
    monkeypatch.setattr(batch_redrives, "prepare_redrive", prepare)
    assert (await redrive(node)).redrive_count == 1


# Another definition, another input, another step


async def test_it_continues_with_the_present_definition(node: Node, shop: Shop) -> None:
    await failed(node, TWO)
    await node.operations.flows.update(
        "f", changed(f"- {{type: pass, name: first}}\n{RESERVE}\n{PAY.replace('functions/pay', 'functions/label')}")
    )
    await redrive(node, definition="current")
    assert await node.output_of("f", "e") == {"reserve": 1, "label": 1}
    assert shop.calls == {"reserve": 1, "pay": 1, "label": 1}


async def test_it_continues_with_a_published_version(node: Node, shop: Shop) -> None:
    await failed(node, TWO)
    await node.operations.flows.update("f", changed(TWO.replace("functions/pay", "functions/label")))
    published, _ = await node.operations.versions.publish("f")
    await node.operations.flows.update("f", changed(TWO))
    assert "version 9 of flow f does not exist" in await refusal(node, definition=9)
    row = await redrive(node, definition=published.version)
    assert (row.flow_version, row.redrive_count) == (published.version, 1)
    assert (await node.output_of("f", "e"))["label"] == 1


async def test_a_definition_that_does_not_fit_is_refused_with_the_reason(node: Node, shop: Shop) -> None:
    await failed(node, EACH.replace("label", "pay"), input={"items": [1]})
    await node.operations.flows.update("f", changed(PAY))
    assert "step pack is not in the definition" in await refusal(node, definition="current")
    await node.operations.flows.update("f", changed(PAY.replace("name: pay", "name: pack")))
    assert "step pack is a task now and was a foreach" in await refusal(node, definition="current")
    await node.operations.flows.update("f", changed(EACH))
    assert "step pack[0].pay is not in the definition" in await refusal(node, definition="current")
    shop.broken.clear()
    await redrive(node)
    assert (await node.end_of("f", "e")).status is Status.SUCCEEDED


async def test_the_failed_step_gets_another_input(node: Node, shop: Shop) -> None:
    await failed(node, TWO, input={"item": 1})
    shop.broken.clear()
    await redrive(node, input={"item": 7})
    assert (await node.output_of("f", "e"))["pay"] == 7
    assert shop.functions.called("shop/pay")[0][0] != shop.functions.called("shop/pay")[1][0]


async def test_it_returns_to_an_earlier_step_with_that_steps_data(node: Node, shop: Shop) -> None:
    count = "- {type: pass, name: count, outputMappings: [{target: n, source: $context.step.eventId}]}"
    await failed(node, f"{RESERVE}\n{count}\n{PAY}")
    shop.broken.clear()
    await redrive(node, from_step="reserve")
    output = await node.output_of("f", "e")
    assert shop.calls == {"reserve": 2, "pay": 2}
    assert (await entered(node))["count"] == 2
    assert output["n"] > 20
    history = await node.history("f", "e")
    again = [event for event in history if event.step_name == "reserve" and event.type is EventType.STEP_ENTERED]
    assert load_json(again[1].detail)["local"] == {}


async def test_it_returns_from_within_a_foreach(node: Node, shop: Shop) -> None:
    shop.broken = {"label3"}
    await failed(node, f"{RESERVE}\n{EACH}", input={"items": [1, 2, 3]})
    shop.broken.clear()
    await redrive(node, from_step="reserve")
    assert (await node.output_of("f", "e"))["all"] == [1, 2, 3]
    assert left(node) == [0, 0, 0, 0, 0]


async def test_it_cannot_return_to_a_step_that_was_never_entered(node: Node, shop: Shop) -> None:
    await failed(node, f"{PAY}\n{RESERVE}")
    assert "was never entered" in await refusal(node, from_step="reserve")
    assert "is not in the flow's own list" in await refusal(node, from_step="none")


# Many


async def test_a_filter_redrives_page_by_page(node: Node, shop: Shop) -> None:
    await node.create_flow("f", PAY)
    names = [f"e{number}" for number in range(5)]
    for name in names:
        await node.start("f", name)
        await node.end_of("f", name)
    shop.broken.clear()
    done: list[str] = []
    token = None
    while True:
        wanted = ExecutionFilter(status=Status.FAILED)
        page = await node.operations.redrives.redrive_many(
            "f", RedriveWish(), wanted, error="E1", next_token=token, limit=2
        )
        done += page.redriven
        assert page.refused == []
        token = page.next_token
        if token is None:
            break
    assert sorted(done) == names
    for name in names:
        assert await node.output_of("f", name) == {"pay": 1}


@pytest.mark.parametrize("limits", [Limits(bulk_redrive_bytes_max=50_000)])
async def test_a_request_reads_no_more_histories_than_the_limit(node: Node, shop: Shop) -> None:
    steps = "\n".join(f"- {{type: pass, name: p{number}}}" for number in range(10))
    await node.create_flow("f", f"{steps}\n{PAY}")
    names = [f"e{number}" for number in range(6)]
    for name in names:
        await node.start("f", name, {"text": "x" * 1_000})
        await node.end_of("f", name)
    shop.broken.clear()
    redrives, wanted = node.operations.redrives, ExecutionFilter(status=Status.FAILED)
    one = (await redrives.plan("f", "e0", RedriveWish(from_step="p9"))).read_bytes
    assert one < 50_000 < 2 * one
    token, pages = None, []
    while not pages or token is not None:
        page = await redrives.redrive_many("f", RedriveWish(from_step="p9"), wanted, next_token=token)
        pages.append(page.redriven)
        token = page.next_token
    assert [len(page) for page in pages] == [2, 2, 2]
    assert sorted(name for page in pages for name in page) == names


@pytest.mark.parametrize("limits", [Limits(redrive_history_bytes_max=5_000)])
async def test_a_history_beyond_the_limit_is_not_searched(node: Node, shop: Shop) -> None:
    await failed(node, f"{RESERVE}\n{PAY}", input={"text": "x" * 1_000})
    assert await refusal(node, from_step="reserve") == (
        "execution e of flow f cannot be redriven: "
        "its history has more than 5000 bytes, the limit redrive_history_bytes_max for `from`"
    )
    shop.broken.clear()
    await redrive(node)
    assert (await node.output_of("f", "e"))["pay"] == 1


# Kept rows


async def test_kept_rows_are_deleted_with_the_execution(node: Node, shop: Shop) -> None:
    shop.broken = {"label3"}
    await failed(node, EACH, input={"items": [1, 2, 3]})
    row = await node.operations.executions.describe("f", "e")
    with node.database.write() as connection:
        assert delete_ended(connection, [row.execution_id], INSTANT_MS_MAX) == 1
    assert left(node) == [0, 0, 0, 0, 0]


async def test_the_execution_of_a_sub_flow_keeps_its_scopes_too(node: Node, shop: Shop) -> None:
    await node.create_flow("f", PAY)
    await node.create_flow("g", "- {type: task, name: sub, resourceArn: 'acs:fnf:::flow/f', pattern: sync}")
    await node.start("g", "e")
    await node.end_of("g", "e")
    assert left(node) == [0, 0, 2, 0, 0]


async def test_a_damaged_row_is_reported_and_stays_unchanged(node: Node, shop: Shop) -> None:
    await failed(node, PAY)
    with node.database.write() as connection:
        connection.execute(update(kept_scopes).values(local="{"))
    assert "its kept scope 1 cannot be read" in await refusal(node)
    with node.database.write() as connection:
        connection.execute(update(kept_scopes).values(local="{}"))
    shop.broken.clear()
    await redrive(node)
    assert await node.output_of("f", "e") == {"pay": 1}
