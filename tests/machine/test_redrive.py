"""Redrives in the machine: steps entered again, kept state, and positions in another definition."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowserver.base.json_values import json_bytes, load_json
from flowserver.base.limits import Limits
from flowserver.language.graph import Flow
from flowserver.language.parser import parse
from flowserver.machine.events import EventType
from flowserver.machine.messages import Failure, Redrive, Rewind, Stop, Success
from flowserver.machine.redrive import calls_again, finished_items_needed
from flowserver.machine.redrive_places import fit
from flowserver.machine.state import Execution, Scope, Status, WaitKind
from flowserver.machine.step_paths import open_steps
from flowserver.machine.turn import OutcomeKind
from tests.conformance.cases import FlowCase, flow_cases
from tests.support.flows import flow
from tests.support.world import World, lines, trace

FN = "resourceArn: 'acs:fc:::services/s/functions/{}'"
PAY = f"{{type: task, name: pay, {FN.format('pay')}}}"
FAILED = Failure("E1", "no")


def failing(steps: str, attributes: str = "", **settings: Any) -> World:
    """A world whose only call has failed."""
    world = World(flow(steps, attributes), **settings)
    world.start()
    world.reply(FAILED)
    assert world.execution.status is Status.FAILED
    return world


def test_the_failed_call_is_repeated_with_its_key_and_a_new_wait() -> None:
    world = failing(f"- {{type: pass, name: p, outputMappings: [{{target: a, source: 1}}]}}\n- {PAY}")
    first, end = world.calls[-1], len(world.events)
    world.redrive()
    told = [line.replace("services/s/functions/", "") for line in trace(world.events[end:])]
    assert told == lines("""
        14 13 -   ExecutionRedriven {"redriveCount":1}
        15 14 pay StepEntered       {"input":{},"local":{"a":1},"resumes":6}
        16 15 pay StepStarted       {"input":{"a":1}}
        17 16 pay TaskScheduled     {"resourceArn":"acs:fc:::pay","pattern":"requestResponse","input":{"a":1}}
        18 17 pay TaskStarted       {}
    """)
    second = world.calls[-1]
    assert second.idempotency_key == first.idempotency_key
    assert (second.wait_id, second.attempt) == (first.wait_id + 1, 2)
    world.reply(Success({"b": 2}))
    assert world.execution.output == {"a": 1, "b": 2}


@pytest.mark.parametrize("named", [None, "child/run"])
def test_the_execution_of_a_sub_flow_is_continued(named: str | None) -> None:
    steps = "- {type: task, name: sub, resourceArn: 'acs:fnf:::flow/child', pattern: sync}"
    world = World(flow(steps), waits_for_redrive=named is not None)
    world.start()
    world.reply(FAILED)
    first, end = world.calls[-1], len(world.events)
    for scope in world.execution.scopes.values():
        scope.continued_child = named
    world.redrive()
    second = world.calls[-1]
    assert (first.continues_child, second.continues_child) == (False, True)
    assert first.wait_id == first.child_wait == second.child_wait
    scheduled = next(each for each in world.events[end:] if each.type is EventType.TASK_SCHEDULED)
    assert load_json(scheduled.detail).get("continues") == named


def test_a_reply_of_the_former_run_is_stale() -> None:
    world = World(flow(f"- {PAY}"))
    world.start()
    late = world.calls[-1]
    world.tell(Stop())
    world.redrive()
    assert world.reply(Success({}), late).outcome.kind is OutcomeKind.STALE


def test_its_time_limit_begins_again() -> None:
    world = World(flow(f"- {PAY}", "timeoutSeconds: 10"))
    world.start()
    world.wake()
    assert world.execution.status is Status.TIMED_OUT
    world.now_ms += 5_000
    world.redrive()
    assert world.execution.deadline_at == world.now_ms + 10_000
    world.wake()
    assert world.execution.cause == "the execution took longer than 10 seconds"


def test_a_running_execution_is_not_redriven() -> None:
    world = World(flow(f"- {PAY}"))
    world.start()
    assert world.ignores(Redrive())


def test_an_execution_that_succeeded_keeps_nothing() -> None:
    world = World(flow(f"- {PAY}"))
    world.start()
    world.reply(Success({}))
    assert (world.execution.kept, world.execution.kept_bytes) == ({}, 0)


def test_an_execution_whose_history_is_full_keeps_nothing() -> None:
    world = World(
        flow("- {type: pass, name: p}\n- {type: choice, name: c, default: {goto: p}}"), limits=Limits(events_max=50)
    )
    assert world.run().status is Status.FAILED
    assert world.execution.kept == {}


def test_it_fails_again_if_its_input_still_cannot_be_mapped() -> None:
    world = World(
        flow("- {type: pass, name: p}", "inputMappings: [{target: a, source: $input.a}]"), missing_source="fail"
    )
    world.run()
    assert world.execution.status is Status.FAILED
    world.redrive()
    assert (world.execution.status, world.execution.redrive_count) == (Status.FAILED, 1)
    world.execution.input = {"a": 1}
    world.redrive()
    assert (world.execution.status, world.execution.redrive_count) == (Status.SUCCEEDED, 2)


def test_retries_count_from_zero_and_a_pause_is_skipped() -> None:
    world = World(flow(f"- {PAY[:-1]}, retry: [{{errors: [E1], maxAttempts: 1}}]}}"))
    world.start()
    world.reply(FAILED)
    assert world.scope.wait is WaitKind.TIMER
    world.tell(Stop())
    world.redrive()
    assert (world.scope.wait, world.scope.retries) == (WaitKind.TASK, {})
    world.reply(FAILED)
    assert (world.scope.wait, world.scope.retries) == (WaitKind.TIMER, {0: 1})


def test_a_wait_begins_again_and_a_past_instant_is_over() -> None:
    world = World(
        flow("- {type: wait, name: w, duration: 10}\n- {type: wait, name: u, timestamp: '2023-11-14T22:14:00Z'}")
    )
    world.start()
    world.tell(Stop())
    world.now_ms += 5_000
    world.redrive()
    assert world.scope.wake_at == world.now_ms + 10_000
    world.wake()
    world.tell(Stop())
    world.now_ms += 60_000
    world.redrive()
    assert world.execution.status is Status.SUCCEEDED


def test_a_callback_has_a_new_token() -> None:
    world = World(flow(f"- {PAY[:-1]}, pattern: waitForCallback}}"))
    world.start()
    first = world.calls[-1].token
    world.tell(Stop())
    world.redrive()
    assert world.calls[-1].token != first
    assert world.report(Success({}), first).outcome.kind is OutcomeKind.STALE
    world.report(Success({"a": 1}))
    assert world.execution.output == {"a": 1}


BOTH = f"""
- type: parallel
  name: both
  outputMappings: [{{target: all, source: $local}}]
  branches:
  - steps: [{PAY}]
  - steps: [{PAY.replace("pay", "ship")}]
  - steps: [{{type: pass, name: p}}]
