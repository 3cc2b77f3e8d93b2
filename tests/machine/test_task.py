"""`task`: the call, its end, time-outs, lost calls, and late messages."""

from typing import Any

import pytest

from flowserver.base.json_values import load_json
from flowserver.base.limits import Limits
from flowserver.base.request_ids import call_request_id
from flowserver.language.graph import FlowTarget, FunctionTarget, Pattern
from flowserver.machine.commands import CancelInvocation, InvokeTask
from flowserver.machine.events import EventType
from flowserver.machine.messages import Failure, RetryLostCall, Success, TaskReplied, TaskReported, TimerFired
from flowserver.machine.state import Status, WaitKind
from tests.support.flows import flow
from tests.support.world import NOW_MS, World, lines, trace

ARN = "acs:fc:::services/s/functions/f"


def _task(*attributes: str, more: str = "") -> World:
    steps = "\n".join(f"  {line}" for line in (f"resourceArn: {ARN}", *attributes) if line)
    if any(line.startswith(("resourceArn", "action")) for line in attributes):
        steps = "\n".join(f"  {line}" for line in attributes)
    world = World(flow(f"- type: task\n  name: t\n{steps}\n{more}"), input={"n": 1})
    world.start()
    return world


def test_the_history_of_a_call() -> None:
    world = _task("outputMappings: [{target: r, source: $local.value}, {target: n, source: $input.n}]")
    world.reply(Success({"value": 2}))
    assert trace(world.events) == lines(f"""
         1 0 - ExecutionStarted   {{"input":{{"n":1}}}}
         2 1 t StepEntered        {{"input":{{"n":1}},"local":{{}}}}
         3 2 t StepStarted        {{"input":{{"n":1}}}}
         4 3 t TaskScheduled      {{"resourceArn":"{ARN}","pattern":"requestResponse","input":{{"n":1}}}}
         5 4 t TaskStarted        {{}}
         6 5 t TaskSucceeded      {{"output":{{"value":2}}}}
         7 6 t StepSucceeded      {{"output":{{"value":2}}}}
         8 7 t StepExited         {{"local":{{"r":2,"n":1}}}}
         9 8 - ExecutionSucceeded {{"output":{{"r":2,"n":1}}}}
    """)


def test_the_history_of_a_failed_call() -> None:
    world = _task()
    turn = world.reply(Failure("Boom", "why"))
    assert trace(turn.events) == lines("""
        6 5 t TaskFailed      {"error":"Boom","cause":"why"}
        7 6 t StepFailed      {"error":"Boom","cause":"why"}
        8 7 t StepExited      {"local":{}}
        9 8 - ExecutionFailed {"error":"Boom","cause":"why"}
    """)
    assert turn.commands == []


@pytest.mark.parametrize("result", [Success({}), Failure("Boom", "why")], ids=["succeeded", "failed"])
def test_the_event_of_a_reply_has_its_request_id(result: Success | Failure) -> None:
    world = _task("retry: [{errors: [Boom], intervalSeconds: 1}]")
    call = world.calls[0]
    turn = world.tell(TaskReplied(call.scope_id, call.wait_id, result, "r-1"))
    assert load_json(turn.events[0].detail)["requestId"] == "r-1"
    assert all("requestId" not in event.detail for event in turn.events[1:])


def test_the_event_of_a_submission_has_its_request_id() -> None:
    world = _task(f"resourceArn: {ARN}", "pattern: waitForCallback")
    call = world.calls[0]
    world.tell(TaskReplied(call.scope_id, call.wait_id, Success({"n": 1}), "r-1"))
    assert world.event(EventType.TASK_SUBMITTED) == {"output": {"n": 1}, "requestId": "r-1"}


