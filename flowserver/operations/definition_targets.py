"""Missing targets: functions, flows, queues and topics that a definition names. Warnings: they may come later."""

from collections.abc import Container, Iterator
from typing import NamedTuple

from sqlalchemy import Connection

from flowserver.analysis.sub_flow_cycles import started_flow, starting_itself
from flowserver.engine.functions.endpoint_lookup import look_up
from flowserver.language.diagnostics import DIAGNOSTICS_MAX, Diagnostic, Severity, Target, shown
from flowserver.language.graph import Flow, FlowTarget, FunctionTarget, QueueTarget, TaskStep, TopicTarget
from flowserver.language.graph import Target as TaskTarget
from flowserver.language.parser import ParsedDefinition
from flowserver.machine.messages import Failure
from flowserver.store.flows import flow_exists
from flowserver.store.functions import FunctionDamaged
from flowserver.store.queues.queues import find_queue
from flowserver.store.queues.topics import find_topic

TARGETS_MAX = 200
"""Different targets of one definition that are looked for, each with a query or two."""


def has_targets(flow: Flow) -> bool:
    """Whether the definition names any function, flow, queue or topic."""
    kinds = (FunctionTarget, QueueTarget, TopicTarget)
    return any(isinstance(task.target, kinds) or started_flow(task) is not None for task in _tasks(flow))


def find_missing_targets(
    connection: Connection, parsed: ParsedDefinition, elsewhere: Container[str], name: str | None = None
) -> tuple[Diagnostic, ...]:
    """The definition's warnings, and one for each task whose target is missing; DIAGNOSTICS_MAX at most.

    Brokers keep the queues named `elsewhere`. The flow of that `name` is not missing, but there is a warning if it
    always starts itself.
    """
    own = None if name is None else starting_itself(name, parsed.flow)
    targets: dict[TaskTarget, _Missing | None] = {}
    found = [*parsed.warnings, *([] if own is None else [own])]
    for task in _tasks(parsed.flow):
        if len(found) >= DIAGNOSTICS_MAX or (task.target not in targets and len(targets) == TARGETS_MAX):
            break
        if isinstance(task.target, FlowTarget) and task.target.flow_name == name:
            continue
        if task.target not in targets:
            targets[task.target] = _missing(connection, task.target, elsewhere)
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


def _missing(connection: Connection, target: TaskTarget, elsewhere: Container[str]) -> _Missing | None:
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
    if isinstance(target, QueueTarget) and target.queue not in elsewhere and not find_queue(connection, target.queue):
        message = f"there is no queue {shown(target.queue)} yet"
        return _Missing("unknown-queue", message, Target("queue", target.queue))
    if isinstance(target, TopicTarget) and not find_topic(connection, target.topic):
        message = f"there is no topic {shown(target.topic)} yet"
        return _Missing("unknown-topic", message, Target("topic", target.topic))
    return None
