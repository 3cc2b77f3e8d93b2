"""`advance`: gives an execution a message and runs it until every scope waits or the turn is full.

An execution is a state machine over rows; nothing is replayed. A flow is data, so a position in it is a path in a
document and costs nothing to save. A polling loop resumes in constant time after any number of turns, and a waiting
execution costs one row and no memory.

One turn is one part of one transaction: all steps up to the next wait are committed together, and the commands of the
turn are carried out after that commit. So no effect is ever ahead of its commit, and ten pass steps cost one fsync.
The history still has every step.
"""

from collections.abc import Callable
from typing import Any, Final, assert_never

from flowserver.base.json_values import JsonObject
from flowserver.language.graph import (
    ChoiceStep,
    FailStep,
    Flow,
    ForeachStep,
    ParallelStep,
    PassStep,
    SucceedStep,
    TaskStep,
    WaitStep,
)
from flowserver.machine.events import EventType
from flowserver.machine.mappings import RUNTIME_ERROR, Environment, fuel_for
from flowserver.machine.messages import (
    Continue,
    DeadlineReached,
    Failure,
    Message,
    Redrive,
    RetryLostCall,
    ScopeMessage,
    Start,
    Stop,
    TaskReplied,
    TaskReported,
    TimerFired,
    TooLarge,
)
from flowserver.machine.redrive import deadline_of, end_waits, resume, run_again, waits_only
from flowserver.machine.scope_progress import at_end, check_size, enter_step
from flowserver.machine.state import Execution, Scope, Status, WaitKind
from flowserver.machine.steps.choice import enter_choice, finish_option
from flowserver.machine.steps.fanout import enter_foreach, enter_parallel, finish_branch, finish_iteration
from flowserver.machine.steps.pass_succeed_fail import enter_fail, enter_pass, enter_succeed
from flowserver.machine.steps.task import (
    attempt_task,
    enter_task,
    fail_before_attempt,
    refuse_report,
    retry_lost_call,
    take_reply,
    take_report,
    time_out,
)
from flowserver.machine.steps.wait import enter_wait, finish_wait
from flowserver.machine.transitions import is_current
from flowserver.machine.turn import ENDED, STALE, EventsExhausted, Turn


def advance(flow: Flow, execution: Execution, message: Message, environment: Environment) -> Turn:
    """Apply a message to the execution, in place, and return what happened.

    Deterministic: equal arguments give an equal turn. A stale message gives an empty turn with the outcome STALE.
    An exception raised here is a bug of ours; the caller drops the execution it passed and reloads it.
    """
    turn = Turn(flow, execution, environment)
    if not execution.is_running and not isinstance(message, Redrive):
        turn.outcome = ENDED
        return turn
    try:
        _receive(turn, message)
        for scope in turn.take_ready():
            _run(turn, scope)
    except EventsExhausted:
        events_max = environment.limits.events_max
        turn.end(Status.FAILED, failure=Failure(RUNTIME_ERROR, f"the execution used up its {events_max} events"))
    execution.sizes = turn.sizes if turn.more else turn.sizes.between_turns()
    return turn


def _receive(turn: Turn, message: Message) -> None:
    match message:
        case Start():
            _start(turn)
        case Redrive():
            _redrive(turn, message)
        case Stop(error, cause):
            turn.end(Status.STOPPED, failure=Failure(error or "", cause or ""))
        case DeadlineReached():
            _reach_deadline(turn)
        case Continue():
            _continue(turn)
        case _:
            _receive_in_scope(turn, message)


def _receive_in_scope(turn: Turn, message: ScopeMessage) -> None:
    """Give the message to the handler for what its scope waits for, or call it stale."""
    scope = turn.execution.scopes.get(message.scope_id)
    if scope is None or not is_current(scope, message, turn.environment.now_ms):
        turn.outcome = STALE
        return
    handler = HANDLERS.get((scope.wait, type(message)))
    if handler is None:
        turn.outcome = STALE
    else:
        handler(turn, scope, message)


def _start(turn: Turn) -> None:
    if turn.execution.next_event_id > 1:
        turn.outcome = STALE
        return
    execution = turn.execution
    execution.started_at = turn.environment.now_ms
    execution.deadline_at = deadline_of(turn)
    _begin(turn, turn.record(EventType.EXECUTION_STARTED, "", 0, input=execution.input))


def _begin(turn: Turn, cause: int) -> None:
    """Open the flow's own list."""
    limits = turn.environment.limits
    mapped = turn.flow_input(turn.environment.missing_source, fuel_for(limits.step_data_bytes_max))
    size = mapped if isinstance(mapped, Failure) else check_size(turn, "the flow's input", mapped)
    if isinstance(size, Failure):
        turn.end(Status.FAILED, failure=size)
    else:
        turn.open_scope(None, turn.flow.root.list_id, 0, cause)