def test_the_ordered_call() -> None:
    world = _task("timeoutSeconds: 7")
    assert world.calls == [
        InvokeTask(
            scope_id=1,
            wait_id=1,
            attempt=1,
            step_name="t",
            target=FunctionTarget(ARN, "s", "", "f"),
            pattern=Pattern.REQUEST_RESPONSE,
            input={"n": 1},
            params=None,
            token=None,
            started_event_id=5,
            idempotency_key="id1-2",
            submission_key="id1-2-1",
            deadline_at=NOW_MS + 7_000,
        )
    ]
    assert (world.scope.wait, world.scope.wake_at) == (WaitKind.TASK, NOW_MS + 7_000)


def test_without_a_timeout_a_call_has_no_deadline() -> None:
    world = _task()
    assert (world.calls[0].deadline_at, world.scope.wake_at) == (None, None)


# Time-outs


def test_a_call_that_times_out_is_dropped() -> None:
    world = _task("timeoutSeconds: 7")
    turn = world.wake()
    assert turn.commands == [CancelInvocation(1, 1)]
    assert (world.execution.status, world.execution.error) == (Status.FAILED, "FnF.TaskTimeout")
    assert world.event(EventType.TASK_TIMED_OUT) == {
        "error": "FnF.TaskTimeout",
        "cause": "the attempt took longer than 7 seconds",
        "requestId": call_request_id("id1-2", 1),
    }


@pytest.mark.parametrize(
    "attributes",
    [
        ("resourceArn: acs:fnf:::flow/child", "pattern: sync"),
        ("action: 'fnf:StartExecution'", "serviceParams: {FlowName: child}"),
        (f"resourceArn: {ARN}", "serviceParams: {InvocationType: Async}"),
        ("resourceArn: acs:mns:::/queues/q/messages", "serviceParams: {MessageBody: m}"),
    ],
    ids=["sub-flow", "start", "submission", "message"],
)
def test_a_time_out_without_a_call_has_no_request_id(attributes: tuple[str, ...]) -> None:
    world = _task(*attributes, "timeoutSeconds: 7")
    world.wake()
    assert set(world.event(EventType.TASK_TIMED_OUT)) == {"error", "cause"}


def test_every_attempt_has_the_full_time_limit() -> None:
    world = _task("timeoutSeconds: 7", "retry: [{errors: [FnF.TaskTimeout], intervalSeconds: 100}]")
    world.wake()
    assert world.scope.wake_at == NOW_MS + 107_000
    world.wake()
    assert (world.scope.wait, world.scope.wake_at) == (WaitKind.TASK, NOW_MS + 114_000)
    world.reply(Success({"late": False}))
    assert world.execution.output == {"late": False}


def test_a_time_out_is_neither_early_nor_repeated() -> None:
    world = _task("timeoutSeconds: 7", "retry: [{errors: [FnF.ALL], intervalSeconds: 1}]")
    fired = TimerFired(1, 1)
    assert world.ignores(fired)
    world.wake()
    assert world.ignores(fired)
    assert not _task().tell(TimerFired(1, 1)).events


def test_an_answer_after_the_time_out_changes_nothing() -> None:
    world = _task("timeoutSeconds: 7", "retry: [{errors: [FnF.ALL], intervalSeconds: 1}]")
    world.wake()
    late = TaskReplied(1, 1, Success({}))
    assert world.ignores(late)
    world.wake()
    assert world.scope.wait is WaitKind.TASK
    assert world.ignores(late)


def test_a_time_out_reported_by_the_call_itself_is_recorded_as_one() -> None:
    world = _task()
    world.reply(Failure("FnF.TaskTimeout", "gateway"))
    assert world.event(EventType.TASK_TIMED_OUT) == {"error": "FnF.TaskTimeout", "cause": "gateway"}


# Lost calls, duplicates, unknown messages


def test_a_lost_call_is_ordered_again_under_the_same_wait_and_key() -> None:
    world = _task("timeoutSeconds: 7")
    first = world.calls[0]
    turn = world.lose_call()
    assert turn.events == []
    again = world.calls[1]
    assert (again.attempt, world.scope.attempt) == (2, 2)
    assert (again.wait_id, again.idempotency_key, again.deadline_at) == (
        first.wait_id,
        first.idempotency_key,
        first.deadline_at,
    )
    world.reply(Success({}), first)
    assert world.execution.status is Status.SUCCEEDED


