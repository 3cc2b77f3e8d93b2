"""The limits of an execution: size of data, number of events, of open lists, of steps in one turn."""

import tracemalloc

import pytest

from flowserver.base.json_values import DEPTH_MAX, JsonObject, json_bytes
from flowserver.base.limits import Limits
from flowserver.machine.commands import CancelInvocation
from flowserver.machine.data_sizes import PIECE, fits
from flowserver.machine.events import EventType
from flowserver.machine.messages import Continue, Start, Success, TaskReported
from flowserver.machine.state import Status, WaitKind
from flowserver.machine.turn import OutcomeKind
from tests.conformance.cases import Reply
from tests.support.flows import flow
from tests.support.world import World

FAN = """
- type: foreach
  name: each
  iterationMapping: {collection: $.list, item: it}
  steps:
  - {type: task, name: t, resourceArn: 'acs:fc:::services/s/functions/f'}
"""
FAILS = Reply(raises="Bad", cause="because")
SYNC = "name: t\n  pattern: sync"
CAUGHT = """
- type: task
  name: t
  resourceArn: acs:fc:::services/s/functions/f
  catch: [{errors: [FnF.ALL], goto: z}]
- {type: pass, name: z}
"""
LOOP = """
- {type: pass, name: p, inputMappings: []}
- {type: choice, name: c, inputMappings: [], default: {goto: p}}
"""


def _types(world: World) -> list[str]:
    return [str(event.type) for event in world.events]


# Size


@pytest.mark.parametrize("count", [0, 1, PIECE, PIECE + 1, 3 * PIECE, 100])
def test_sizes_are_those_of_the_compact_text(count: int) -> None:
    array = [{"k": "é"}] * count
    document = {f"k{number}": [number] for number in range(count)}
    size = json_bytes(array) + json_bytes(document)
    assert fits(size, array, document)
    assert not fits(size - 1, array, document)


def test_a_document_that_refers_to_another_a_thousand_times_is_never_serialized() -> None:
    large = {f"k{number}": "x" * 200_000 for number in range(1_000)}
    tracemalloc.start()
    assert not fits(250_000, {"small": 1}, large)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000


def _sized(blob: int, limit: int, step: str) -> World:
    attributes = "outputMappings: []"
    world = World(flow(step, attributes), input={"blob": "x" * blob}, limits=Limits(step_data_bytes_max=limit))
    world.run()
    return world


def test_a_loop_that_wraps_its_data_ends_before_the_data_is_too_deep_to_read() -> None:
    wrap = """
- type: pass
  name: wrap
  inputMappings: [{target: inner, source: $local}]
  outputMappings: [{target: inner, source: $input.inner}]
- {type: choice, name: again, inputMappings: [], default: {goto: wrap}}
"""
    world = World(flow(wrap))
    world.run()
    assert (world.execution.status, world.execution.error) == (Status.FAILED, "FnF.RuntimeError")
    assert str(world.execution.cause).endswith(f"nested deeper than {DEPTH_MAX} levels")


def test_input_output_and_local_count_together_to_the_byte() -> None:
    step = "- {type: pass, name: p, outputMappings: [{target: a, source: $input.blob}]}"
    # input {"blob":"…"} is 11 + 100, output {"a":"…"} is 8 + 100, and the empty local counts nothing
    exact = 111 + 108
    assert _sized(100, exact, step).execution.status is Status.SUCCEEDED
    world = _sized(100, exact - 1, step)
    assert (world.execution.error, world.execution.cause) == (
        "FnF.RuntimeError",
        f"input, output and local of step p: more than {exact - 1} bytes, the limit step_data_bytes_max",
    )
    assert _types(world)[2:] == ["StepStarted", "StepFailed", "StepExited", "ExecutionFailed"]


def test_an_input_over_the_limit_fails_the_step_before_it_starts() -> None:
    mapping = "[{target: a, source: $input.blob}, {target: b, source: $input.blob}]"
    world = _sized(100, 200, f"- {{type: pass, name: p, inputMappings: {mapping}}}")
    assert world.execution.cause == "the input of step p: more than 200 bytes, the limit step_data_bytes_max"
    assert EventType.STEP_STARTED not in _types(world)


