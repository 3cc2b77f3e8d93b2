"""How a scope moves through its list: entering, completing and failing a step, and how failures propagate.

Knows what all steps have in common and nothing of what a single type does.
"""

from flowserver.base.json_values import DEPTH_MAX, Json, JsonObject
from flowserver.language.graph import ChoiceStep, FailStep, ForeachStep, ParallelStep, Pattern, Step, TaskStep
from flowserver.machine.data_sizes import Excess, measure_plain
from flowserver.machine.events import EventType
from flowserver.machine.mappings import RUNTIME_ERROR
from flowserver.machine.messages import Failure, TooLarge
from flowserver.machine.state import Scope, Status, WaitKind
from flowserver.machine.step_paths import path_of
from flowserver.machine.turn import Turn


def enter_step(turn: Turn, scope: Scope, given: JsonObject | None = None) -> Step | TooLarge | None:
    """Enter the scope's current step: record it and evaluate its input, unless it is `given`.

    Returns None if the step failed, and TooLarge for a task whose `catch` may handle that its input is too large.
    A choice records its StepStarted itself, with the option that it takes.
    """
    step = turn.step_of(scope)
    parent_input = turn.input_of(scope)
    scope.attempt = 0
    scope.retries = {}
    scope.child_wait = None
    scope.option = None
    scope.next_item = scope.open_items = 0
    scope.entered_event_id = turn.record_in(scope, EventType.STEP_ENTERED, input=parent_input, local=scope.local)
    step_input = _step_input(turn, scope, step, parent_input, given)
    if isinstance(step_input, Failure):
        fail_step(turn, scope, step_input)
        return None
    size = check_size(turn, f"the input of step {step.name}", step_input)
    oversize = size if isinstance(size, TooLarge) else turn.hold(scope, scope.document_bytes + size)
    if oversize is not None and not isinstance(step, TaskStep):
        fail_step(turn, scope, oversize)
        return None
    scope.step_input = step_input
    if oversize is not None:
        return oversize
    if not isinstance(step, ChoiceStep):
        turn.record_in(scope, EventType.STEP_STARTED, input=step_input)
    return step


def _step_input(
    turn: Turn, scope: Scope, step: Step, parent_input: JsonObject, given: JsonObject | None
) -> JsonObject | Failure:
    if given is not None:
        return given
    if step.input_mappings is not None:
        return turn.map(step.input_mappings, parent_input, scope.local, step_context(turn, scope, step))
    return {**parent_input, **scope.local}


def step_context(turn: Turn, scope: Scope, step: Step) -> JsonObject:
    """`$context` as a step's mappings see it; `task.token` exists on waitForCallback tasks only."""
    context = turn.context()
    context["step"] = {"name": step.name, "eventId": scope.entered_event_id}
    if isinstance(step, TaskStep) and step.pattern is Pattern.WAIT_FOR_CALLBACK:
        context["task"] = {"token": step_token(turn, scope)}
    return context


def step_token(turn: Turn, scope: Scope) -> str:
    """The task token of the scope's current step."""
    execution_id = turn.execution.execution_id
    return turn.environment.token_for(execution_id, scope.scope_id, scope.entered_event_id, None)


def complete_step(
    turn: Turn,
    scope: Scope,
    local: Json,
    default_output: JsonObject,
    *,
    goto: str | None = None,
    stop: bool = False,
) -> None:
    """The step succeeded with `$local` = `local`: map its output, merge it, and move on.

    `goto` continues at that sibling; `stop` (or the step's `end`) ends the list; a goto wins over an end.
    """
    output = output_of_step(turn, scope, local, default_output)
    if isinstance(output, Failure):
        fail_step(turn, scope, output)
    else:
        finish_step(turn, scope, local, output, goto=goto, stop=stop)


def output_of_step(turn: Turn, scope: Scope, local: Json, default_output: JsonObject) -> JsonObject | Failure:
    """What the step puts out with `$local` = `local`; a Failure if it cannot be mapped, TooLarge if it does not fit.

    The size of the list's local with that output is held from then on, so `finish_step` must follow.
    """
    step = turn.step_of(scope)
    assert scope.step_input is not None
    output: JsonObject | Failure = default_output
    if step.output_mappings is not None:
        output = turn.map(step.output_mappings, scope.step_input, local, step_context(turn, scope, step))
    if isinstance(output, Failure):
        return output
    size = check_size(turn, f"input, output and local of step {step.name}", scope.step_input, output, local)
    return (size if isinstance(size, TooLarge) else hold_local(turn, scope, output)) or output


def finish_step(
    turn: Turn, scope: Scope, local: Json, output: JsonObject, *, goto: str | None = None, stop: bool = False
) -> None:
    """The step succeeds with an output of `output_of_step`: merge it, and move on."""
    turn.record_in(scope, EventType.STEP_SUCCEEDED, output=local)
    leave_step(turn, scope, output, goto=goto, stop=stop or turn.step_of(scope).end)


def leave_step(turn: Turn, scope: Scope, output: JsonObject, *, goto: str | None, stop: bool) -> None:
    """Merge the output into the scope's local (shallow, the output wins), record the exit, and move on."""
    scope.local = {**scope.local, **output}
    turn.record_in(scope, EventType.STEP_EXITED, local=scope.local)
    scope.step_input = None
    turn.taken.pop(scope.scope_id, None)
    steps = turn.flow.lists[scope.list_id]
    if goto is not None:
        scope.step_index = steps.position[goto]
    elif stop:
        scope.step_index = len(steps.steps)
    else:
        scope.step_index += 1
    turn.make_ready(scope)


