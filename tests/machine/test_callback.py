"""`waitForCallback` and `sync`: submissions, and reports that are early, late, repeated or at the wrong moment."""

import pytest

from flowserver.base.limits import Limits
from flowserver.machine.commands import CancelInvocation
from flowserver.machine.events import EventType
from flowserver.machine.messages import Failure, RetryLostCall, Success, TaskReplied, TaskReported
from flowserver.machine.state import Status, WaitKind
from flowserver.machine.turn import OutcomeKind
from tests.support.flows import flow
from tests.support.world import NOW_MS, SUBMITTED, World, lines, trace

CALLBACK = """
- type: task
  name: ask
  resourceArn: acs:fc:::services/s/functions/notify
  pattern: waitForCallback
  inputMappings: [{target: token, source: $context.task.token}]
"""
CHILD = """
- type: task
  name: sub
  resourceArn: acs:fnf:::flow/child
  pattern: sync
"""
TOKEN = "token-1-2"
RETRY = "  retry: [{errors: [FnF.ALL], intervalSeconds: 5}]\n"


def _started(steps: str, limits: Limits | None = None) -> World:
    world = World(flow(steps), limits=limits)
    world.start()
    return world


# Callbacks


def test_the_history_of_a_callback() -> None:
    world = _started(CALLBACK)
    world.reply(Success({"queued": True}))
    assert world.scope.wait is WaitKind.TOKEN
    assert world.report(Success({"s": "ok"})).outcome.event_id == 7
    arn = "acs:fc:::services/s/functions/notify"
    assert trace(world.events)[2:] == lines(f"""
         3 2 ask StepStarted        {{"input":{{"token":"{TOKEN}"}}}}
         4 3 ask TaskScheduled      {{"resourceArn":"{arn}","pattern":"waitForCallback","input":{{"token":"{TOKEN}"}}}}
         5 4 ask TaskStarted        {{}}
         6 5 ask TaskSubmitted      {{"output":{{"queued":true}}}}
         7 6 ask TaskSucceeded      {{"output":{{"s":"ok"}}}}
         8 7 ask StepSucceeded      {{"output":{{"s":"ok"}}}}
         9 8 ask StepExited         {{"local":{{"s":"ok"}}}}
        10 9 -   ExecutionSucceeded {{"output":{{"s":"ok"}}}}
    """)


def test_a_token_exists_for_callback_tasks_only() -> None:
    world = _started(CALLBACK.replace("  pattern: waitForCallback\n", ""))
    assert (world.calls[0].input, world.calls[0].token) == ({"token": None}, None)


def test_a_sub_flow_may_wait_for_a_callback_too() -> None:
    world = _started(CHILD.replace("sync", "waitForCallback"))
    world.reply(SUBMITTED)
    assert (world.scope.wait, world.calls[0].token) == (WaitKind.TOKEN, TOKEN)


def test_a_report_may_come_before_the_submission_is_confirmed() -> None:
    world = _started(CALLBACK + "- {type: wait, name: w, duration: 5}")
    turn = world.report(Success({"s": "ok"}))
    assert turn.outcome.kind is OutcomeKind.APPLIED
    assert turn.commands == [CancelInvocation(1, 1, unless_begun=True)]  # it may still wait for a slot
    assert world.ignores(TaskReplied(1, 1, SUBMITTED))
    assert EventType.TASK_SUBMITTED not in {event.type for event in world.events}


def test_a_failure_may_be_reported_early_and_is_retried() -> None:
    world = _started(CALLBACK + RETRY)
    world.report(Failure("Rejected"))
    assert world.scope.wait is WaitKind.TIMER
    assert world.ignores(TaskReplied(1, 1, SUBMITTED))
    world.wake()
    assert [call.token for call in world.calls] == [TOKEN, TOKEN]


def test_the_second_report_changes_nothing() -> None:
    world = _started(CALLBACK + "- {type: wait, name: w, duration: 5}")
    world.reply(SUBMITTED)
    assert world.report(Success({"n": 1})).commands == []
    assert world.ignores(TaskReported(1, 2, None, Success({"n": 2})))
    world.wake()
    assert world.ignores(TaskReported(1, 2, None, Success({"n": 2})), OutcomeKind.ENDED)
    assert world.execution.output == {"n": 1}


def test_a_report_during_a_retry_pause_is_refused_and_one_after_it_is_accepted() -> None:
    world = _started(CALLBACK + RETRY)
    world.report(Failure("Rejected"))
    late = TaskReported(1, 2, None, Success({"s": "late"}))
    assert world.ignores(late, OutcomeKind.NOT_NOW)
    world.wake()
    assert world.tell(late).outcome.kind is OutcomeKind.APPLIED
    assert world.execution.output == {"s": "late"}


def test_a_reported_failure_ends_the_execution_with_its_text() -> None:
    world = _started(CALLBACK)
    world.reply(SUBMITTED)
    assert world.report(Failure("Rejected", "by the boss")).outcome.event_id == 7
    assert world.event(EventType.TASK_FAILED) == {"error": "Rejected", "cause": "by the boss"}
    assert (world.execution.error, world.execution.cause) == ("Rejected", "by the boss")


