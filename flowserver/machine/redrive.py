"""A redrive: an execution that ended without success goes on where it failed or was aborted.

Theory of operation. A failure that nothing catches ends the whole execution, so at its end the tree of scopes is just
what a redrive needs: every finished step, branch and iteration is in it as its result, and every scope is at the
step that failed or was aborted. Such an end therefore keeps its scopes (`Turn.end`), and the store moves their rows
to tables of their own. Nothing is replayed; an execution that succeeds keeps nothing and pays nothing. A failure that
a `catch` took was over long before and stays as it was.

From the outermost scope inwards, each step that opened others is entered again with the input it had, and so are the
branches and iterations of it that were open. What was not opened yet follows. An innermost scope goes on at its step:

- A call is made again with the same input and under the same idempotency key, so a call that had succeeded without the
  server's knowing it takes effect once. Its retries count from zero.
- A step that waited for a sub-flow continues the execution that its last attempt started (`Scope.child_wait`), which
  is redriven in turn. If that cannot be continued, or is not to be, the store has cleared the number: the step starts
  a new execution.
- Every other step is entered anew: a wait begins again, a waitForCallback step gets a new token. So is every step if
  the definition is another one.

Every wait gets a new number, so no message for the former run finds one.

A flow's setting may be that its executions wait for a redrive instead of failing. Then a step whose failure nothing
catches stays entered, and its scope waits (`WaitKind.REDRIVE`) while the others go on; the execution runs, and its
deadline or a stop can still end it. A redrive lets all that wait go on (`end_waits`), and gives the execution all its
time again. Steps that a redrive could not take up alone end the execution in any case: `fail`, and those that fail
with lists open or joined.

A redrive with another definition, or to an earlier step, cannot leave steps that run as they are. It is made if every
open step waits for a redrive (`waits_only`): nothing is under way then, so the scopes are as those that a stop would
have kept, and go on as they would (`resume`).
"""

from collections.abc import Callable
from typing import Final

from flowserver.base.json_values import Json, JsonObject, json_bytes
from flowserver.language.graph import ChoiceStep, Flow, ForeachStep, ParallelStep, Pattern, Step, TaskStep
from flowserver.machine.events import EventType
from flowserver.machine.messages import Redrive, Rewind
from flowserver.machine.scope_progress import at_end
from flowserver.machine.state import Execution, Scope, Status, WaitKind
from flowserver.machine.steps.choice import recorded_option
from flowserver.machine.steps.fanout import record_entered, reopen
from flowserver.machine.steps.task import calls_function, enter_task
from flowserver.machine.transitions import LEGAL_STATUSES
from flowserver.machine.turn import Turn

_WAITS_OF_WAITING: Final = frozenset((WaitKind.REDRIVE, WaitKind.JOIN))


def deadline_of(turn: Turn) -> int:
    """When the time of an execution is up that begins, or begins again, now."""
    seconds_max = turn.environment.limits.execution_seconds_max
    seconds = seconds_max if turn.flow.timeout_seconds is None else min(turn.flow.timeout_seconds, seconds_max)
    return turn.environment.now_ms + seconds * 1000


def waits_only(execution: Execution) -> bool:
    """Whether every open step of a running execution waits for a redrive, so nothing of it is under way."""
    waits = {scope.wait for scope in execution.scopes.values()}
    return WaitKind.REDRIVE in waits and waits <= _WAITS_OF_WAITING


def run_again(turn: Turn, message: Redrive) -> int:
    """Let the execution run again, with all its time; returns the event that says so.

    If it runs, all of it waits for the redrive: its scopes become as if it had been stopped.
    """
    execution = turn.execution
    if execution.is_running:
        for scope in execution.scopes.values():
            turn.change_wait(scope, WaitKind.READY, None)
        execution.recount_finished()
    else:
        assert (execution.status, Status.RUNNING) in LEGAL_STATUSES
        execution.status = Status.RUNNING
        execution.stopped_at = execution.output = None
        turn.take_as_new()
    return _record_redriven(turn, message)


def _record_redriven(turn: Turn, message: Redrive, **detail: Json) -> int:
    """Count the redrive and give the execution all its time; returns the event that says so."""
    execution = turn.execution
    execution.error = execution.cause = execution.failed_step = None
    execution.redrive_count += 1
    execution.redriven_at = turn.environment.now_ms
    execution.deadline_at = deadline_of(turn)
    if execution.waiting_steps is not None:
        execution.waiting_steps = 0
    count, cause = execution.redrive_count, execution.next_event_id - 1
    return turn.record(EventType.EXECUTION_REDRIVEN, "", cause, redriveCount=count, **detail, **message.detail)


def end_waits(turn: Turn, message: Redrive) -> list[tuple[Scope, JsonObject]]:
    """Go on with the steps of a running execution that wait for a redrive; the others are left alone.

    Calls are made as a redrive of an ended execution makes them; every other step is left and entered anew. Returns the
    scope whose step is to be entered with a given input, and that input.
    """
    waiting = [scope for scope in turn.execution.scopes.values() if scope.wait is WaitKind.REDRIVE]
    _record_redriven(turn, message, waitingSteps=len(waiting))
    turn.steps_left -= len(waiting)
    given: list[tuple[Scope, JsonObject]] = []
    for scope in waiting:
        step = turn.step_of(scope)
        if scope.step_input is not None and isinstance(step, TaskStep) and _is_called_again(scope, step, message):
            scope.retries = {}
            enter_task(turn, scope, step, continues_child=True)
        else:
            turn.record_in(scope, EventType.STEP_EXITED, local=scope.local, redriven=True)
            scope.step_input = None
            turn.hold(scope, json_bytes(scope.local))
            if message.input_of == scope.scope_id:
                turn.change_wait(scope, WaitKind.READY, None)
                given.append((scope, message.input))
            else:
                turn.make_ready(scope)
    return given