def test_a_list_s_outputs_count_together() -> None:
    steps = "".join(
        f"- {{type: pass, name: {name}, inputMappings: [], outputMappings: [{{target: {name}, source: {'y' * 80}}}]}}\n"
        for name in "abc"
    )
    world = _sized(1, 250, steps)
    assert (world.entered, world.execution.cause) == (
        ["a", "b", "c"],
        "the local of the list after step c: more than 250 bytes, the limit step_data_bytes_max",
    )


def test_the_flow_s_own_data_counts_at_its_start_and_at_its_end() -> None:
    double = "[{target: a, source: $input.blob}, {target: b, source: $input.blob}]"
    world = World(
        flow("- {type: pass, name: p}", f"inputMappings: {double}"),
        input={"blob": "x" * 100},
        limits=Limits(step_data_bytes_max=200),
    )
    assert world.run().cause == "the flow's input: more than 200 bytes, the limit step_data_bytes_max"
    assert world.entered == []
    world = World(
        flow("- {type: pass, name: p}", f"outputMappings: {double}"),
        input={"blob": "x" * 100},
        limits=Limits(step_data_bytes_max=200),
    )
    assert world.run().cause == "the flow's output: more than 200 bytes, the limit step_data_bytes_max"


def test_an_input_of_exactly_the_limit_can_be_passed_on() -> None:
    given = {"blob": "x" * 189}
    assert json_bytes(given) == 200
    world = World(flow(CAUGHT), input=given, replies={"f": [FAILS]}, limits=Limits(step_data_bytes_max=200))
    assert (world.run().status, world.entered) == (Status.SUCCEEDED, ["t", "z"])


# Size of what a task gets and gives: its own retry and catch apply


def _caught(reply: Reply, given: JsonObject, *attributes: str, limit: int = 250) -> World:
    steps = CAUGHT.replace("name: t", "\n  ".join(("name: t", *attributes)))
    world = World(flow(steps), input=given, replies={"f": [reply]}, limits=Limits(step_data_bytes_max=limit))
    world.run()
    return world


@pytest.mark.parametrize(
    "attributes",
    [
        [],
        ["pattern: waitForCallback"],
        ["pattern: sync", "serviceParams: {InvocationType: Async}"],
        ["inputMappings: []", "outputMappings: [{target: a, source: $local.blob}, {target: b, source: $local.blob}]"],
    ],
)
def test_a_result_that_the_step_cannot_hold_fails_the_attempt(attributes: list[str]) -> None:
    world = _caught(Reply(returns={"blob": "x" * 120}), {"n": 1}, "retry: [{errors: [FnF.RuntimeError]}]", *attributes)
    assert (world.execution.status, world.entered, world.pauses_seconds) == (Status.SUCCEEDED, ["t", "z"], [1, 2, 4])
    cause = "input, output and local of step t: more than 250 bytes, the limit step_data_bytes_max"
    assert [each["cause"] for each in world.details(EventType.TASK_FAILED)] == [cause] * 4


def test_a_sub_flow_s_output_that_the_step_cannot_hold_fails_the_attempt() -> None:
    steps = CAUGHT.replace("acs:fc:::services/s/functions/f", "acs:fnf:::flow/f").replace("name: t", SYNC)
    world = World(
        flow(steps), replies={"f": [Reply(returns={"blob": "x" * 140})]}, limits=Limits(step_data_bytes_max=250)
    )
    assert (world.run().status, world.entered) == (Status.SUCCEEDED, ["t", "z"])


def test_a_result_that_its_list_cannot_hold_fails_the_attempt() -> None:
    first = "- {type: pass, name: p, inputMappings: [], outputMappings: [{target: p, source: $input.blob}]}\n"
    first = first.replace("$input.blob", "y" * 150)
    steps = first + CAUGHT.replace("name: t", "name: t\n  inputMappings: []")
    world = World(flow(steps), replies={"f": [Reply(returns={"b": "x" * 110})]}, limits=Limits(step_data_bytes_max=250))
    assert (world.run().status, world.entered) == (Status.SUCCEEDED, ["p", "t", "z"])


