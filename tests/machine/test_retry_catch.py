"""Retry first, then catch, then failure: the policy, the rule, and the output."""

import pytest

from flowserver.language.graph import RetryPolicy
from flowserver.machine.events import EventType
from flowserver.machine.mappings import MissingSource
from flowserver.machine.messages import Failure, Success
from flowserver.machine.retry_and_catch import choose_retry, pause_ms
from flowserver.machine.state import Status
from tests.conformance.cases import Reply
from tests.support.flows import flow
from tests.support.world import World, lines, trace


def _world(
    *attributes: str, raises: tuple[str, ...] = ("Bad",), more: str = "", missing_source: MissingSource = "null"
) -> World:
    head = "- type: task\n  name: t\n  resourceArn: acs:fc:::services/s/functions/f\n"
    body = "".join(f"  {line}\n" for line in attributes)
    replies = [Reply(raises=error, cause="why") for error in raises]
    return World(flow(head + body + more), input={"n": 1}, replies={"f": replies}, missing_source=missing_source)


# Retry


def test_a_retry_repeats_the_task_events_inside_one_entry_of_the_step() -> None:
    world = _world("retry: [{errors: [Bad], intervalSeconds: 2, multiplier: 1.5, maxAttempts: 2}]")
    world.run()
    scheduled = '{"resourceArn":"acs:fc:::services/s/functions/f","pattern":"requestResponse","input":{"n":1}}'
    assert trace(world.events)[3:] == lines(f"""
         4  3 t TaskScheduled   {scheduled}
         5  4 t TaskStarted     {{}}
         6  5 t TaskFailed      {{"error":"Bad","cause":"why","retry":{{"number":1,"max":2,"pauseSeconds":2.0}}}}
         7  6 t TaskScheduled   {scheduled}
         8  7 t TaskStarted     {{}}
         9  8 t TaskFailed      {{"error":"Bad","cause":"why","retry":{{"number":2,"max":2,"pauseSeconds":3.0}}}}
        10  9 t TaskScheduled   {scheduled}
        11 10 t TaskStarted     {{}}
        12 11 t TaskFailed      {{"error":"Bad","cause":"why"}}
        13 12 t StepFailed      {{"error":"Bad","cause":"why"}}
        14 13 t StepExited      {{"local":{{}}}}
        15 14 - ExecutionFailed {{"error":"Bad","cause":"why"}}
    """)
    assert [call.attempt for call in world.calls] == [1, 2, 3]
    assert len({call.wait_id for call in world.calls}) == 3
    assert len({call.idempotency_key for call in world.calls}) == 1


def test_only_the_first_policy_that_names_the_error_counts_even_if_exhausted() -> None:
    world = _world("retry: [{errors: [Bad], maxAttempts: 1}, {errors: [FnF.ALL], maxAttempts: 9}]")
    world.run()
    assert (world.pauses_seconds, world.execution.error) == ([1], "Bad")


def test_each_policy_counts_its_own_retries() -> None:
    retry = "retry: [{errors: [A], intervalSeconds: 10}, {errors: [B], intervalSeconds: 20, maxAttempts: 1}]"
    world = _world(retry, raises=("A", "B", "A", "B"))
    world.run()
    assert (world.pauses_seconds, world.execution.error) == ([10, 20, 20], "B")


def test_a_policy_without_attempts_hides_its_errors_from_later_policies() -> None:
    world = _world("retry: [{errors: [Bad], maxAttempts: 0}, {errors: [FnF.ALL]}]")
    assert (world.run().error, world.pauses_seconds) == ("Bad", [])


def test_the_longest_interval_limits_the_pause() -> None:
    world = _world("retry: [{errors: [Bad], intervalSeconds: 10, maxIntervalSeconds: 15}]")
    world.run()
    assert world.pauses_seconds == [10, 15, 15]


def test_entering_the_step_again_restarts_the_count() -> None:
    world = _world(
        "retry: [{errors: [Bad], maxAttempts: 1}]",
        "catch: [{errors: [FnF.ALL], goto: w}]",
        more="- {type: choice, name: w, default: {goto: t}}",
    )
    world.start()
    world.reply(Failure("Bad"))
    world.wake()
    world.reply(Failure("Bad"))
    assert (world.entered, world.scope.retries) == (["t", "w", "t"], {})
    world.reply(Failure("Bad"))
    assert (world.pauses_seconds, world.scope.retries) == ([1, 1], {0: 1})


