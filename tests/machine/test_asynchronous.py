"""`InvocationType: Async` in all three patterns: submitted, awaited, and stopped when no step waits any more."""

from typing import Any

import pytest

from flowserver.machine.commands import CancelInvocation, StopInvocation
from flowserver.machine.events import EventType
from flowserver.machine.messages import (
    DeadlineReached,
    Failure,
    RetryLostCall,
    Stop,
    Success,
    TaskReplied,
    TaskReported,
)
from flowserver.machine.state import Status, WaitKind
from flowserver.machine.turn import OutcomeKind
from tests.support.flows import flow
from tests.support.world import NOW_MS, SUBMITTED, World, lines, trace

ARN = "acs:fc:::services/s/functions/f"
ASYNC = f"""
- type: task
  name: t
  resourceArn: {ARN}
  serviceParams: {{InvocationType: Async, StatefulAsyncInvocationID: $.n}}
"""
KEY, OWN_TOKEN = "id1-2-1", "token-1-2-1"


def _started(*attributes: str, steps: str = ASYNC, more: str = "", header: str = "") -> World:
    world = World(flow(steps + "".join(f"  {line}\n" for line in attributes) + more, header), input={"n": "job"})
    world.start()
    return world


# requestResponse


def test_a_submission_is_a_call_and_its_step_continues_when_it_is_accepted() -> None:
    world = _started()
    (call,) = world.calls
    assert (call.asynchronous, call.token, call.submission_key) == (True, None, KEY)
    assert call.params == {"InvocationType": "Async", "StatefulAsyncInvocationID": "job"}
    world.reply(SUBMITTED)
    assert (world.execution.status, world.execution.output) == (Status.SUCCEEDED, {})
    assert [event.type for event in world.events][3:6] == ["TaskScheduled", "TaskStarted", "TaskSucceeded"]
    assert world.stopped == []


def test_a_submission_that_is_refused_fails_the_attempt_and_can_be_retried_and_caught() -> None:
    world = _started(
        "retry: [{errors: [FC.ResourceThrottled], intervalSeconds: 2}]",
        "catch: [{errors: [FC.StatefulAsyncInvocationAlreadyExists], goto: z}]",
        more="- {type: pass, name: z}",
    )
    world.reply(Failure("FC.ResourceThrottled"))
    world.wake()
    assert [call.submission_key for call in world.calls] == [KEY, "id1-2-3"]
    world.reply(Failure("FC.StatefulAsyncInvocationAlreadyExists"))
    assert world.execution.status is Status.SUCCEEDED
    assert {event.type for event in world.events} >= {EventType.TASK_FAILED}


def test_a_lost_submission_submits_the_same_invocation() -> None:
    world = _started()
    world.lose_call()
    assert [call.submission_key for call in world.calls] == [KEY, KEY]


def test_the_type_may_come_from_the_input() -> None:
    steps = ASYNC.replace("Async,", "$.kind,")
    kinds = [World(flow(steps), input={"n": "job", "kind": kind}) for kind in ("Async", "Sync")]
    for world in kinds:
        world.start()
    assert [world.calls[0].asynchronous for world in kinds] == [True, False]


# sync


def test_the_history_of_an_awaited_invocation() -> None:
    world = _started("pattern: sync")
    assert world.calls[0].token == OWN_TOKEN
    world.reply(SUBMITTED)
    assert world.scope.wait is WaitKind.TOKEN
    world.report(Success({"r": 2}))
    assert trace(world.events)[3:] == lines(f"""
         4 3 t TaskScheduled      {{"resourceArn":"{ARN}","pattern":"sync","input":{{"n":"job"}}}}
         5 4 t TaskStarted        {{}}
         6 5 t TaskSubmitted      {{"output":{{}}}}
         7 6 t TaskSucceeded      {{"output":{{"r":2}}}}
         8 7 t StepSucceeded      {{"output":{{"r":2}}}}
         9 8 t StepExited         {{"local":{{"r":2}}}}
        10 9 - ExecutionSucceeded {{"output":{{"r":2}}}}
    """)


def test_its_end_may_be_known_before_its_submission() -> None:
    world = _started("pattern: sync", more="- {type: wait, name: w, duration: 5}")
    assert world.report(Success({"r": 2})).outcome.kind is OutcomeKind.APPLIED
    assert world.ignores(TaskReplied(1, 1, SUBMITTED))


def test_its_failure_is_the_step_s_and_a_retry_submits_another() -> None:
    world = _started("pattern: sync", "retry: [{errors: [Boom], intervalSeconds: 5}]")
    world.reply(SUBMITTED)
    world.report(Failure("Boom", "why"))
    world.wake()
    assert [(call.submission_key, call.token) for call in world.calls] == [(KEY, OWN_TOKEN), ("id1-2-3", "token-1-2-3")]
    assert world.ignores(TaskReported(1, 2, 1, Success({"r": 1})))
    assert world.stopped == []


def test_a_failed_submission_is_recorded_as_such() -> None:
    world = _started("pattern: sync")
    world.reply(Failure("FC.FunctionNotFound", "no f"))
    assert world.event(EventType.TASK_SUBMIT_FAILED) == {"error": "FC.FunctionNotFound", "cause": "no f"}


