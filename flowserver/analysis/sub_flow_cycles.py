"""Flows that start themselves on every way through them, directly or through other flows: without a bound, no end."""

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from flowserver.language.arrows import LEAVE, Arrow, arrows_from, options_of
from flowserver.language.diagnostics import Diagnostic, Severity, shown
from flowserver.language.graph import (
    ActionTarget,
    ChoiceStep,
    Flow,
    FlowTarget,
    ParallelStep,
    StepList,
    TaskStep,
)
from flowserver.language.resources import START_EXECUTION
from flowserver.language.targets import FLOW_NAME

_HINT: Final = "let a `choice` lead past this step; the limit `sub_flow_depth_max` ends the executions"

Starts = Mapping[str, Collection[str]]
"""By the name of each flow, the flows that every way through it starts."""


def started_flow(step: TaskStep) -> str | None:
    """The flow that a step starts; None if it starts none, or if its data names the flow."""
    if isinstance(step.target, FlowTarget):
        return step.target.flow_name
    name = (step.service_params or {}).get(FLOW_NAME)
    is_start = isinstance(step.target, ActionTarget) and step.target.action == START_EXECUTION
    return name if is_start and isinstance(name, str) else None


def always_started(flow: Flow, among: Collection[str]) -> frozenset[str]:
    """Those of some flows that every way through a flow starts, unless a step before fails and nothing catches that."""
    names = {name for step in _tasks(flow) if (name := started_flow(step)) in among and name}
    return frozenset(name for name in names if not _avoids(flow.root, name))


def starts_of(flows: Mapping[str, Flow]) -> Starts:
    """What each of some flows starts of them."""
    return {name: always_started(flow, flows.keys()) for name, flow in flows.items()}


def starting_itself(name: str, flow: Flow, beside: Starts | None = None) -> Diagnostic | None:
    """The finding, if every way through the flow starts it again; `beside` has flows that it may do so through."""
    starts = beside or {}
    cycle = _cycle(name, {**starts, name: always_started(flow, {name, *starts})})
    if cycle is None:
        return None
    step = next(step for step in _tasks(flow) if started_flow(step) == cycle[1])
    way = "itself" if len(cycle) == 2 else f"itself again: {' → '.join(map(shown, cycle))}"
    message = f"every way through {shown(name)} starts {way}"
    return Diagnostic("starts-itself", Severity.WARNING, message, step.span, _HINT)


def _tasks(flow: Flow) -> Iterator[TaskStep]:
    return (step for steps in flow.lists for step in steps.steps if isinstance(step, TaskStep))


def _avoids(steps: StepList, name: str) -> bool:
    """Whether a way through the list does not start the flow."""
    seen, todo = {0}, [0]
    for index in todo:
        for arrow in arrows_from(steps, index):
            if not _starts(steps, arrow, name):
                if arrow.end == LEAVE:
                    return True
                if arrow.end not in seen:
                    seen.add(arrow.end)
                    todo.append(arrow.end)
    return False


def _starts(steps: StepList, arrow: Arrow, name: str) -> bool:
    """Whether the flow is started on this way. A foreach may have no iterations."""
    match steps.steps[arrow.start]:
        case TaskStep() as task:
            return started_flow(task) == name
        case ParallelStep(branches=branches):
            return any(not _avoids(branch, name) for branch in branches)
        case ChoiceStep() as choice:
            inner = options_of(choice)[arrow.number].steps
            return inner is not None and not _avoids(inner, name)
    return False


def _cycle(name: str, starts: Starts) -> list[str] | None:
    """The shortest way of starts from a flow back to it, with the flow at both ends."""
    came: dict[str, str] = {}
    todo = [name]
    for each in todo:
        for started in starts.get(each, ()):
            if started == name:
                way = [each]
                while way[-1] != name:
                    way.append(came[way[-1]])
                return [*way[::-1], name]
            if started not in came:
                came[started] = each
                todo.append(started)
    return None
