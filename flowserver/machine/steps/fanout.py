"""`parallel` and `foreach`: scopes that run side by side and are joined, in order, into an array."""

from flowserver.base.json_values import JsonObject
from flowserver.expressions.paths import MISSING
from flowserver.language.graph import ForeachStep, ParallelStep
from flowserver.machine.events import EventType
from flowserver.machine.mappings import RUNTIME_ERROR
from flowserver.machine.messages import Failure
from flowserver.machine.scope_progress import complete_step, exit_item, fail_step
from flowserver.machine.state import Scope, WaitKind
from flowserver.machine.turn import Turn

FanoutStep = ParallelStep | ForeachStep


def enter_parallel(turn: Turn, scope: Scope, step: ParallelStep) -> None:
    """Open all branches together."""
    turn.begin_wait(scope, WaitKind.JOIN)
    for branch in step.branches:
        if not _open_item(turn, scope, step, branch.list_id):
            return


def reopen(turn: Turn, scope: Scope, step: FanoutStep) -> None:
    """After a redrive: open what was not opened yet, or make the join again if nothing of it is open."""
    if isinstance(step, ForeachStep):
        size = _collection_size(turn, scope, step)
        assert isinstance(size, int), "checked when the foreach was entered"
        _open_iterations(turn, scope, step, size)
    else:
        for branch in step.branches[scope.next_item :]:
            if not _open_item(turn, scope, step, branch.list_id):
                return
    if turn.execution.is_running and scope.open_items == 0:
        _join(turn, scope)


def finish_branch(turn: Turn, scope: Scope, child: Scope) -> None:
    """A branch is done; the step is done after the last one."""
    if scope.open_items == 1 and turn.await_finished(scope):
        return
    exit_item(turn, scope, child)
    if scope.open_items == 0:
        _join(turn, scope)


def enter_foreach(turn: Turn, scope: Scope, step: ForeachStep) -> None:
    """Open the first window of iterations; an empty collection succeeds with `$local` = []."""
    size = _collection_size(turn, scope, step)
    if isinstance(size, Failure):
        fail_step(turn, scope, size)
        return
    turn.begin_wait(scope, WaitKind.JOIN)
    _open_iterations(turn, scope, step, size)
    if size == 0:
        _join(turn, scope)


def finish_iteration(turn: Turn, scope: Scope, step: ForeachStep, child: Scope) -> None:
    """An iteration is done: the next one takes its place; after the last one the step is done."""
    size = _collection_size(turn, scope, step)
    assert isinstance(size, int)
    if scope.open_items == 1 and scope.next_item == size and turn.await_finished(scope):
        return
    exit_item(turn, scope, child)
    _open_iterations(turn, scope, step, size)
    if turn.execution.is_running and scope.open_items == 0:
        _join(turn, scope)


def _collection_size(turn: Turn, scope: Scope, step: ForeachStep) -> int | Failure:
    collection = turn.collection_of(scope, step)
    path = step.collection.text
    if collection is MISSING:
        return Failure(RUNTIME_ERROR, f"the collection {path} was not found in the step's input")
    if not isinstance(collection, list):
        return Failure(RUNTIME_ERROR, f"the collection {path} is not an array")
    items_max = turn.environment.limits.foreach_items_max
    if len(collection) > items_max:
        return Failure(RUNTIME_ERROR, f"the collection {path} has {len(collection)} items; the limit is {items_max}")
    return len(collection)


def _open_iterations(turn: Turn, scope: Scope, step: ForeachStep, size: int) -> None:
    window = turn.environment.limits.foreach_concurrency_max
    while scope.next_item < size and scope.open_items < window:
        if not _open_item(turn, scope, step, step.steps.list_id):
            return


def _open_item(turn: Turn, scope: Scope, step: FanoutStep, list_id: int) -> bool:
    """Open the next branch or iteration; False if that passed a limit and ended the execution."""
    scopes_max = turn.environment.limits.live_scopes_max
    if len(turn.execution.scopes) + turn.execution.finished_count >= scopes_max:
        failure = Failure(RUNTIME_ERROR, f"more than {scopes_max} step lists are open at once")
        fail_step(turn, scope, failure)
        return False
    child = turn.open_scope(scope, list_id, scope.next_item, scope.started_event_id)
    scope.next_item += 1
    scope.open_items += 1
    child.last_event_id = record_entered(turn, scope, step, child)
    return True


def record_entered(turn: Turn, scope: Scope, step: FanoutStep, child: Scope) -> int:
    """Record that a branch or iteration of the scope's step is entered; returns the event's id."""
    entered = EventType.BRANCH_ENTERED
    detail: JsonObject = {"input": turn.input_of(child), "local": child.local, "index": child.item}
    if isinstance(step, ForeachStep):
        entered = EventType.ITERATION_ENTERED
        collection = turn.collection_of(scope, step)
        assert isinstance(collection, list), "checked when the foreach was entered"
        detail["total"] = len(collection)
    return turn.record(entered, step.name, scope.started_event_id, **detail)


def _join(turn: Turn, scope: Scope) -> None:
    complete_step(turn, scope, turn.take_finished(scope), {})