@pytest.mark.parametrize(
    ("policy", "retry", "ms"),
    [
        (RetryPolicy(frozenset()), 1, 1_000),
        (RetryPolicy(frozenset()), 4, 8_000),
        (RetryPolicy(frozenset()), 18, 86_400_000),
        (RetryPolicy(frozenset()), 100_000, 86_400_000),
        (RetryPolicy(frozenset(), multiplier=86_400), 1_000_000, 86_400_000),
        (RetryPolicy(frozenset(), interval_seconds=86_400, multiplier=1.7e308), 2, 86_400_000),
        (RetryPolicy(frozenset(), interval_seconds=0), 100_000, 0),
        (RetryPolicy(frozenset(), max_interval_seconds=0), 3, 0),
        (RetryPolicy(frozenset(), interval_seconds=3, multiplier=1), 999_999, 3_000),
        (RetryPolicy(frozenset(), interval_seconds=1, multiplier=1.1), 3, 1_210),
    ],
)
def test_pauses(policy: RetryPolicy, retry: int, ms: int) -> None:
    assert pause_ms(policy, retry) == ms


def test_names_match_exactly() -> None:
    policies = tuple(RetryPolicy(frozenset({name})) for name in ("bad", "Bad.", "*", "FC.ALL"))
    assert choose_retry(policies, {}, "Bad") is None
    assert choose_retry((*policies, RetryPolicy(frozenset({"FnF.ALL"}))), {}, "Bad") == 4


# Catch


def test_a_caught_error_closes_the_step_and_continues_at_the_goto() -> None:
    world = _world(
        "errorMappings: [{target: name, source: $local.error}, {target: n, source: $input.n}]",
        "catch: [{errors: [Bad], goto: z}]",
        "end: true",
        more="- {type: fail, name: y}\n- {type: pass, name: z}",
    )
    world.run()
    assert trace(world.events)[6:9] == lines("""
        7 6 t StepFailed  {"error":"Bad","cause":"why","caughtBy":"z","catchRule":0}
        8 7 t StepExited  {"local":{"name":"Bad","n":1}}
        9 8 z StepEntered {"input":{"n":1},"local":{"name":"Bad","n":1}}
    """)
    assert (world.execution.status, world.entered) == (Status.SUCCEEDED, ["t", "z"])


def test_code_is_a_synonym_of_error_and_the_context_is_available() -> None:
    mappings = "errorMappings: [{target: a, source: $local.code}, {target: b, source: $context.step.name}]"
    world = _world(mappings, "catch: [{errors: [FnF.ALL], goto: z}]", more="- {type: pass, name: z}")
    assert world.run().output == {"a": "Bad", "b": "t"}


def test_without_error_mappings_a_caught_error_leaves_no_trace_in_the_data() -> None:
    world = _world("catch: [{errors: [FnF.ALL], goto: z}]", more="- {type: pass, name: z}")
    assert world.run().output == {}


def test_the_first_rule_that_names_the_error_applies() -> None:
    world = _world(
        "catch: [{errors: [Other], goto: w}, {errors: [Bad], goto: x}, {errors: [FnF.ALL], goto: y}]",
        more="- {type: fail, name: w}\n- {type: succeed, name: x}\n- {type: fail, name: y}",
    )
    world.run()
    assert world.entered == ["t", "x"]


def test_retry_comes_before_catch() -> None:
    world = _world(
        "retry: [{errors: [Bad], maxAttempts: 1}]",
        "catch: [{errors: [Bad], goto: z}]",
        more="- {type: pass, name: z}",
    )
    assert (world.run().status, world.pauses_seconds) == (Status.SUCCEEDED, [1])


def test_an_error_that_no_rule_names_fails_the_step() -> None:
    world = _world("catch: [{errors: [Other], goto: z}]", more="- {type: pass, name: z}")
    assert (world.run().error, world.entered) == ("Bad", ["t"])


@pytest.mark.parametrize("attribute", ["inputMappings", "outputMappings", "errorMappings"])
def test_a_step_does_not_catch_the_failure_of_its_own_mappings(attribute: str) -> None:
    world = _world(
        f"{attribute}: [{{target: a, source: $local.gone}}]",
        "retry: [{errors: [FnF.RuntimeError]}]",
        "catch: [{errors: [FnF.ALL], goto: z}]",
        more="- {type: pass, name: z}",
        missing_source="fail",
    )
    world.start()
    if attribute == "outputMappings":
        world.reply(Success({}))
    elif attribute == "errorMappings":
        world.reply(Failure("Bad"))
    assert (world.execution.error, world.pauses_seconds) == ("FnF.RuntimeError", [])
    assert EventType.STEP_FAILED in {event.type for event in world.events}
