"""Which features of the language a flow uses, so that random flows can be compared with real ones.

A feature is a text: a part of a kind of step, a kind of step within another, where a jump leads, the form of a
mapping's source or of a path, an operator of a condition. Forms count; names and values do not.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from flowserver.base.limits import Limits
from flowserver.expressions.condition_nodes import And, Compare, Literal, Negate, Node, Not, Select
from flowserver.expressions.paths import EVERY, Path
from flowserver.expressions.references import Constant, Reference, Source
from flowserver.language.arrows import LEAVE, Way, arrows_from, options_of
from flowserver.language.graph import (
    ActionTarget,
    ChoiceStep,
    Flow,
    ForeachStep,
    Mappings,
    ParallelStep,
    ParamPath,
    ParamValue,
    RetryPolicy,
    Step,
    StepList,
    TaskStep,
    WaitStep,
)
from flowserver.language.parser import parse
from flowserver.language.reachability import nested_lists
from flowserver.machine.retry_and_catch import ALL_ERRORS
from tests.analysis.corpus import BEHAVIOURAL, CORRECT, SEEDED, entries
from tests.analysis.random_flows import random_flow
from tests.analysis.test_correct_flows import FLOWS

SEGMENTS_SHOWN = 3
"""Segments of a path by which forms differ."""


def features_of_real_flows() -> Counter[str]:
    """How many flows use each feature: examples, pages, conformance cases, and the corpus of bugs and right flows."""
    texts = [*FLOWS.values(), *(entry.text for folder in (SEEDED, BEHAVIOURAL, CORRECT) for entry in entries(folder))]
    return Counter(each for text in texts for each in features_of(parse(text, Limits(), allow_ref_tags=True).flow))


def features_of_random_flows(seeds: Iterable[int]) -> Counter[str]:
    """How many random flows use each feature."""
    made = (random_flow(seed) for seed in seeds)
    return Counter(each for text, limits in made for each in features_of(parse(text, limits).flow))


def features_of(flow: Flow) -> set[str]:
    """All features of a flow."""
    found = set(_of_mappings("flow", "inputMappings", flow.input_mappings))
    found |= set(_of_mappings("flow", "outputMappings", flow.output_mappings))
    if flow.timeout_seconds is not None:
        found.add("flow: timeoutSeconds")
    for steps in flow.lists:
        for index, step in enumerate(steps.steps):
            found |= set(_of_step(steps, index, step))
            for nested in nested_lists(step):
                found |= {f"{kind_of(step)} > {kind_of(inner)}" for inner in nested.steps}
    return found


def kind_of(step: Step) -> str:
    """The type of a step."""
    return type(step).__name__.removesuffix("Step").lower()


def _of_step(steps: StepList, index: int, step: Step) -> Iterator[str]:
    kind = kind_of(step)
    yield kind
    if step.end:
        yield f"{kind}: end"
    yield from _of_mappings(kind, "inputMappings", step.input_mappings)
    yield from _of_mappings(kind, "outputMappings", step.output_mappings)
    yield from _of_ways(steps, index, kind)
    match step:
        case TaskStep():
            yield from _of_task(step)
        case ChoiceStep():
            yield from _of_choice(step)
        case ForeachStep():
            yield f"foreach: collection {_form(step.collection)}"
            yield f"foreach: {'with' if step.index else 'without'} index"
        case ParallelStep():
            yield f"parallel: {'one branch' if len(step.branches) == 1 else 'branches'}"
        case WaitStep():
            for name, value in (("duration", step.duration), ("timestamp", step.timestamp)):
                if value is not None:
                    yield f"wait: {name} {_form(value) if isinstance(value, Path) else 'constant'}"


def _of_ways(steps: StepList, index: int, kind: str) -> Iterator[str]:
    """Where jumps lead, and to what."""
    for arrow in arrows_from(steps, index):
        jumps = arrow.way is Way.CAUGHT or (arrow.way is Way.OPTION and arrow.end not in (index + 1, LEAVE))
        if jumps:
            where = "itself" if arrow.end == index else "back" if arrow.end < index else "forward"
            yield f"{kind}: {arrow.way} {where}"
            yield f"{kind}: {arrow.way} to {kind_of(steps.steps[arrow.end])}"


def _of_task(step: TaskStep) -> Iterator[str]:
    target = type(step.target).__name__.removesuffix("Target").lower()
    yield f"task: {target}, {step.pattern}"
    if isinstance(step.target, ActionTarget) and step.target.service == "fnf":
        yield f"task: action {step.target.action}, {step.pattern}"
    if step.timeout_seconds is not None:
        yield f"task: {target}, {step.pattern}, timeoutSeconds"
    for name, value in (step.service_params or {}).items():
        yield from (f"task: parameter {name if target != 'action' else '(any)'} {form}" for form in _of_param(value))
    yield from _of_mappings("task", "errorMappings", step.error_mappings)
    for policy in step.retry:
        yield from (f"retry: {each}" for each in (_of_errors(policy.errors), *_of_policy(policy)))
    for rule in step.catch:
        yield f"catch: {_of_errors(rule.errors)}"
    if len(step.catch) > 1:
        yield "catch: rules"
    if step.retry and step.catch:
        yield "task: retry and catch"


def _of_policy(policy: RetryPolicy) -> Iterator[str]:
    plain = RetryPolicy(policy.errors)
    for name in ("interval_seconds", "max_interval_seconds", "max_attempts", "multiplier"):
        value = getattr(policy, name)
        if value != getattr(plain, name):
            yield f"{name} {'0' if value == 0 else 'set'}"


def _of_errors(errors: frozenset[str]) -> str:
    kinds = {name if name in (ALL_ERRORS, "FnF.TaskTimeout") else f"{name.partition('.')[0]}.*" for name in errors}
    known = {kind if kind in (ALL_ERRORS, "FnF.TaskTimeout", "FnF.*", "FC.*") else "own" for kind in kinds}
    return " ".join(sorted(known))


def _of_choice(step: ChoiceStep) -> Iterator[str]:
    for option in options_of(step):
        which = "default" if option.condition is None else "option"
        parts = [name for name, part in (("steps", option.steps), ("goto", option.goto)) if part is not None]
        yield f"choice: {which} with {' and '.join(parts) or 'nothing'}"
        if option.condition is not None:
            yield from (f"condition: {each}" for each in _of_condition(option.condition.tree))


def _of_condition(node: Node) -> Iterator[str]:
    match node:
        case Select():
            yield _form(node.path)
        case Literal():
            yield type(node.value).__name__
        case Compare():
            yield from (f"{operator}" for operator, _ in node.rest)
            for operand in (node.first, *(operand for _, operand in node.rest)):
                yield from _of_condition(operand)
        case Not() | Negate():
            yield "!" if isinstance(node, Not) else "-"
            yield from _of_condition(node.operand)
        case _:
            yield "&&" if isinstance(node, And) else "||"
            for operand in node.operands:
                yield from _of_condition(operand)


def _of_param(value: ParamValue) -> Iterator[str]:
    match value:
        case ParamPath():
            yield _form(value.path)
        case dict():
            yield from (f"in an object: {each}" for item in value.values() for each in _of_param(item))
        case list():
            yield from (f"in a list: {each}" for item in value for each in _of_param(item))
        case _:
            yield "constant"


def _of_mappings(kind: str, attribute: str, mappings: Mappings | None) -> Iterator[str]:
    if mappings == ():
        yield f"{kind}: {attribute} empty"
    for mapping in mappings or ():
        yield f"{kind}: {attribute} {_of_source(mapping.source)}"


def _of_source(source: Source) -> str:
    if isinstance(source, Constant):
        return f"constant {type(source.value).__name__}"
    assert isinstance(source, Reference)
    if source.root == "context":
        return f"$context{source.path.text[1:]}"
    return f"${source.root}{_form(source.path)[1:]}"


def _form(path: Path) -> str:
    forms = ["[*]" if each is EVERY else ".k" if isinstance(each, str) else "[0]" for each in path.segments]
    return "$" + "".join(forms[:SEGMENTS_SHOWN])