"""


def test_open_branches_are_entered_again() -> None:
    world = World(flow(BOTH))
    world.start()
    world.reply(FAILED, world.calls[0])
    assert sorted(path for _, path in _kept(world)) == ["both[0].pay", "both[1].ship"]
    end = len(world.events)
    world.redrive()
    assert [event.type for event in world.events[end:]].count(EventType.BRANCH_ENTERED) == 2
    world.reply(Success({"a": 1}), world.calls[2])
    world.reply(Success({"b": 2}), world.calls[3])
    assert world.execution.output == {"all": [{"a": 1}, {"b": 2}, {}]}


def test_branches_not_opened_because_of_a_limit_are_opened_after_it_was_raised() -> None:
    world = World(flow(BOTH), limits=Limits(live_scopes_max=3))
    world.run()
    assert world.execution.status is Status.FAILED
    world.redrive()
    assert world.execution.status is Status.FAILED
    world.limits = Limits()
    world.redrive()
    world.reply(Success({"a": 1}), world.calls[-2])
    world.reply(Success({"b": 2}), world.calls[-1])
    assert world.execution.output == {"all": [{"a": 1}, {"b": 2}, {}]}


EACH = f"""
- type: foreach
  name: pack
  iterationMapping: {{collection: $.items, item: it, index: n}}
  outputMappings: [{{target: all, source: $local}}]
  steps: [{PAY}]
