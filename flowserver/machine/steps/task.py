"""`task`: calls with retry, catch and time-outs; callbacks; sub-flows; asynchronous invocations; messages.

One attempt is one wait: it begins with the order to call (TASK) and, where the pattern says so, goes on under the
same wait id until a report comes (TOKEN, CHILD). A retry pause is a TIMER. A `sync` step that submits waits for the
end of what it has submitted, by a token of its own.
"""

from flowserver.base.json_values import Json, JsonObject
from flowserver.base.request_ids import call_request_id
from flowserver.expressions.fuel import Fuel
from flowserver.language.graph import ActionTarget, FlowTarget, FunctionTarget, Pattern, TaskStep
from flowserver.machine.commands import CancelInvocation, InvokeTask
from flowserver.machine.data_sizes import fits
from flowserver.machine.events import EventType
from flowserver.machine.mappings import RUNTIME_ERROR, TokenMaker, evaluate_params, fuel_for
from flowserver.machine.messages import (
    Failure,
    Result,
    RetryLostCall,
    Success,
    TaskReplied,
    TaskReported,
    TimerFired,
    TooLarge,
)
from flowserver.machine.retry_and_catch import INVALID_LOCAL, TASK_TIMEOUT, choose_catch, choose_retry, pause_ms
from flowserver.machine.scope_progress import (
    check_size,
    fail_step,
    finish_step,
    hold_local,
    leave_step,
    output_of_step,
    step_context,
)
from flowserver.machine.service_params import is_asynchronous, refusal
from flowserver.machine.state import Scope, WaitKind
from flowserver.machine.turn import NOT_NOW, Outcome, OutcomeKind, Turn, idempotency_key, submission_key


def enter_task(turn: Turn, scope: Scope, step: TaskStep, *, continues_child: bool = False) -> None:
    """Make the first attempt; serviceParams that cannot be evaluated fail the step, as a mapping would.

    Its `catch` may handle that they are too large.
    With `continues_child`, the attempt continues the execution that the step's last attempt started, if there is one.
    """
    bytes_max = turn.environment.limits.request_bytes_max
    params = _params(scope, step, fuel_for(bytes_max))
    if params is not None and not isinstance(params, Failure) and not fits(bytes_max, params):
        params = TooLarge(
            RUNTIME_ERROR,
            f"serviceParams of step {step.name}: more than {bytes_max} bytes, the limit request_bytes_max",
        )
    if isinstance(params, TooLarge):
        _catch_or_fail(turn, scope, step, params)
    elif isinstance(params, Failure):
        fail_step(turn, scope, params)
    else:
        attempt_task(turn, scope, step, continues_child=continues_child)


def fail_before_attempt(turn: Turn, scope: Scope, failure: TooLarge) -> None:
    """The step's input is too large: catch that, or fail the step. A retry would map the same data again."""
    _catch_or_fail(turn, scope, _step(turn, scope), failure, is_held=False)


def time_out(turn: Turn, scope: Scope, _message: TimerFired) -> None:
    """The attempt's time is up. If there is no room for that event, the end of the execution cancels the call."""
    step = _step(turn, scope)
    cancellation = turn.cancellation_of(scope)
    cause = f"the attempt took longer than {step.timeout_seconds} seconds"
    request_id = _sent_request_id(turn, scope, step)
    _fail_attempt(turn, scope, step, EventType.TASK_TIMED_OUT, Failure(TASK_TIMEOUT, cause), request_id)
    turn.commands += cancellation


def retry_lost_call(turn: Turn, scope: Scope, _message: RetryLostCall) -> None:
    """Order the same attempt's call again: same wait, same idempotency key, next attempt number."""
    _order(turn, scope, _step(turn, scope))


def take_reply(turn: Turn, scope: Scope, message: TaskReplied) -> None:
    """The call has ended: with the task's result, or with the confirmation that the work was submitted."""
    step, result = _step(turn, scope), message.result
    submits = _submits(scope, step)
    if submits and _is_unusable(turn, result):
        result = Success({})  # the immediate answer of a submission is not its result, so any will do
    if isinstance(result, Failure):
        stop = turn.stop_of_sub_flow(scope)  # its start may have been committed although its call failed
        _fail_attempt(turn, scope, step, _failure_event(result, submits=submits), result, message.request_id)
        turn.commands += stop
    elif submits:
        turn.record_in(scope, EventType.TASK_SUBMITTED, output=result.output, **_known(message.request_id))
        kind = WaitKind.CHILD if step.awaits_sub_flow else WaitKind.TOKEN
        turn.change_wait(scope, kind, scope.wake_at)
    else:
        _succeed(turn, scope, step, result.output, message.request_id)