def test_a_submission_that_fails_is_retried_and_then_fails_the_step() -> None:
    world = _started(CALLBACK + "  retry: [{errors: [FC.Unknown], maxAttempts: 1}]\n")
    world.reply(Failure("FC.Unknown", "connection lost"))
    world.wake()
    world.reply(Failure("FC.Unknown"))
    submit_failed = [event for event in world.events if event.type is EventType.TASK_SUBMIT_FAILED]
    assert (len(submit_failed), world.execution.error) == (2, "FC.Unknown")


def test_the_answer_of_a_submission_need_not_be_an_object() -> None:
    world = _started(CALLBACK)
    world.reply(Failure("FnF.InvalidLocal", "a list"))
    assert (world.scope.wait, world.event(EventType.TASK_SUBMITTED)) == (WaitKind.TOKEN, {"output": {}})


def test_a_submission_s_answer_too_large_for_the_history_is_left_out() -> None:
    world = _started(CALLBACK, Limits(step_data_bytes_max=100))
    world.reply(Success({"blob": "x" * 100}))
    assert (world.scope.wait, world.event(EventType.TASK_SUBMITTED)) == (WaitKind.TOKEN, {"output": {}})


def test_the_time_of_an_attempt_continues_after_the_submission() -> None:
    world = _started(CALLBACK + "  timeoutSeconds: 9\n" + RETRY)
    world.now_ms += 4_000
    world.reply(SUBMITTED)
    assert (world.scope.wait, world.scope.wake_at) == (WaitKind.TOKEN, NOW_MS + 9_000)
    turn = world.wake()
    assert (turn.events[0].type, turn.commands) == (EventType.TASK_TIMED_OUT, [])
    world.wake()
    assert world.scope.wake_at == NOW_MS + 9_000 + 5_000 + 9_000


def test_a_submission_under_way_is_dropped_at_the_time_out() -> None:
    world = _started(CALLBACK + "  timeoutSeconds: 9\n" + RETRY)
    assert world.wake().commands == [CancelInvocation(1, 1)]


def test_a_submitted_task_is_not_submitted_again() -> None:
    world = _started(CALLBACK)
    world.reply(SUBMITTED)
    assert world.ignores(RetryLostCall(1, 1, 1))
    assert world.ignores(TaskReplied(1, 1, SUBMITTED))


def test_a_token_of_an_earlier_entry_is_used_up() -> None:
    world = _started(CALLBACK + "- {type: choice, name: c, default: {goto: ask}}")
    world.report(Success({"n": 1}))
    assert world.calls[1].token != TOKEN
    assert world.ignores(TaskReported(1, 2, None, Success({"n": 2})))


# Sub-flows that the step waits for


def test_the_history_of_a_child() -> None:
    world = _started(CHILD)
    world.reply(Success({"Name": "run"}))
    assert (world.scope.wait, world.calls[0].token) == (WaitKind.CHILD, "token-1-2-1")
    world.report(Success({"r": 1}))
    types = [event.type for event in world.events]
    assert types[3:8] == ["TaskScheduled", "TaskStarted", "TaskSubmitted", "TaskSucceeded", "StepSucceeded"]
    assert world.execution.output == {"r": 1}


def test_a_child_may_end_before_its_start_is_confirmed() -> None:
    world = _started(CHILD)
    world.report(Success({"r": 1}))
    assert world.execution.output == {"r": 1}


@pytest.mark.parametrize("wakes", [0, 1])
def test_the_child_of_an_ended_attempt_changes_nothing(wakes: int) -> None:
    world = _started(CHILD + "  timeoutSeconds: 9\n" + RETRY)
    world.reply(SUBMITTED)
    world.wake()
    for _ in range(wakes):
        world.wake()
    assert world.ignores(TaskReported(1, 2, 1, Success({"r": 1})))


def test_the_child_of_the_next_attempt_has_its_own_token() -> None:
    world = _started(CHILD + RETRY)
    world.reply(SUBMITTED)
    world.report(Failure("ChildSaysNo"))
    world.wake()
    world.report(Success({"r": 2}))
    assert world.execution.output == {"r": 2}
    assert [call.token for call in world.calls] == ["token-1-2-1", "token-1-2-3"]


def test_a_child_that_cannot_be_started_fails_the_submission() -> None:
    world = _started(CHILD)
    world.reply(Failure("FnF.FlowNotExists"))
    assert world.event(EventType.TASK_SUBMIT_FAILED)["error"] == "FnF.FlowNotExists"
    assert world.execution.status is Status.FAILED


def test_an_awaited_function_answers_with_its_result() -> None:
    world = _started(CALLBACK.replace("waitForCallback", "sync"))
    assert world.calls[0].token is None
    world.reply(Success({"r": 1}))
    assert world.execution.output == {"r": 1}
    assert EventType.TASK_SUBMITTED not in {event.type for event in world.events}