def test_a_result_that_the_execution_cannot_hold_fails_the_attempt() -> None:
    limits = Limits(execution_data_bytes_max=60)
    world = World(flow(CAUGHT), replies={"f": [Reply(returns={"b": "x" * 100})]}, limits=limits)
    assert (world.run().status, world.entered) == (Status.SUCCEEDED, ["t", "z"])


@pytest.mark.parametrize(
    "attribute",
    [
        "inputMappings: [{target: a, source: $input.blob}, {target: b, source: $input.blob}]",
        "serviceParams: {a: [$, $, $, $, $, $]}",
    ],
)
def test_a_task_that_gets_too_much_is_caught_before_its_first_attempt(attribute: str) -> None:
    steps = CAUGHT.replace("resourceArn: acs:fc:::services/s/functions/f", f"action: ocr:Read\n  {attribute}")
    mapped = "errorMappings: [{target: why, source: $local.error}, {target: kept, source: $input.blob}]"
    world = World(
        flow(steps.replace("name: t", f"name: t\n  {mapped}")),
        input={"blob": "x" * 200},
        limits=Limits(step_data_bytes_max=500 if attribute.startswith("service") else 300, request_bytes_max=1_000),
    )
    world.run()
    assert (world.entered, world.calls) == (["t", "z"], [])
    expected = {"why": "FnF.RuntimeError", "kept": "x" * 200 if attribute.startswith("service") else None}
    assert world.execution.output == expected


def test_an_error_s_cause_that_does_not_fit_is_left_out() -> None:
    mapped = "errorMappings: [{target: why, source: $local.error}, {target: cause, source: $local.cause}]"
    for length, shown in ((20, "y" * 20), (100, "")):
        world = _caught(Reply(raises="Bad", cause="y" * length), {"blob": "x" * 120}, mapped)
        assert world.execution.output == {"why": "Bad", "cause": shown}
        assert [each["cause"] for each in world.details(EventType.TASK_FAILED)] == ["y" * length]


def test_a_task_that_gets_too_much_and_does_not_catch_waits_for_a_redrive_without_that_data() -> None:
    steps = "- {type: task, name: t, resourceArn: 'acs:fc:::services/s/functions/f', inputMappings: [{TWICE}]}"
    steps = steps.replace("{TWICE}", "{target: a, source: $input.b}, {target: c, source: $input.b}")
    given, limits = {"b": "x" * 60}, Limits(step_data_bytes_max=100)
    world = World(flow(steps), input=given, limits=limits, waits_for_redrive=True)
    world.start()
    assert (world.scope.wait, world.scope.step_input) == (WaitKind.REDRIVE, None)


def test_a_report_that_may_be_refused_leaves_the_task_waiting() -> None:
    world = World(
        flow(CAUGHT.replace("name: t", "name: t\n  pattern: waitForCallback")), limits=Limits(step_data_bytes_max=250)
    )
    world.start()
    world.reply(Success({}))
    large = TaskReported(1, world.scope.entered_event_id, None, Success({"blob": "x" * 130}), refuse_too_large=True)
    turn = world.tell(large)
    assert (turn.outcome.kind, turn.events, turn.touched, turn.commands) == (OutcomeKind.REFUSED, [], set(), [])
    assert turn.outcome.reason.startswith("input, output and local of step t: more than 250 bytes")
    assert world.report(Success({"small": 1})).outcome.kind is OutcomeKind.APPLIED
    assert (world.execution.status, world.execution.output) == (Status.SUCCEEDED, {"small": 1})


def test_service_params_are_bounded_as_requests_are() -> None:
    params = ", ".join(f"P{number}: $" for number in range(20))
    world = World(
        flow(f"- {{type: task, name: t, action: 'ocr:Read', serviceParams: {{{params}}}}}"),
        input={"blob": "x" * 100},
        limits=Limits(request_bytes_max=1_000),
    )
    assert world.run().cause == "serviceParams of step t: more than 1000 bytes, the limit request_bytes_max"
    assert world.calls == []


# Selections of `[*]`

MANY = {"list": [1] * 100_000}
EVERY = ", ".join(f"{{target: t{number}, source: '$input.list[*]'}}" for number in range(1_000))