def at_end(turn: Turn, scope: Scope) -> bool:
    """Whether the scope has run its list to the end."""
    return scope.step_index >= len(turn.flow.lists[scope.list_id].steps)


def fail_step(turn: Turn, scope: Scope, failure: Failure) -> None:
    """The step failed and nothing handles it: its list fails, then the step that opened the list, up to the root.

    Only a task's own `catch` handles failures, so this ends the execution, unless the flow's setting is that it waits
    for a redrive.
    """
    if turn.execution.waiting_steps is not None and _can_wait(turn, scope):
        _wait_for_redrive(turn, scope, failure)
        return
    scope.has_failed = True
    turn.execution.failed_step = path_of(turn.flow, turn.execution, scope)
    while True:
        _cancel_opened_by(turn, scope)
        turn.record_in(scope, EventType.STEP_FAILED, error=failure.error, cause=failure.cause)
        turn.record_in(scope, EventType.STEP_EXITED, local=scope.local)
        turn.change_wait(scope, WaitKind.DONE, None)
        parent = turn.parent_of(scope)
        if parent is None:
            turn.end(Status.FAILED, failure=failure)
            return
        _exit_item(turn, parent, scope)
        parent.last_event_id = scope.last_event_id
        scope = parent


def _can_wait(turn: Turn, scope: Scope) -> bool:
    """Whether a redrive could take up this step alone: neither `fail` nor a step that has opened lists."""
    return scope.wait is not WaitKind.JOIN and not isinstance(turn.step_of(scope), FailStep)


def _wait_for_redrive(turn: Turn, scope: Scope, failure: Failure) -> None:
    """Leave the step as it is, until a redrive; the first failure is what the execution shows of them."""
    execution = turn.execution
    turn.record_in(scope, EventType.STEP_WAITING_FOR_REDRIVE, error=failure.error, cause=failure.cause)
    turn.begin_wait(scope, WaitKind.REDRIVE)
    if not execution.waiting_steps:
        execution.error, execution.cause = failure.error, failure.cause
        execution.failed_step = path_of(turn.flow, execution, scope)
        turn.begins_to_wait = True
    execution.waiting_steps = (execution.waiting_steps or 0) + 1


def exit_item(turn: Turn, parent: Scope, child: Scope) -> None:
    """A branch or iteration has finished: record it and keep its local for the join."""
    _exit_item(turn, parent, child)
    parent.last_event_id = child.last_event_id
    turn.finish_scope(parent, child)


def _exit_item(turn: Turn, parent: Scope, child: Scope, **extra: Json) -> None:
    step = turn.step_of(parent)
    if isinstance(step, ParallelStep):
        exited = EventType.BRANCH_EXITED
    elif isinstance(step, ForeachStep):
        exited = EventType.ITERATION_EXITED
    else:
        return
    detail = {"local": child.local, "index": child.item, **extra}
    child.last_event_id = turn.record(exited, step.name, child.last_event_id, **detail)


def _cancel_opened_by(turn: Turn, failed: Scope) -> None:
    """Record the exit of every step and list that the failure cuts short, innermost first."""
    for child in _open_children(turn, failed):
        for scope, opener in _innermost_first(turn, child, failed):
            if scope.step_input is not None or scope.wait is WaitKind.REDRIVE:
                turn.record_in(scope, EventType.STEP_EXITED, local=scope.local, cancelled=True)
            _exit_item(turn, opener, scope, cancelled=True)


def _innermost_first(turn: Turn, top: Scope, opener: Scope) -> list[tuple[Scope, Scope]]:
    found = [(top, opener)]
    for scope, _ in found:
        found.extend((child, scope) for child in _open_children(turn, scope))
    return found[::-1]


def _open_children(turn: Turn, scope: Scope) -> list[Scope]:
    return [child for child in turn.execution.opened_by(scope) if child.wait is not WaitKind.DONE]


def hold_local(turn: Turn, scope: Scope, output: JsonObject) -> TooLarge | None:
    """The size rule for the local of the scope's list after its step, which alone then counts.

    Returns None if the rule holds; `leave_step` must follow.
    """
    what = f"the local of the list after step {turn.step_of(scope).name}"
    size = check_size(turn, what, {**scope.local, **output})
    return size if isinstance(size, TooLarge) else turn.hold(scope, size)


def check_size(turn: Turn, what: str, *documents: Json) -> int | TooLarge:
    """The size rule: the documents together, as compact JSON, stay within the limit, and none nests too deep.

    Returns how many bytes they are. An empty document beside others takes none, so that a step can pass on an input of
    exactly the limit. `what` is for the cause. A loop may wrap its data once more each time, so depth is bounded here,
    not at the input.
    """
    bytes_max = turn.environment.limits.step_data_bytes_max
    if len(documents) > 1:
        documents = tuple(document for document in documents if document)
    sizes = turn.sizes
    if not sizes.known:
        plain = measure_plain(bytes_max, documents)
        if plain is not None:
            return plain
    size = sizes.measure(bytes_max, documents)
    if size is Excess.BYTES:
        return TooLarge(RUNTIME_ERROR, f"{what}: more than {bytes_max} bytes, the limit step_data_bytes_max")
    if size is Excess.DEPTH:
        return TooLarge(RUNTIME_ERROR, f"{what}: nested deeper than {DEPTH_MAX} levels")
    return size