def test_a_report_with_a_user_s_token_does_not_reach_a_sync_step() -> None:
    world = _started("pattern: sync", "inputMappings: [{target: n, source: $context.task.token}]")
    assert world.calls[0].input == {"n": None}


# waitForCallback


def test_a_callback_is_awaited_after_the_submission() -> None:
    world = _started("pattern: waitForCallback")
    assert (world.calls[0].asynchronous, world.calls[0].token) == (True, "token-1-2")
    world.reply(SUBMITTED)
    assert world.scope.wait is WaitKind.TOKEN
    world.report(Success({"s": "ok"}))
    assert (world.execution.output, world.stopped) == ({"s": "ok"}, [])


# Stopping


@pytest.mark.parametrize("pattern", ["sync", "waitForCallback"])
def test_a_time_out_stops_the_invocation(pattern: str) -> None:
    world = _started(f"pattern: {pattern}", "timeoutSeconds: 7", "retry: [{errors: [FnF.TaskTimeout]}]")
    world.reply(SUBMITTED)
    assert world.wake().commands == [StopInvocation(KEY)]
    world.wake()
    world.reply(SUBMITTED)
    world.wake()
    assert world.stopped == [KEY, "id1-2-3"]


@pytest.mark.parametrize("pattern", ["requestResponse", "sync", "waitForCallback"])
def test_a_time_out_of_the_submission_stops_a_possible_invocation(pattern: str) -> None:
    world = _started(f"pattern: {pattern}", "timeoutSeconds: 7")
    assert world.wake().commands == [CancelInvocation(1, 1), StopInvocation(KEY)]


def test_a_retry_pause_holds_no_invocation() -> None:
    world = _started("pattern: sync", "retry: [{errors: [Boom]}]")
    world.reply(SUBMITTED)
    world.report(Failure("Boom"))
    assert world.tell(Stop()).commands == [StopInvocation()]


SIDE_BY_SIDE = f"""
- type: parallel
  name: p
  branches:
    - steps:
        - {{type: task, name: fails, resourceArn: {ARN}}}
    - steps:
        - {{type: task, name: waits, resourceArn: {ARN}, pattern: sync, serviceParams: {{InvocationType: Async}}}}
    - steps:
        - {{type: task, name: asks, resourceArn: {ARN}, pattern: waitForCallback}}
    - steps:
        - {{type: task, name: forgets, resourceArn: {ARN}, serviceParams: {{InvocationType: Async}}}}
        - {{type: wait, name: w, duration: 100}}
"""


def test_the_failure_of_a_branch_stops_its_siblings_invocations() -> None:
    world = _started(steps=SIDE_BY_SIDE)
    fails, waits, asks, forgets = world.calls
    for call in (waits, asks, forgets):
        world.reply(SUBMITTED, call)
    world.reply(Failure("Boom"), fails)
    assert (world.execution.status, world.stopped) == (Status.FAILED, [waits.submission_key])


@pytest.mark.parametrize("message", [Stop("Enough"), DeadlineReached()])
def test_an_execution_ended_from_outside_stops_all_its_invocations(message: Any) -> None:
    world = _started(steps=SIDE_BY_SIDE, header="timeoutSeconds: 60\n")
    world.now_ms = NOW_MS + 60_000
    assert [each for each in world.tell(message).commands if isinstance(each, StopInvocation)] == [StopInvocation()]


def test_nothing_is_stopped_for_steps_that_submit_nothing() -> None:
    world = _started("timeoutSeconds: 7", steps=ASYNC.replace("Async,", "Sync,"))
    assert world.wake().commands == [CancelInvocation(1, 1)]


def test_nothing_is_ordered_again_after_the_submission() -> None:
    world = _started("pattern: sync")
    world.reply(SUBMITTED)
    assert world.ignores(RetryLostCall(1, 1, 1))


# Unknown types


@pytest.mark.parametrize("value", ["async", "''", "1", "null", "[Async]"])
@pytest.mark.parametrize(
    ("pattern", "event"),
    [("requestResponse", "TaskFailed"), ("sync", "TaskFailed"), ("waitForCallback", "TaskSubmitFailed")],
)
def test_an_unknown_invocation_type_fails_the_attempt(value: str, pattern: str, event: str) -> None:
    given = f"inputMappings: [{{target: kind, source: {value}}}, {{target: n, source: job}}]"
    world = _started(f"pattern: {pattern}", given, steps=ASYNC.replace("Async,", "$.kind,"))
    assert (world.execution.error, world.commands) == ("FC.InvalidArgument", [])
    assert world.events[5].type == event


def test_an_unknown_invocation_type_can_be_retried_and_caught() -> None:
    world = _started(
        "retry: [{errors: [FC.InvalidArgument], intervalSeconds: 2, maxAttempts: 1}]",
        "catch: [{errors: [FC.InvalidArgument], goto: z}]",
        steps=ASYNC.replace("Async,", "$.n,"),
        more="- {type: pass, name: z}",
    )
    world.wake()
    assert (world.pauses_seconds, world.execution.status) == ([2], Status.SUCCEEDED)


def test_the_invocation_type_of_another_product_s_action_is_its_own() -> None:
    world = _started(steps="- {type: task, name: t, action: 'ocr:ReadCard', serviceParams: {InvocationType: async}}")
    assert world.scope.wait is WaitKind.TASK