def take_report(turn: Turn, scope: Scope, message: TaskReported) -> None:
    """A report with the task's token, or the end of its child execution; it may come before the call has ended, or
    even before it was begun: the token is known from an earlier attempt, whose worker reports late.
    """
    step, result = _step(turn, scope), message.result
    call = CancelInvocation(scope.scope_id, scope.wait_id, unless_begun=True) if scope.wait is WaitKind.TASK else None
    if isinstance(result, Success):
        event_id = _succeed(
            turn, scope, step, result.output, message.request_id, refuse_too_large=message.refuse_too_large
        )
    else:
        event_id = _fail_attempt(turn, scope, step, EventType.TASK_FAILED, result, message.request_id)
    if turn.outcome.kind is OutcomeKind.REFUSED:
        return
    if call is not None:
        turn.commands.append(call)
    turn.outcome = Outcome(OutcomeKind.APPLIED, event_id)


def refuse_report(turn: Turn, _scope: Scope, _message: TaskReported) -> None:
    """A report during a retry pause: no attempt is under way that could take it."""
    turn.outcome = NOT_NOW


def _step(turn: Turn, scope: Scope) -> TaskStep:
    step = turn.step_of(scope)
    assert isinstance(step, TaskStep), "only a task step waits so"
    return step


def _is_unusable(turn: Turn, result: Result) -> bool:
    """Whether the answer is no object, or is too large for the history."""
    if isinstance(result, Failure):
        return result.error == INVALID_LOCAL
    return isinstance(check_size(turn, "the answer", result.output), Failure)


def _is_sync(step: TaskStep) -> bool:
    return step.pattern is Pattern.SYNC


def _submits(scope: Scope, step: TaskStep) -> bool:
    """Whether the call only submits the work. A function's `sync` call returns the result itself, if it is one."""
    if not _is_sync(step):
        return step.pattern is Pattern.WAIT_FOR_CALLBACK
    return isinstance(step.target, FlowTarget) or is_asynchronous(step, _input(scope))


def _input(scope: Scope) -> JsonObject:
    assert scope.step_input is not None
    return scope.step_input


def _params(scope: Scope, step: TaskStep, fuel: Fuel | None = None) -> dict[str, Json] | Failure | None:
    return None if step.service_params is None else evaluate_params(step.service_params, _input(scope), fuel)


def attempt_task(turn: Turn, scope: Scope, step: TaskStep, *, continues_child: bool = False) -> None:
    """Make the first attempt, or the next one after a pause: order its call, unless its parameters are refused."""
    detail: JsonObject = {"pattern": str(step.pattern), "input": scope.step_input}
    name = {"action": step.target.action} if isinstance(step.target, ActionTarget) else {"resourceArn": step.target.arn}
    if continues_child and scope.continued_child is not None:
        detail["continues"] = scope.continued_child
    turn.record_in(scope, EventType.TASK_SCHEDULED, **name, **detail)
    turn.record_in(scope, EventType.TASK_STARTED)
    params = _params(scope, step)
    assert not isinstance(params, Failure), "checked when the step was entered"
    refused = refusal(step.target, params)
    if refused is not None:
        _fail_attempt(turn, scope, step, _failure_event(refused, submits=_submits(scope, step)), refused)
        return
    seconds = step.timeout_seconds
    wake_at = None if seconds is None else turn.environment.now_ms + seconds * 1000
    turn.begin_wait(scope, WaitKind.TASK, wake_at)
    if not continues_child or scope.child_wait is None:
        scope.child_wait = scope.wait_id if waits_for_child(step) else None
    _order(turn, scope, step)


def _order(turn: Turn, scope: Scope, step: TaskStep) -> None:
    scope.attempt += 1
    turn.touched.add(scope.scope_id)
    turn.commands.append(order_of(turn.execution.execution_id, scope, step, turn.environment.token_for))


def order_of(execution_id: str, scope: Scope, step: TaskStep, token_for: TokenMaker) -> InvokeTask:
    """The call that a scope waiting for its step's call has ordered. Equal state gives an equal order."""
    params = _params(scope, step)
    assert not isinstance(params, Failure)
    return InvokeTask(
        scope_id=scope.scope_id,
        wait_id=scope.wait_id,
        attempt=scope.attempt,
        step_name=step.name,
        target=step.target,
        pattern=step.pattern,
        input=_input(scope),
        params=params,
        token=_token(execution_id, scope, step, token_for),
        started_event_id=scope.last_event_id,
        idempotency_key=idempotency_key(execution_id, scope),
        submission_key=submission_key(execution_id, scope),
        deadline_at=scope.wake_at,
        asynchronous=is_asynchronous(step, _input(scope)),
        child_lifecycle=step.child_lifecycle,
        is_retry=bool(scope.retries),
        child_wait=scope.child_wait,
    )


def _token(execution_id: str, scope: Scope, step: TaskStep, token_for: TokenMaker) -> str | None:
    if step.pattern is Pattern.WAIT_FOR_CALLBACK:
        return token_for(execution_id, scope.scope_id, scope.entered_event_id, None)
    if not _submits(scope, step):
        return None
    return token_for(execution_id, scope.scope_id, scope.entered_event_id, scope.wait_id)


