"""Rules about what a task sends: task tokens that are not passed on, and ids that can be used once only."""

from collections.abc import Iterator

from flowserver.analysis.data_flow import StepFacts
from flowserver.analysis.shapes import Document, Presence, Scalar, look_up
from flowserver.analysis.subject import Subject
from flowserver.expressions.references import Reference, Root
from flowserver.language.diagnostics import shown
from flowserver.language.graph import (
    FlowTarget,
    ForeachStep,
    FunctionTarget,
    Mapping,
    ParamPath,
    ParamValue,
    Pattern,
    StepList,
    TaskStep,
)
from flowserver.language.targets import EXECUTION_NAME, INPUT, INVOCATION_ID, MESSAGE_BODY

_TOKEN = ("task", "token")


def check_callbacks_and_ids(subject: Subject) -> None:
    """Look at every task's token and ids."""
    for steps, _, step, facts in subject.entered():
        if isinstance(step, TaskStep):
            if step.pattern is Pattern.WAIT_FOR_CALLBACK:
                _check_token(subject, step)
            for name in (EXECUTION_NAME, INVOCATION_ID):
                _check_id(subject, steps, step, facts, name)


def _check_token(subject: Subject, step: TaskStep) -> None:
    targets = {mapping.target for mapping in step.input_mappings or () if _reads_token(mapping)}
    if not targets:
        message = f"{shown(step.name)} waits for a report with its task token, but does not pass the token on"
        hint = "add `{target: taskToken, source: $context.task.token}` to its inputMappings"
        subject.report("token-not-passed", subject.places.of_step(step.span, "pattern"), message, hint)
        return
    sent = _sent(step)
    if sent is None:
        return
    keys = {path.path.segments[0] if path.path.segments else None for path in _param_paths(sent[1])}
    if None not in keys and not keys & targets:
        message = f"`{sent[0]}` does not hold the task token, which is in {shown('$.' + sorted(targets)[0])}"
        hint = "send the step's whole input with `$`, or add the token"
        subject.report("token-not-passed", subject.places.of_step(step.span, "serviceParams", sent[0]), message, hint)


def _reads_token(mapping: Mapping) -> bool:
    """Whether a mapping takes the token, or an object that holds it."""
    source = mapping.source
    if not isinstance(source, Reference) or source.root is not Root.CONTEXT:
        return False
    return source.path.segments == _TOKEN[: len(source.path.segments)]


def _sent(step: TaskStep) -> tuple[str, ParamValue] | None:
    """The parameter that is sent instead of the step's input."""
    params = step.service_params or {}
    if isinstance(step.target, FlowTarget):
        return (INPUT, params[INPUT]) if INPUT in params else None
    return (MESSAGE_BODY, params[MESSAGE_BODY]) if MESSAGE_BODY in params else None


def _param_paths(value: ParamValue) -> Iterator[ParamPath]:
    if isinstance(value, ParamPath):
        yield value
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _param_paths(item)


def _check_id(subject: Subject, steps: StepList, step: TaskStep, facts: StepFacts, name: str) -> None:
    value = (step.service_params or {}).get(name)
    if value is None or (name == INVOCATION_ID and not isinstance(step.target, FunctionTarget)):
        return
    if isinstance(value, ParamPath):
        presence, shape = look_up(facts.input, value.path.segments)
        is_constant = presence is Presence.ALWAYS and isinstance(shape, Scalar) and shape.constant is not None
    else:
        is_constant = isinstance(value, str)
    hint = "make it from the input or `$context.execution.name`, or leave it out"
    message = f"`{name}` is the same in each execution, and the second one fails for it"
    if not is_constant and isinstance(value, ParamPath) and (loop := _loop_without(subject, steps, step, value)):
        message = f"`{name}` is the same in each iteration of {shown(loop)}, and only the first one can use it"
        hint = "make it from the item, or leave it out"
        is_constant = True
    if is_constant:
        subject.report("constant-id", subject.places.of_step(step.span, "serviceParams", name), message, hint)


def _loop_without(subject: Subject, steps: StepList, step: TaskStep, value: ParamPath) -> str | None:
    """The name of the foreach around the step whose item, index and body have no part in the value; None if there is
    none, or if that is not known.
    """
    owner = subject.owners.get(steps.list_id)
    loop = None if owner is None else subject.flow.lists[owner.list_id].steps[owner.index]
    facts = subject.facts_of(steps)
    key = value.path.segments[0] if value.path.segments else None
    if not isinstance(loop, ForeachStep) or facts is None or not isinstance(key, str):
        return None
    if step.input_mappings is not None:
        mapping = next((each for each in reversed(step.input_mappings) if each.target == key), None)
        source = None if mapping is None else mapping.source
        if not isinstance(source, Reference) or source.root is not Root.INPUT or not source.path.segments:
            return None
        key = source.path.segments[0]
    elif any(_may_have(known.local, key) for known in facts.steps.values()):
        return None
    return None if key in (loop.item, loop.index) else loop.name


def _may_have(local: Document, key: str) -> bool:
    return local.is_open or key in local.parts
