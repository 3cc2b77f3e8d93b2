"""Functions and flows that a definition names and the server does not have: warnings, since they may come later."""

from collections.abc import Iterator
from typing import NamedTuple

from sqlalchemy import Connection

from flowserver.engine.functions.endpoint_lookup import look_up
from flowserver.language.diagnostics import DIAGNOSTICS_MAX, Diagnostic, Severity, Target, shown
from flowserver.language.graph import Flow, FlowTarget, FunctionTarget, TaskStep
from flowserver.language.graph import Target as TaskTarget
from flowserver.language.parser import ParsedDefinition
from flowserver.machine.messages import Failure
from flowserver.store.flows import flow_exists
from flowserver.store.functions import FunctionDamaged

TARGETS_MAX = 200
"""Different targets of one definition that are looked for, each with a query or two."""


def has_targets(flow: Flow) -> bool:
    """Whether the definition names any function or flow."""
    return any(isinstance(task.target, (FlowTarget, FunctionTarget)) for task in _tasks(flow))


def find_missing_targets(connection: Connection, parsed: ParsedDefinition) -> tuple[Diagnostic, ...]:
    """The definition's warnings, and one for each task whose target is missing; DIAGNOSTICS_MAX at most."""
    targets: dict[TaskTarget, _Missing | None] = {}
    found = list(parsed.warnings)
    for task in _tasks(parsed.flow):
        if len(found) >= DIAGNOSTICS_MAX or (task.target not in targets and len(targets) == TARGETS_MAX):
            break
        if task.target not in targets:
            targets[task.target] = _missing(connection, task.target)
        missing = targets[task.target]
        if missing is not None:
            found.append(Diagnostic(missing.id, Severity.WARNING, missing.message, task.span, target=missing.target))
    return tuple(sorted(found, key=lambda each: (each.span.line, each.span.column, each.id)))


def _tasks(flow: Flow) -> Iterator[TaskStep]:
    return (step for steps in flow.lists for step in steps.steps if isinstance(step, TaskStep))


class _Missing(NamedTuple):
    id: str
    message: str
    target: Target


def _missing(connection: Connection, target: TaskTarget) -> _Missing | None:
    """The warning; None if the target is there, or of another kind."""
    if isinstance(target, FlowTarget):
        if flow_exists(connection, target.flow_name):
            return None
        message = f"there is no flow {shown(target.flow_name)} yet"
        return _Missing("unknown-flow", message, Target("flow", target.flow_name))
    if isinstance(target, FunctionTarget):
        try:
            found = look_up(connection, (target.service, target.qualifier, target.function))
        except FunctionDamaged:
            return None
        if isinstance(found, Failure):
            name = f"{target.service}/{target.function}" if target.service else target.function
            message = f"the function {shown(name)} is not registered yet"
            return _Missing("unknown-function", message, Target("function", name))
    return None
