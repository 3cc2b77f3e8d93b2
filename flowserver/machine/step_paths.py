"""Paths of steps for people: `pay`, `pack[17].label`, `ship[1].book`, `check.refund`.

A branch or iteration has its number, from 0; the steps of a choice's option follow the name of the choice.
"""

from collections.abc import Iterator

from flowserver.language.graph import Flow, ForeachStep, ParallelStep
from flowserver.machine.state import Execution, Scope


def open_steps(flow: Flow, execution: Execution) -> Iterator[tuple[Scope, str]]:
    """The innermost scopes, each with the path of the step that it is at."""
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