def resume(turn: Turn, message: Redrive, cause: int) -> list[tuple[Scope, JsonObject]]:
    """Go on with all scopes. Returns the one to be entered with a given input, and that input."""
    if message.rewind is not None:
        _rewind(turn, message.rewind)
    root = next(scope for scope in turn.execution.scopes.values() if scope.parent_id is None)
    resumed = _Resumed(turn, message)
    resumed.enter(root, cause)
    turn.steps_left -= len(turn.execution.scopes)
    for go_on in resumed.later:
        if turn.execution.is_running:
            go_on()
    return [(scope, message.input) for scope in resumed.given] if turn.execution.is_running else []


class _Resumed:
    """First all that was open is entered again; then calls are made and more is opened, which may fail."""

    def __init__(self, turn: Turn, message: Redrive) -> None:
        self.later: list[Callable[[], None]] = []
        self.given: list[Scope] = []
        self._turn = turn
        self._message = message

    def enter(self, scope: Scope, cause: int) -> None:
        """Go on with a scope and with those that its step opened."""
        scope.last_event_id, scope.has_failed = cause, False
        step = None if at_end(self._turn, scope) else self._turn.step_of(scope)
        children = self._turn.execution.opened_by(scope)
        if step is None or scope.step_input is None:
            self._turn.make_ready(scope)
        elif children or scope.next_item:
            self._enter_again(scope)
            self._turn.begin_wait(scope, WaitKind.JOIN)
            for child in children:
                self.enter(child, self._enter_item(scope, step, child))
            if isinstance(step, (ParallelStep, ForeachStep)):
                self.later.append(lambda: reopen(self._turn, scope, step))
        elif isinstance(step, TaskStep) and _is_called_again(scope, step, self._message):
            self._enter_again(scope, keeps_number=True)
            self.later.append(lambda: enter_task(self._turn, scope, step, continues_child=True))
        else:
            self._leave_input(scope)

    def _leave_input(self, scope: Scope) -> None:
        turn = self._turn
        scope.step_input = None
        turn.hold(scope, json_bytes(scope.local))
        if self._message.input_of == scope.scope_id:
            self.given.append(scope)
        else:
            turn.make_ready(scope)

    def _enter_again(self, scope: Scope, *, keeps_number: bool = False) -> None:
        """Record that the step is entered with the input it had; its calls keep their key if its number is kept."""
        turn = self._turn
        before = scope.entered_event_id
        detail = {"input": turn.input_of(scope), "local": scope.local, "resumes": before}
        entered = turn.record_in(scope, EventType.STEP_ENTERED, **detail)
        choice: JsonObject = {}
        if isinstance(turn.step_of(scope), ChoiceStep):
            choice["option"] = recorded_option(scope.option)
        turn.record_in(scope, EventType.STEP_STARTED, input=scope.step_input, **choice)
        scope.entered_event_id = before if keeps_number else entered
        scope.retries = {}

    def _enter_item(self, scope: Scope, step: Step, child: Scope) -> int:
        if not isinstance(step, (ParallelStep, ForeachStep)):
            return scope.last_event_id
        return record_entered(self._turn, scope, step, child)


def calls_again(flow: Flow, scope: Scope, message: Redrive) -> bool:
    """Whether the redrive makes the call of an innermost scope again, with the same input and idempotency key."""
    steps = flow.lists[scope.list_id].steps[scope.step_index : scope.step_index + 1]
    if not steps or scope.step_input is None or message.rewind is not None:
        return False
    (step,) = steps
    return isinstance(step, TaskStep) and _is_called_again(scope, step, message) and calls_function(scope, step)


def _is_called_again(scope: Scope, step: TaskStep, message: Redrive) -> bool:
    """Whether the call is made with the same input: not if that holds a token, or is to be another."""
    if message.enters_again or message.input_of == scope.scope_id:
        return False
    return step.pattern is not Pattern.WAIT_FOR_CALLBACK


def _rewind(turn: Turn, rewind: Rewind) -> None:
    """Set a scope back to a step of its list; what its steps had opened since is dropped."""
    execution = turn.execution
    scope = execution.scopes[rewind.scope_id]
    for dropped in _opened_within(turn, scope):
        execution.document_bytes -= sum(each.document_bytes for each in dropped.finished.values())
        turn.joined.add(dropped.scope_id)
        if dropped is not scope:
            turn.drop_scope(dropped)
    scope.step_index, scope.local = rewind.step_index, rewind.local
    scope.step_input, scope.option = None, None
    scope.next_item = scope.open_items = 0
    scope.finished = {}
    size = json_bytes(rewind.local)
    execution.document_bytes += size - scope.document_bytes
    scope.document_bytes = size


def _opened_within(turn: Turn, scope: Scope) -> list[Scope]:
    found = [scope]
    for each in found:
        found.extend(turn.execution.opened_by(each))
    return found


def finished_items_needed(execution: Execution, message: Redrive) -> list[int]:
    """The scopes whose finished items the first turn needs: of joins that are made again, and that are dropped."""
    gathered = [scope for scope in execution.scopes.values() if scope.next_item > scope.open_items]
    dropped = set() if message.rewind is None else {message.rewind.scope_id}
    for scope in execution.scopes.values():  # parents come before their children
        if scope.parent_id in dropped:
            dropped.add(scope.scope_id)
    return [scope.scope_id for scope in gathered if scope.open_items == 0 or scope.scope_id in dropped]