def test_only_the_first_report_of_a_lost_call_repeats_it() -> None:
    world = _task()
    assert world.tell(RetryLostCall(1, 1, 1)).commands
    assert world.ignores(RetryLostCall(1, 1, 1))


def test_the_second_answer_changes_nothing() -> None:
    world = _task(more="- {type: wait, name: w, duration: 5}")
    world.reply(Success({"a": 1}))
    assert world.ignores(TaskReplied(1, 1, Success({"a": 2})))
    assert world.ignores(RetryLostCall(1, 1, 1))


@pytest.mark.parametrize(
    "message", [TaskReplied(9, 1, Success({})), TaskReplied(1, 9, Success({})), RetryLostCall(1, 9, 1)]
)
def test_messages_for_waits_that_never_existed(message: Any) -> None:
    assert _task().ignores(message)


def test_a_report_does_not_reach_a_removed_scope_or_another_entry_of_the_step() -> None:
    world = _task("pattern: waitForCallback")
    assert world.ignores(TaskReported(9, 2, None, Success({})))
    assert world.ignores(TaskReported(1, 1, None, Success({})))


def test_a_wait_step_accepts_no_answers() -> None:
    world = World(flow("- {type: wait, name: w, duration: 5}"))
    world.start()
    assert world.ignores(TaskReplied(1, 1, Success({})))
    assert world.ignores(RetryLostCall(1, 1, 1))


def test_an_answer_for_a_scope_that_is_ready_changes_nothing() -> None:
    steps = "- {type: pass, name: p}\n- {type: pass, name: q}"
    world = World(flow(steps), limits=Limits(turn_steps_max=1))
    world.start()
    assert world.scope.wait is WaitKind.READY
    assert world.ignores(TaskReplied(1, 0, Success({})))
    assert world.ignores(TaskReported(1, world.scope.entered_event_id, None, Success({})))
    assert world.ignores(TimerFired(1, 0))


# Parameters


def test_an_action_s_parameters_come_from_the_step_s_input() -> None:
    world = _task(
        "action: ocr:ReadCard",
        "inputMappings: [{target: pic, source: {url: u, tags: [x, y]}}]",
        "serviceParams: {Url: $.pic.url, Side: face, Deep: {list: [1, '$.pic.tags[1]', $]}, All: $}",
    )
    all_input = {"pic": {"url": "u", "tags": ["x", "y"]}}
    deep = {"list": [1, "y", all_input]}
    assert world.calls[0].params == {"Url": "u", "Side": "face", "Deep": deep, "All": all_input}
    assert world.event(EventType.TASK_SCHEDULED)["action"] == "ocr:ReadCard"


@pytest.mark.parametrize("value", ["$.gone", "[1, [$.gone]]", "{a: {b: $.gone}}"])
def test_a_missing_parameter_fails_the_step_before_it_is_scheduled(value: str) -> None:
    world = _task("action: ocr:ReadCard", f"serviceParams: {{P: {value}}}", "catch: [{errors: [FnF.ALL], goto: t}]")
    assert (world.execution.error, world.execution.cause) == (
        "FnF.RuntimeError",
        "serviceParams.P: $.gone was not found in the step's input",
    )
    assert world.calls == []


def test_a_sub_flow_gets_its_parameters() -> None:
    world = _task("resourceArn: acs:fnf:::flow/child", "serviceParams: {Input: $, ExecutionName: run}")
    call = world.calls[0]
    assert call.target == FlowTarget("acs:fnf:::flow/child", "child")
    assert (call.params, call.token) == ({"Input": {"n": 1}, "ExecutionName": "run"}, None)
    world.reply(Success({"Name": "run"}))
    assert world.execution.output == {"Name": "run"}
