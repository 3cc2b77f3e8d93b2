"""Executions that are ended by a stop or a deadline, and the result for the task that waits for the execution."""

import pytest

from flowserver.base.limits import Limits
from flowserver.machine.commands import CancelInvocation, ReportCallback, StopInvocation
from flowserver.machine.messages import (
    Continue,
    DeadlineReached,
    Failure,
    Message,
    Result,
    RetryLostCall,
    Start,
    Stop,
    Success,
    TaskReplied,
    TaskReported,
    TimerFired,
)
from flowserver.machine.result_of_ended_execution import result_of_end
from flowserver.machine.state import Status
from flowserver.machine.turn import OutcomeKind
from tests.support.flows import flow
from tests.support.world import NOW_MS, World, lines, trace

TASK = "- {type: task, name: t, resourceArn: 'acs:fc:::services/s/functions/f', catch: [{errors: [FnF.ALL], goto: t}]}"
MESSAGES = [
    Start(), Stop(), DeadlineReached(), Continue(), TimerFired(1, 1), RetryLostCall(1, 1, 1),
    TaskReplied(1, 1, Success({})), TaskReported(1, 2, None, Success({})),
]  # fmt: skip


def _started(attributes: str = "", **settings: str) -> World:
    world = World(flow(TASK, attributes), **settings)  # type: ignore[arg-type]
    world.start()
    return world


def test_a_stop_ends_at_once_and_nothing_follows() -> None:
    world = _started()
    turn = world.tell(Stop("Enough", "said the user"))
    assert trace(turn.events) == lines('6 5 - ExecutionStopped {"error":"Enough","cause":"said the user"}')
    assert turn.commands == [CancelInvocation(1, 1), StopInvocation()]
    execution = world.execution
    assert (execution.status, execution.error, execution.cause) == (Status.STOPPED, "Enough", "said the user")
    assert (execution.stopped_at, execution.output) == (NOW_MS, None)


def test_a_stop_needs_no_error_or_cause() -> None:
    world = _started()
    turn = world.tell(Stop())
    assert trace(turn.events) == lines('6 5 - ExecutionStopped {"error":"","cause":""}')


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_an_ended_execution_accepts_no_message(message: Message) -> None:
    world = _started()
    world.tell(Stop())
    assert world.ignores(message, OutcomeKind.ENDED)


def test_the_deadline_is_the_flow_s_own_or_the_longest_allowed() -> None:
    assert _started("timeoutSeconds: 60").execution.deadline_at == NOW_MS + 60_000
    assert _started().execution.deadline_at == NOW_MS + Limits().execution_seconds_max * 1000
    world = World(flow(TASK, "timeoutSeconds: 60"), limits=Limits(execution_seconds_max=30))
    world.start()
    assert world.execution.deadline_at == NOW_MS + 30_000


def test_no_step_catches_the_deadline() -> None:
    world = _started("timeoutSeconds: 60")
    world.now_ms += 59_999
    assert world.ignores(DeadlineReached())
    world.now_ms += 1
    turn = world.tell(DeadlineReached())
    assert trace(turn.events) == lines(
        '6 5 - ExecutionTimedOut {"error":"FnF.ExecutionTimeout","cause":"the execution took longer than 60 seconds"}'
    )
    assert turn.commands == [CancelInvocation(1, 1), StopInvocation()]
    assert world.execution.status is Status.TIMED_OUT


@pytest.mark.parametrize(
    ("message", "result"),
    [
        (TaskReplied(1, 1, Success({"a": 1})), Success({"a": 1})),
        (Stop("Enough", "said the user"), Failure("Enough", "said the user")),
        (Stop(), Failure("FnF.ExecutionStopped")),
    ],
)
def test_an_end_is_reported_to_the_task_of_its_token(message: Message, result: Result) -> None:
    world = _started(callback_token="token")
    assert ReportCallback("token", result) in world.tell(message).commands


@pytest.mark.parametrize(
    ("status", "error", "cause", "result"),
    [
        (Status.SUCCEEDED, None, None, Success({})),
        (Status.FAILED, "E", "why", Failure("E", "why")),
        (Status.FAILED, None, None, Failure("FnF.Failed")),
        (Status.TIMED_OUT, "FnF.ExecutionTimeout", "slow", Failure("FnF.TaskTimeout", "slow")),
        (Status.TIMED_OUT, None, None, Failure("FnF.TaskTimeout")),
        (Status.STOPPED, "Mine", "why", Failure("Mine", "why")),
        (Status.STOPPED, "", "", Failure("FnF.ExecutionStopped")),
    ],
)
def test_the_result_of_an_end_for_a_waiting_task(
    status: Status, error: str | None, cause: str | None, result: Result
) -> None:
    assert result_of_end(status, None, error, cause) == result