"""


def _kept(world: World) -> list[tuple[Scope, str]]:
    execution = Execution("id1", "conf", "exec1", {}, 0, 0, scopes=dict(world.execution.kept))
    return list(open_steps(world.flow, execution))


def _called_again(steps: str, **settings: Any) -> tuple[int, int]:
    """How many calls a plan counts, and how many the redrive makes with a key that was used before."""
    world = World(flow(steps), **settings)
    world.start()
    before = [call.idempotency_key for call in world.calls]
    world.reply(FAILED) if before else world.tell(Stop())
    planned = sum(calls_again(world.flow, scope, Redrive()) for scope, _ in _kept(world))
    world.redrive()
    return planned, sum(call.idempotency_key in before for call in world.calls[len(before) :])


@pytest.mark.parametrize(
    ("steps", "count"),
    [
        (EACH, 3),
        (f"- {PAY}", 1),
        ("- {type: wait, name: w, duration: 60}", 0),
        (f"- {PAY[:-1]}, pattern: waitForCallback}}", 0),
    ],
)
def test_a_plan_counts_the_calls_that_are_made_again(steps: str, count: int) -> None:
    assert _called_again(steps, input={"items": [1, 2, 3]}) == (count, count)


def test_a_plan_counts_no_calls_that_are_made_anew() -> None:
    world = failing(f"- {PAY}")
    ((scope, _),) = _kept(world)
    assert calls_again(world.flow, scope, Redrive())
    assert not calls_again(world.flow, scope, Redrive(enters_again=True))
    assert not calls_again(world.flow, scope, Redrive(input_of=scope.scope_id))
    assert not calls_again(world.flow, scope, Redrive(rewind=Rewind(scope.scope_id, 0, {})))


def test_finished_iterations_are_kept_and_the_others_follow() -> None:
    world = World(flow(EACH), input={"items": [1, 2, 3]}, limits=Limits(foreach_concurrency_max=1))
    world.start()
    world.reply(Success({"r": 1}))
    world.reply(FAILED)
    assert [path for _, path in _kept(world)] == ["pack[1].pay"]
    world.redrive()
    assert world.calls[-1].input == {"items": [1, 2, 3], "it": 2, "n": 1}
    world.reply(Success({"r": 2}))
    world.reply(Success({"r": 3}))
    assert world.execution.output == {"all": [{"r": 1}, {"r": 2}, {"r": 3}]}


def test_a_failed_join_is_repeated() -> None:
    big = "x" * 900
    world = World(flow(EACH), input={"items": [1, 2]}, limits=Limits(step_data_bytes_max=3_000))
    world.start()
    world.reply(Success({"r": big}), world.calls[0])
    world.reply(Success({"r": big}), world.calls[1])
    assert world.execution.status is Status.FAILED
    world.limits = Limits()
    world.redrive()
    assert world.execution.output == {"all": [{"r": big}, {"r": big}]}
    assert len(world.calls) == 2


def test_a_second_join_of_a_failed_turn_is_repeated() -> None:
    """The rows of the first join are deleted, those of the second were never stored."""
    again = EACH.replace("name: pack", "name: again").replace(PAY, "{type: pass, name: p}")
    two = EACH + again.replace("$local}", "$local}, {target: t, source: '$input.items[9]'}")
    world = World(flow(two), input={"items": [1, 2]}, limits=Limits(foreach_concurrency_max=1), missing_source="fail")
    world.start()
    world.reply(Success({"r": 1}))
    world.reply(Success({"r": 2}))
    assert world.execution.status is Status.FAILED
    world.redrive()
    assert world.execution.status is Status.FAILED
    world._missing_source = "null"
    world.redrive()
    assert world.execution.output == {"all": [{}, {}], "t": None}


END = "\n- {type: pass, name: end}"
CHOICE = f"- {{type: choice, name: c, choices: [{{condition: '$.a == 1', steps: [{PAY}], goto: end}}]}}{END}"


def test_a_chosen_option_stays_chosen() -> None:
    world = failing(CHOICE, input={"a": 1})
    assert [path for _, path in _kept(world)] == ["c.pay"]
    world.redrive()
    world.reply(Success({"b": 2}))
    assert world.execution.output == {"b": 2}


def test_a_choice_that_failed_at_its_end_keeps_its_steps_results() -> None:
    steps = CHOICE.replace("name: c,", "name: c, outputMappings: [{target: t, source: $local.none}],")
    world = World(flow(steps), input={"a": 1}, missing_source="fail")
    world.start()
    world.reply(Success({"b": 2}))
    assert world.execution.status is Status.FAILED
    assert [path for _, path in _kept(world)] == ["c"]
    world._missing_source = "null"
    world.redrive()
    assert world.execution.output == {"t": None}
    assert len(world.calls) == 1


def test_the_end_of_the_flow_is_repeated() -> None:
    world = World(flow(f"- {PAY}", "outputMappings: [{target: a, source: $local.none}]"), missing_source="fail")
    world.start()
    world.reply(Success({}))
    assert [path for _, path in _kept(world)] == [""]
    world._missing_source = "null"
    world.redrive()
    assert world.execution.output == {"a": None}


def test_a_step_can_be_given_another_input() -> None:
    world = failing(f"- {PAY}", input={"a": 1})
    world.redrive(Redrive(input_of=1, input={"a": 2}))
    assert world.calls[-1].input == {"a": 2}
    assert world.calls[-1].idempotency_key != world.calls[0].idempotency_key


def test_a_refused_call_ends_it_and_the_others_are_not_made() -> None:
    refused = PAY[:-1] + ", serviceParams: {InvocationType: $.kind}}"
    world = World(flow(BOTH.replace(PAY, refused)), input={"kind": "Sync"})
    world.start()
    world.tell(Stop())
    called = len(world.calls)
    pay = next(scope for scope, path in _kept(world) if path == "both[0].pay")
    world.execution.kept[pay.scope_id].step_input = {"kind": "Never"}
    world.execution.kept_bytes += json_bytes({"kind": "Never"}) - json_bytes({"kind": "Sync"})
    world.redrive()
    assert (world.execution.status, len(world.calls)) == (Status.FAILED, called)
    assert sorted(path for _, path in _kept(world)) == ["both[0].pay", "both[1].ship"]


def test_it_returns_to_an_earlier_step_and_drops_what_was_opened_since() -> None:
    world = World(
        flow(f"- {PAY.replace('pay', 'first')}\n{EACH[1:]}"),
        input={"items": [1, 2, 3]},
        limits=Limits(foreach_concurrency_max=2),
    )
    world.start()
    world.reply(Success({"f": 1}))
    world.reply(Success({"r": 1}), world.calls[1])
    world.reply(FAILED, world.calls[2])
    world.redrive(Redrive(rewind=Rewind(1, 0, {"was": 0})))
    assert world.execution.scopes.keys() == {1}
    assert (world.scope.local, world.calls[-1].input) == ({"was": 0}, {"items": [1, 2, 3], "was": 0})
    world.reply(Success({"f": 2}))
    while world.execution.is_running:
        world.reply(
            Success({"r": 5}),
            next(
                call
                for call in reversed(world.calls)
                if call.scope_id in world.execution.scopes
                and world.execution.scopes[call.scope_id].wait_id == call.wait_id
            ),
        )
    assert world.execution.output == {"was": 0, "f": 2, "all": [{"r": 5}] * 3}


def test_parameters_that_still_cannot_be_made_fail_the_step_again() -> None:
    world = World(flow(f"- {PAY[:-1]}, serviceParams: {{InvocationType: $.kind}}}}"))
    world.run()
    cause = world.execution.cause
    world.redrive()
    assert (world.execution.cause, world.calls) == (cause, [])
    world.redrive(Redrive(input_of=1, input={"kind": "Sync"}))
    assert world.calls[-1].params == {"InvocationType": "Sync"}


# Another definition


def _fit(world: World, new: Flow) -> list[str]:
    execution = Execution("id1", "conf", "exec1", {}, 0, 0, scopes=dict(world.execution.kept))
    reasons = fit(world.flow, new, execution)
    if not reasons:
        world.flow = new
    return reasons


def test_steps_are_found_by_name_and_entered_again() -> None:
    world = failing(f"- {{type: pass, name: p}}\n- {PAY}")
    first = world.calls[-1]
    assert _fit(world, flow(f"- {PAY}\n- {{type: pass, name: q}}")) == []
    world.redrive(Redrive(enters_again=True))
    assert world.calls[-1].idempotency_key != first.idempotency_key
    world.reply(Success({}))
    assert world.entered == ["p", "pay", "pay", "q"]


def test_nested_lists_are_found_by_name() -> None:
    for steps, input in (
        (BOTH, {}),
        (EACH, {"items": [1]}),
        (CHOICE, {"a": 1}),
        (CHOICE.replace("$.a == 1", "$.b == 1").replace("}]}\n", f"}}], default: {{steps: [{PAY}]}}}}\n"), {"a": 1}),
    ):
        world = World(flow(steps), input=input)
        world.start()
        world.reply(FAILED, world.calls[0])
        assert _fit(world, flow("- {type: pass, name: before}\n" + steps.lstrip())) == []
        world.redrive(Redrive(enters_again=True))
        assert world.execution.is_running


@pytest.mark.parametrize(
    ("steps", "input", "new", "reason"),
    [
        (f"- {PAY}", {}, "- {type: pass, name: p}", "step pay is not in the definition"),
        (BOTH, {}, f"- {PAY.replace('name: pay', 'name: both')}", "step both is a task now and was a parallel"),
        (BOTH, {}, BOTH[: BOTH.rindex("  - steps")], "step both has 2 branches now and had 3"),
        (EACH, {"items": [1]}, EACH.replace("name: pay", "name: x"), "step pack[0].pay is not in the definition"),
        (EACH, {"items": [1]}, EACH.replace("$.items", "$.other"), "the collection $.other now and had $.items"),
        (CHOICE, {"a": 1}, CHOICE.replace(f"steps: [{PAY}], ", ""), "no steps any more for the option that was taken"),
    ],
)  # fmt: skip
def test_a_definition_that_does_not_fit_is_reported(steps: str, input: dict[str, Any], new: str, reason: str) -> None:
    world = World(flow(steps), input=input)
    world.start()
    world.reply(FAILED, world.calls[0])
    assert any(reason in each for each in _fit(world, flow(new)))


def test_a_missing_option_does_not_fit() -> None:
    first = "{condition: '$.b == 1', goto: end}"
    two = CHOICE.replace("choices: [", f"choices: [{first}, ")
    world = World(flow(two), input={"a": 1})
    world.start()
    world.reply(FAILED)
    assert _fit(world, flow(CHOICE)) == ["step c has no steps any more for the option that was taken"]


def test_a_finished_list_stays_finished() -> None:
    world = World(flow(f"- {PAY}", "outputMappings: [{target: a, source: $local.none}]"), missing_source="fail")
    world.start()
    world.reply(Success({"n": 1}))
    assert _fit(world, flow(f"- {PAY}\n- {{type: pass, name: q}}")) == []
    world.redrive(Redrive(enters_again=True))
    assert (world.execution.status, world.entered) == (Status.SUCCEEDED, ["pay"])


def test_an_execution_without_a_list_fits() -> None:
    execution = Execution("id1", "conf", "exec1", {}, 0, 0)
    assert fit(flow("- {type: pass, name: p}"), flow("- {type: pass, name: q}"), execution) == []


# Any flow


def _is_steady(case: FlowCase) -> bool:
    return case.refused is None and all(len(script) == 1 for script in case.replies.values())


STEADY = [case for case in flow_cases() if _is_steady(case)]


@given(st.data())
def test_an_execution_that_is_stopped_and_redriven_ends_like_an_uninterrupted_one(data: st.DataObject) -> None:
    case: FlowCase = data.draw(st.sampled_from(STEADY), label="case")
    limits = Limits.of(case.limits)
    compiled = parse(case.flow, limits).flow
    calm = World(compiled, input=case.input, replies=case.replies, limits=limits).run()
    world = World(compiled, input=case.input, replies=case.replies, limits=limits)
    world.start()
    for turns in data.draw(st.lists(st.integers(0, 6), min_size=1, max_size=3), label="turns between stops"):
        world.go_on(turns)
        if world.execution.is_running:
            world.tell(Stop())
            world.redrive()
    world.go_on()
    if calm.status is not Status.TIMED_OUT:
        assert (world.execution.status, world.execution.output) == (calm.status, calm.output)
        assert (world.execution.error, world.execution.cause) == (calm.error, calm.cause)


def test_the_first_turn_needs_finished_items_of_joins_and_of_what_it_drops() -> None:
    execution = Execution("id", "f", "e", {}, 0, 0)
    joins, waits = Scope(1, None, 0, 0, 1, next_item=2), Scope(2, 1, 1, 0, 1, next_item=3, open_items=2)
    inner, other = Scope(3, 2, 2, 0, 1, next_item=2, open_items=1), Scope(4, 1, 1, 1, 1, open_items=0)
    for scope in (joins, waits, inner, other):
        execution.open_scope(scope)
    assert finished_items_needed(execution, Redrive()) == [1]
    assert finished_items_needed(execution, Redrive(rewind=Rewind(2, 0, {}))) == [1, 2, 3]