def _peak_bytes(world: World) -> int:
    tracemalloc.start()
    world.run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@pytest.mark.parametrize(
    ("steps", "attributes", "where"),
    [
        ("- {type: pass, name: p}", f"inputMappings: [{EVERY}]", "up to the mapping target 't1'"),
        (f"- {{type: pass, name: p, inputMappings: [{EVERY}]}}", "", "up to the mapping target 't1'"),
        ("- {type: pass, name: p}", f"outputMappings: [{EVERY}]", "up to the mapping target 't1'"),
    ],
)
def test_mappings_that_select_more_than_a_document_can_hold_fail_at_once(
    steps: str, attributes: str, where: str
) -> None:
    world = World(flow(steps, attributes), input=MANY)
    assert _peak_bytes(world) < 20_000_000
    assert (world.execution.status, world.execution.error) == (Status.FAILED, "FnF.RuntimeError")
    cause = f"{where}: `[*]` selects more than 131072 elements, half the limit step_data_bytes_max"
    assert world.execution.cause == cause


def test_service_params_that_select_more_than_a_request_can_hold_fail_at_once() -> None:
    params = ", ".join(f"P{number}: ['$.list[*]']" for number in range(1_000))
    world = World(flow(f"- {{type: task, name: t, action: 'ocr:Read', serviceParams: {{{params}}}}}"), input=MANY)
    assert _peak_bytes(world) < 40_000_000
    assert (world.execution.error, world.calls) == ("FnF.RuntimeError", [])
    cause = "serviceParams.P5: `[*]` selects more than 524288 elements, half the limit request_bytes_max"
    assert world.execution.cause == cause


def test_one_path_can_select_everything_in_a_document_within_the_limit() -> None:
    document = {"l": [[0], [0], [0]]}  # 21 bytes, six elements
    mappings = "inputMappings: [{target: l, source: '$input.l[*][*]'}]"
    world = World(flow("- {type: pass, name: p}", mappings), input=document, limits=Limits(step_data_bytes_max=21))
    assert world.run().status is Status.SUCCEEDED


def test_input_that_was_mapped_once_is_mapped_again_under_a_smaller_limit() -> None:
    world = World(
        flow("- {type: wait, name: w, duration: 5}", "inputMappings: [{target: l, source: '$input.l[*]'}]"),
        input={"l": [1] * 100},
    )
    world.start()
    world.limits = Limits(step_data_bytes_max=100)
    world.run()
    assert world.execution.error == "FnF.RuntimeError"


# Comparisons of conditions

SAME = {"a": [0] * 40_000, "b": [0] * 40_000}


def test_a_choice_whose_conditions_compare_too_much_picks_nothing_and_fails() -> None:
    options = ", ".join(["{condition: '$.a != $.b'}"] * 1_000)
    world = World(flow(f"- {{type: choice, name: c, choices: [{options}], default: {{goto: c}}}}"), input=SAME)
    world.run()
    assert (world.entered, world.execution.error) == (["c"], "FnF.RuntimeError")
    assert world.execution.cause == "the conditions compare more than 100000 values of the step's input"


def test_a_choice_that_compares_much_counts_as_many_steps_of_its_turn() -> None:
    loop = "- {type: choice, name: c, choices: [{condition: '$.a == $.b', goto: c}]}"
    world = World(flow(loop), input=SAME, limits=Limits(turn_steps_max=140))
    turn = world.start()
    assert (turn.more, world.entered) == (True, ["c", "c", "c"])


# Events


def test_the_end_is_the_last_event_that_fits_into_a_history() -> None:
    world = World(flow(LOOP), limits=Limits(events_max=50))
    world.run()
    assert (len(world.events), world.events[-1].type) == (50, EventType.EXECUTION_FAILED)
    assert (world.execution.error, world.execution.cause) == (
        "FnF.RuntimeError",
        "the execution used up its 50 events",
    )


def test_an_execution_that_just_fits_succeeds() -> None:
    world = World(flow("- {type: pass, name: p}"), limits=Limits(events_max=6))
    assert world.run().status is Status.SUCCEEDED
    assert World(flow("- {type: pass, name: p}"), limits=Limits(events_max=5)).run().status is Status.FAILED


def test_calls_are_cancelled_when_the_history_is_full() -> None:
    world = World(flow(FAN), input={"list": [1, 2]}, limits=Limits(events_max=14))
    world.start()
    first, second = world.calls
    turn = world.reply(Success({}), first)
    assert (world.execution.status, turn.more) == (Status.FAILED, False)
    assert CancelInvocation(second.scope_id, second.wait_id) in turn.commands