def _failure_event(failure: Failure, *, submits: bool) -> EventType:
    if failure.error == TASK_TIMEOUT:
        return EventType.TASK_TIMED_OUT
    return EventType.TASK_SUBMIT_FAILED if submits else EventType.TASK_FAILED


def waits_for_child(step: TaskStep) -> bool:
    """Whether an attempt of the step waits for the end of the execution that it starts."""
    return isinstance(step.target, FlowTarget) and _is_sync(step)


def calls_function(scope: Scope, step: TaskStep) -> bool:
    """Whether the step calls a function under one key, rather than submit work, send a message or start a flow."""
    target = step.target
    calls = isinstance(target, FunctionTarget) or (isinstance(target, ActionTarget) and target.service != "fnf")
    return calls and not is_asynchronous(step, _input(scope))


def _sent_request_id(turn: Turn, scope: Scope, step: TaskStep) -> str:
    """That of the function's call that the scope waits for; "" if it waits for something else."""
    if scope.wait is not WaitKind.TASK or not calls_function(scope, step):
        return ""
    return call_request_id(idempotency_key(turn.execution.execution_id, scope), scope.attempt)


def _known(request_id: str) -> dict[str, Json]:
    return {"requestId": request_id} if request_id else {}


def _succeed(
    turn: Turn, scope: Scope, step: TaskStep, result: JsonObject, request_id: str, *, refuse_too_large: bool = False
) -> int:
    """Complete the step. A result that it cannot hold is refused, or fails the attempt. Returns the event's id."""
    output = output_of_step(turn, scope, result, result)
    if isinstance(output, TooLarge):
        if refuse_too_large:
            turn.outcome = Outcome(OutcomeKind.REFUSED, reason=output.cause)
            return 0
        return _fail_attempt(turn, scope, step, EventType.TASK_FAILED, output, request_id)
    event_id = turn.record_in(scope, EventType.TASK_SUCCEEDED, output=result, **_known(request_id))
    if isinstance(output, Failure):
        fail_step(turn, scope, output)
    else:
        finish_step(turn, scope, result, output)
    return event_id


def _fail_attempt(
    turn: Turn, scope: Scope, step: TaskStep, event: EventType, failure: Failure, request_id: str = ""
) -> int:
    """Retry; if no policy applies or it is used up, catch; else the step fails. Returns the event's id."""
    detail: JsonObject = {"error": failure.error, "cause": failure.cause, **_known(request_id)}
    number = choose_retry(step.retry, scope.retries, failure.error)
    if number is None:
        event_id = turn.record_in(scope, event, **detail)
        _catch_or_fail(turn, scope, step, failure)
        return event_id
    used = scope.retries.get(number, 0) + 1
    policy = step.retry[number]
    pause = pause_ms(policy, used)
    retry: JsonObject = {"number": used, "max": policy.max_attempts, "pauseSeconds": pause / 1000}
    event_id = turn.record_in(scope, event, **detail, retry=retry)
    scope.retries = {**scope.retries, number: used}
    turn.begin_wait(scope, WaitKind.TIMER, turn.environment.now_ms + pause)
    return event_id


def _catch_or_fail(turn: Turn, scope: Scope, step: TaskStep, failure: Failure, *, is_held: bool = True) -> None:
    """Follow the first catch rule that names the error; without one the step fails.

    `is_held` says that the step's input is counted, because it was not too large. An error's cause that does not fit
    beside it is left out: it comes from outside, and must not be what ends the execution.
    """
    rule = choose_catch(step.catch, failure.error)
    output: JsonObject | Failure = failure
    if rule is not None:
        output = _error_output(turn, scope, step, failure, is_held=is_held)
        if isinstance(output, TooLarge):
            output = _error_output(turn, scope, step, Failure(failure.error), is_held=is_held)
    if rule is None or isinstance(output, Failure):
        if not is_held:
            scope.step_input = None
        fail_step(turn, scope, output if isinstance(output, Failure) else failure)
        return
    caught: JsonObject = {"caughtBy": rule.goto, "catchRule": step.catch.index(rule)}
    turn.record_in(scope, EventType.STEP_FAILED, error=failure.error, cause=failure.cause, **caught)
    leave_step(turn, scope, output, goto=rule.goto, stop=False)


def _error_output(turn: Turn, scope: Scope, step: TaskStep, failure: Failure, *, is_held: bool) -> JsonObject | Failure:
    """What the step puts out after a caught error. The error itself, a few KiB at most, does not count as data."""
    output: JsonObject | Failure = {}
    if step.error_mappings is not None:
        local = {"error": failure.error, "code": failure.error, "cause": failure.cause}
        output = turn.map(step.error_mappings, scope.step_input, local, step_context(turn, scope, step))
    if isinstance(output, Failure):
        return output
    counted = (scope.step_input, output) if is_held and output else (output,)
    size = check_size(turn, f"input and output of step {step.name} after its error", *counted)
    return (size if isinstance(size, TooLarge) else hold_local(turn, scope, output)) or output
