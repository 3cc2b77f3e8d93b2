"""Where the scopes of an ended execution are: their paths for people, and their places in another definition.

A scope is stored by numbers of lists and steps. Another definition has other numbers, so scopes are found again by
names: of the steps that opened them, and of the step that each is at.
"""

from collections.abc import Iterator

from flowserver.expressions.paths import find
from flowserver.language.graph import ChoiceStep, Flow, ForeachStep, ParallelStep, Step, StepList
from flowserver.machine.state import Execution, Scope
from flowserver.machine.steps.choice import option_of


def open_steps(flow: Flow, execution: Execution) -> Iterator[tuple[Scope, str]]:
    """The innermost scopes, each with the path of the step that it is at: `pack[17].label`, `pay`."""
    for scope in execution.scopes.values():
        if not execution.opened_by(scope):
            yield scope, path_of(flow, execution, scope)


def path_of(flow: Flow, execution: Execution, scope: Scope) -> str:
    """The path of the step that the scope is at; `pack[17]` or "" if it is at the end of its list."""
    names = flow.lists[scope.list_id].steps[scope.step_index : scope.step_index + 1]
    within = _within(flow, execution, scope)
    return ".".join(part for part in (within, *(step.name for step in names)) if part)


def _within(flow: Flow, execution: Execution, scope: Scope) -> str:
    """The path of the scope's list: that of the step that opened it, with the number of the branch or iteration."""
    if scope.parent_id is None:
        return ""
    parent = execution.scopes[scope.parent_id]
    step = flow.lists[parent.list_id].steps[parent.step_index]
    number = f"[{scope.item}]" if isinstance(step, (ParallelStep, ForeachStep)) else ""
    return path_of(flow, execution, parent) + number


def fit(old: Flow, new: Flow, execution: Execution) -> list[str]:
    """Move the scopes of an execution to their places in another definition.

    Returns the reasons why they do not fit; then some may have been moved, and the execution is not to be used.
    """
    fitting = _Fitting(old, execution)
    for scope in list(execution.scopes.values()):
        if scope.parent_id is None:
            fitting.move(scope, new.root)
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
