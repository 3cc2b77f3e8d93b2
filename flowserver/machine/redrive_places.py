"""Where the scopes of an execution that has ended, or waits for a redrive, are in another definition.

A scope is stored by numbers of lists and steps. Another definition has other numbers, so scopes are found again by
names: of the steps that opened them, and of the step that each is at.
"""

from flowserver.expressions.paths import find
from flowserver.language.graph import ChoiceStep, Flow, ForeachStep, ParallelStep, Step, StepList
from flowserver.machine.state import Execution, Scope
from flowserver.machine.step_paths import path_of
from flowserver.machine.steps.choice import option_of


def fit(old: Flow, new: Flow, execution: Execution) -> list[str]:
    """Move the scopes of an execution to their places in another definition.

    Returns the reasons why they do not fit; then none is moved.
    """
    fitting = _Fitting(old, execution)
    places = [(scope, scope.list_id, scope.step_index) for scope in execution.scopes.values()]
    for scope in list(execution.scopes.values()):
        if scope.parent_id is None:
            fitting.move(scope, new.root)
    if fitting.reasons:
        for scope, list_id, step_index in places:
            scope.list_id, scope.step_index = list_id, step_index
    return fitting.reasons


class _Fitting:
    def __init__(self, old: Flow, execution: Execution) -> None:
        self.reasons: list[str] = []
        self._old = old
        self._execution = execution
        self._paths = {scope_id: path_of(old, execution, each) for scope_id, each in execution.scopes.items()}

    def move(self, scope: Scope, to: StepList) -> None:
        """Move a scope to a list of the new definition, and then those that its step has opened."""
        old_steps, children = self._old.lists[scope.list_id].steps, self._execution.opened_by(scope)
        scope.list_id = to.list_id
        if scope.step_index >= len(old_steps):
            scope.step_index = len(to.steps)
            return
        old = old_steps[scope.step_index]
        path = self._paths[scope.scope_id]
        if old.name not in to.position:
            self.reasons.append(f"step {path} is not in the definition")
            return
        scope.step_index = to.position[old.name]
        new = to.steps[scope.step_index]
        if children or (scope.step_input is not None and scope.next_item):
            self._move_opened(scope, path, old, new, children)

    def _move_opened(self, scope: Scope, path: str, old: Step, new: Step, children: list[Scope]) -> None:
        reason = _why_not(scope, old, new)
        if reason is not None:
            self.reasons.append(f"step {path} {reason}")
            return
        for child in children:
            to = _list_of(new, scope, child)
            if to is None:
                self.reasons.append(f"step {path} has no steps any more for the option that was taken")
            else:
                self.move(child, to)


def _why_not(scope: Scope, old: Step, new: Step) -> str | None:
    """Why what an old step has opened cannot belong to the new step."""
    if type(old) is not type(new):
        return f"is a {_kind(new)} now and was a {_kind(old)}"
    if isinstance(old, ParallelStep) and isinstance(new, ParallelStep) and len(old.branches) != len(new.branches):
        return f"has {len(new.branches)} branches now and had {len(old.branches)}"
    if isinstance(old, ForeachStep) and isinstance(new, ForeachStep):
        is_same = find(old.collection, scope.step_input) == find(new.collection, scope.step_input)
        return None if is_same else f"has the collection {new.collection.text} now and had {old.collection.text}"
    return None


def _kind(step: Step) -> str:
    return type(step).__name__.removesuffix("Step").lower()


def _list_of(step: Step, scope: Scope, child: Scope) -> StepList | None:
    if isinstance(step, ParallelStep):
        return step.branches[child.item]
    if isinstance(step, ForeachStep):
        return step.steps
    assert isinstance(step, ChoiceStep), "no other step opens scopes"
    option = option_of(step, scope)
    return None if option is None else option.steps