def _redrive(turn: Turn, message: Redrive) -> None:
    """Let the execution run again; what was entered before and is not done is entered again.

    If it runs and steps of it wait for a redrive, let those go on, unless all of it is to start over.
    """
    execution = turn.execution
    if execution.waiting_steps and execution.is_running and not message.starts_over:
        for scope, given in end_waits(turn, message):
            _run(turn, scope, given)
        return
    if execution.is_running and not waits_only(execution):
        turn.outcome = STALE
        return
    redriven = run_again(turn, message)
    if turn.execution.scopes:
        for scope, given in resume(turn, message, redriven):
            _run(turn, scope, given)
    else:
        _begin(turn, redriven)


def _reach_deadline(turn: Turn) -> None:
    if turn.environment.now_ms < turn.execution.deadline_at:
        turn.outcome = STALE
        return
    execution = turn.execution
    seconds = (execution.deadline_at - (execution.redriven_at or execution.started_at)) // 1000
    failure = Failure("FnF.ExecutionTimeout", f"the execution took longer than {seconds} seconds")
    turn.end(Status.TIMED_OUT, failure=failure)


def _continue(turn: Turn) -> None:
    for scope in turn.execution.scopes.values():
        if scope.wait is WaitKind.READY:
            turn.ready.append(scope.scope_id)


def _end_timer(turn: Turn, scope: Scope, _message: TimerFired) -> None:
    step = turn.step_of(scope)
    if isinstance(step, TaskStep):
        attempt_task(turn, scope, step)
    else:
        finish_wait(turn, scope)


Handler = Callable[[Turn, Scope, Any], None]

HANDLERS: Final[dict[tuple[WaitKind, type[ScopeMessage]], Handler]] = {
    (WaitKind.TIMER, TimerFired): _end_timer,
    (WaitKind.TIMER, TaskReported): refuse_report,
    (WaitKind.TASK, TaskReplied): take_reply,
    (WaitKind.TASK, TaskReported): take_report,
    (WaitKind.TASK, TimerFired): time_out,
    (WaitKind.TASK, RetryLostCall): retry_lost_call,
    (WaitKind.TOKEN, TaskReported): take_report,
    (WaitKind.TOKEN, TimerFired): time_out,
    (WaitKind.CHILD, TaskReported): take_report,
    (WaitKind.CHILD, TimerFired): time_out,
}
"""One for each row of `transitions.TRANSITIONS` that has a message."""


def _run(turn: Turn, scope: Scope, given: JsonObject | None = None) -> None:
    """Advance a ready scope by one step, whose input may be `given`."""
    if at_end(turn, scope):
        _finish_list(turn, scope)
        return
    step = enter_step(turn, scope, given)
    match step:
        case None:
            pass
        case TooLarge():
            fail_before_attempt(turn, scope, step)
        case PassStep():
            enter_pass(turn, scope)
        case SucceedStep():
            enter_succeed(turn, scope)
        case FailStep():
            enter_fail(turn, scope, step)
        case WaitStep():
            enter_wait(turn, scope, step)
        case TaskStep():
            enter_task(turn, scope, step)
        case ChoiceStep():
            enter_choice(turn, scope, step)
        case ParallelStep():
            enter_parallel(turn, scope, step)
        case ForeachStep():
            enter_foreach(turn, scope, step)
        case _:  # pragma: no cover - the type checker proves it
            assert_never(step)


def _finish_list(turn: Turn, scope: Scope) -> None:
    parent = turn.parent_of(scope)
    if parent is None:
        _finish_flow(turn, scope)
        return
    step = turn.step_of(parent)
    match step:
        case ChoiceStep():
            finish_option(turn, parent, step, scope)
        case ParallelStep():
            finish_branch(turn, parent, scope)
        case ForeachStep():
            finish_iteration(turn, parent, step, scope)
        case _:  # pragma: no cover - it would be a bug
            raise AssertionError(f"{type(step).__name__} opens no scopes")


def _finish_flow(turn: Turn, scope: Scope) -> None:
    mappings = turn.flow.output_mappings
    if mappings is None:
        turn.end(Status.SUCCEEDED, output=scope.local)
        return
    output = turn.map(mappings, turn.input_of(scope), scope.local, turn.context())
    if not isinstance(output, Failure):
        size = check_size(turn, "the flow's output", output)
        output = size if isinstance(size, Failure) else output
    if isinstance(output, Failure):
        turn.end(Status.FAILED, failure=output)
    else:
        turn.end(Status.SUCCEEDED, output=output)