def test_a_call_is_cancelled_once_if_its_time_out_finds_a_full_history() -> None:
    steps = "- {type: task, name: t, resourceArn: 'acs:fc:::services/s/functions/f', timeoutSeconds: 1}"
    world = World(flow(steps), limits=Limits(events_max=6))
    world.start()
    (call,) = world.calls
    assert world.wake().commands == [CancelInvocation(call.scope_id, call.wait_id)]
    assert world.execution.status is Status.FAILED


def test_a_report_to_a_full_history_has_no_event() -> None:
    steps = "- {type: task, name: t, resourceArn: 'acs:fc:::services/s/functions/f', pattern: waitForCallback}"
    world = World(flow(steps), limits=Limits(events_max=6))
    world.start()
    assert world.report(Success({})).outcome.event_id == 0
    assert world.execution.status is Status.FAILED


# Open lists


def test_too_many_open_lists_fail_the_execution_and_all_are_closed() -> None:
    world = World(flow(FAN), input={"list": [1, 2, 3]}, limits=Limits(live_scopes_max=3))
    turn = world.start()
    assert (world.execution.error, world.execution.cause) == (
        "FnF.RuntimeError",
        "more than 3 step lists are open at once",
    )
    assert _types(world)[3:] == [
        "IterationEntered", "IterationEntered", "IterationExited", "IterationExited",
        "StepFailed", "StepExited", "ExecutionFailed",
    ]  # fmt: skip
    assert turn.commands == []
    assert World(flow(FAN), input={"list": [1, 2]}, limits=Limits(live_scopes_max=3)).start().commands


def test_finished_iterations_count_as_open_lists_until_they_are_joined() -> None:
    limits = Limits(live_scopes_max=3, foreach_concurrency_max=1)
    world = World(flow(FAN), input={"list": [1, 2, 3]}, limits=limits, replies={"f": [Reply(returns={})]})
    assert world.run().error == "FnF.RuntimeError"


def test_branches_count_too() -> None:
    steps = """
        - type: parallel
          name: both
          branches: [{steps: [{type: pass, name: a}]}, {steps: [{type: pass, name: b}]}]
    """
    world = World(flow(steps), limits=Limits(live_scopes_max=2))
    assert (world.run().status, world.entered) == (Status.FAILED, ["both"])


# Turns


@pytest.mark.parametrize("steps_max", [1, 2, 3, 7])
def test_a_long_run_is_divided_into_turns_with_the_same_result(steps_max: int) -> None:
    steps = FAN + "- {type: pass, name: p}\n- {type: pass, name: q}\n"
    input = {"list": list(range(5))}
    replies = {"f": [Reply(returns={})]}
    short = World(flow(steps), input=input, replies=replies, limits=Limits(turn_steps_max=steps_max))
    long = World(flow(steps), input=input, replies=replies)
    assert (short.run().output, short.execution.status) == (long.run().output, Status.SUCCEEDED)
    assert len(short.events) == len(long.events)


def test_an_endless_loop_yields_the_writer_after_every_turn() -> None:
    world = World(flow(LOOP), limits=Limits(turn_steps_max=10))
    turn = world.start()
    assert (turn.more, len(world.entered), world.scope.wait) == (True, 10, WaitKind.READY)
    assert world.tell(Continue()).more
    assert len(world.entered) == 20


CARRY = "[{type: pass, name: p}, {type: choice, name: c, default: {goto: p}}]"
COPY = """
- type: pass
  name: p
  inputMappings: [{target: list, source: $input.list}]
  outputMappings: [{target: list, source: '$input.list[*]'}]
- {type: choice, name: c, default: {goto: p}}
"""


@pytest.mark.parametrize(
    ("steps", "input", "least", "most"),
    [
        (CARRY, {"a": {"b": ["x" * 97]}}, 200, 200),
        (CARRY, {"a": {"b": ["x" * 97] * 30}}, 200, 200),
        (CARRY, {"a": {"b": ["x" * 97] * 800}}, 5, 25),
        (CARRY, {"list": [0] * 40_000}, 170, 190),
        (COPY, {"list": [0] * 40_000}, 5, 25),
    ],
    ids=["small", "medium", "large, shown in each event", "large, shown by name", "large, made anew at each step"],
)
def test_turns_are_shorter_if_their_events_show_more_data(steps: str, input: JsonObject, least: int, most: int) -> None:
    world = World(flow(steps), input=input)
    assert world.start().more
    assert least <= len(world.entered) <= most


def test_a_message_between_two_turns_leaves_the_rest_to_the_next() -> None:
    world = World(
        flow("""
            - type: parallel
              name: both
              branches:
              - steps: [{type: task, name: t, resourceArn: 'acs:fc:::services/s/functions/f'}]
              - steps: [{type: pass, name: p}, {type: pass, name: q}]
        """),
        limits=Limits(turn_steps_max=2),
    )
    world.start()
    assert world.entered == ["both", "t"]
    assert world.reply(Success({})).events
    assert "p" not in world.entered
    while world.tell(Continue()).more:
        pass
    assert world.execution.status is Status.SUCCEEDED


def test_continue_with_nothing_to_do_does_nothing() -> None:
    world = World(flow(FAN), input={"list": [1]})
    world.start()
    turn = world.tell(Continue())
    assert not (turn.events or turn.touched or turn.more)


def test_a_second_start_changes_nothing() -> None:
    world = World(flow(FAN), input={"list": [1]})
    world.start()
    assert world.ignores(Start())


# The total data of an execution

WIDE = """
- type: foreach
  name: outer
  iterationMapping: {collection: $.list, item: it}
  steps:
  - type: foreach
    name: inner
    iterationMapping: {collection: $.list, item: it}
    steps:
    - {type: wait, name: w, duration: 60}
"""
TOGETHER = "the open step lists together: more than {} bytes, the limit execution_data_bytes_max"


def _most_bytes(world: World) -> int:
    """Runs it, and returns the largest number of bytes that its lists held after a turn."""
    most = 0
    world.start()
    while world.execution.is_running and (message := world._next()):
        world.tell(message)
        most = max(most, world.execution.document_bytes)
    return most


def test_nested_iterations_are_limited_by_their_total_data() -> None:
    limit = 200_000
    limits = Limits(execution_data_bytes_max=limit, turn_steps_max=20)
    world = World(flow(WIDE), input={"list": list(range(20)), "blob": "x" * 2_000}, limits=limits)
    most = _most_bytes(world)
    assert (world.execution.error, world.execution.cause) == ("FnF.RuntimeError", TOGETHER.format(limit))
    assert limit / 2 < most <= limit
    assert world.execution.document_bytes == 0


def test_data_exactly_at_the_limit_is_accepted() -> None:
    steps = "- {type: pass, name: p, inputMappings: [{target: a, source: $input.blob}], outputMappings: []}"
    # {} of the list is 2, its step's input {"a":"…"} is 8 + 100; the execution's own input is not counted
    for limit, status in ((110, Status.SUCCEEDED), (109, Status.FAILED)):
        world = World(flow(steps), input={"blob": "x" * 100}, limits=Limits(execution_data_bytes_max=limit))
        assert world.run().status is status


def test_collected_results_count_as_they_arrive() -> None:
    """Long before the join, which would refuse them: 100 replies of 1 KB."""
    world = World(
        flow(FAN),
        input={"list": list(range(100))},
        replies={"f": [Reply(returns={"text": "x" * 1_000})]},
        limits=Limits(execution_data_bytes_max=60_000, foreach_concurrency_max=1),
    )
    most = _most_bytes(world)
    assert (world.execution.error, world.execution.cause) == ("FnF.RuntimeError", TOGETHER.format(60_000))
    assert most <= 60_000
    assert 50 < len(world.calls) < 60


def test_an_execution_over_the_limit_may_shrink() -> None:
    """An execution that grew under another limit continues as long as it shrinks."""
    step = "- {type: task, name: t, resourceArn: 'acs:fc:::services/s/functions/f', outputMappings: []}"
    world = World(flow(step), input={"blob": "x" * 1_000})
    world.start()
    world.limits = Limits(execution_data_bytes_max=100)
    world.reply(Success({}))
    assert world.execution.status is Status.SUCCEEDED
