"""Rules about data: references that find nothing, always or on one way, and steps that fail for it."""

from collections.abc import Iterator

from flowserver.analysis.data_flow import ERROR, FLOW_CONTEXT, STARTED, StepFacts, context_of, resolve
from flowserver.analysis.missing_hints import hint_for_result, hint_of
from flowserver.analysis.rules import PathStep
from flowserver.analysis.shapes import (
    EMPTY,
    UNKNOWN_OBJECT,
    Anything,
    Array,
    Document,
    Presence,
    Scalar,
    Shape,
    look_up,
)
from flowserver.analysis.subject import Subject
from flowserver.analysis.ways import way_without, way_without_in_both, way_without_in_input
from flowserver.expressions.condition_nodes import And, Compare, Literal, Negate, Node, Not, Or, Select
from flowserver.expressions.paths import Path
from flowserver.expressions.references import Constant, Reference, Root
from flowserver.language.diagnostics import shown
from flowserver.language.graph import (
    ChoiceStep,
    ForeachStep,
    Mapping,
    Mappings,
    ParamPath,
    ParamValue,
    Span,
    Step,
    StepList,
    TaskStep,
    WaitStep,
)

_ROOT_WORDS = tuple(Root)
_TOKEN = ("task", "token")


def check_data(subject: Subject) -> None:
    """Look at every mapping, condition, parameter, collection and time."""
    _check_flow_mappings(subject)
    for steps, index, step, facts in subject.entered():
        _check_inputs(subject, steps, index, step, facts)
        _check_outputs(subject, step, facts)
        for path, span, what in _paths(subject, step):
            _check_path(subject, steps, index, step, facts, path, span, what)
        if isinstance(step, ChoiceStep):
            _check_conditions(subject, step, facts)


def _check_flow_mappings(subject: Subject) -> None:
    flow = subject.flow
    root = subject.facts_of(flow.root)
    if root is None:
        return
    given = flow.input_mappings or ()
    for number, mapping in enumerate(given):
        span = subject.places.of_flow("inputMappings", number, "source")
        _check_always(subject, mapping, (UNKNOWN_OBJECT, EMPTY, FLOW_CONTEXT), span, "there is no step before it")
    if root.end is None:
        return
    for number, mapping in enumerate(flow.output_mappings or ()):
        span = subject.places.of_flow("outputMappings", number, "source")
        hint = hint_of(mapping, root.input, root.end)
        _check_always(subject, mapping, (root.input, root.end, FLOW_CONTEXT), span, hint)


_Roots = tuple[Shape, Shape, Document]


def _check_always(subject: Subject, mapping: Mapping, roots: _Roots, span: Span, hint: str | None) -> bool:
    """Report a source that is never found; a misplaced task token is the parser's to report."""
    source = mapping.source
    if isinstance(source, Constant):
        return False
    presence, _ = resolve(source, *roots)
    is_token = source.root is Root.CONTEXT and source.path.segments[:1] == _TOKEN[:1]
    if presence is not Presence.NEVER or is_token:
        return False
    message = f"{shown(_text(source))} finds nothing in any execution, so {shown(mapping.target)} never has a value"
    if "[*]" in source.path.text and isinstance(resolve(source, *roots)[1], Array):
        message = f"{shown(_text(source))} selects nothing in any execution: the list is always empty"
    subject.report("always-missing", span, message, hint)
    return True


def _text(source: Reference) -> str:
    return f"${source.root}{source.path.text[1:]}"


def _check_inputs(subject: Subject, steps: StepList, index: int, step: Step, facts: StepFacts) -> None:
    roots = (facts.outer, facts.local, context_of(step))
    for number, mapping in enumerate(step.input_mappings or ()):
        span = subject.places.of_step(step.span, "inputMappings", number, "source")
        hint = hint_of(mapping, facts.outer, facts.local)
        if mapping.source is not None and facts.local == EMPTY and steps.list_id and _reads_local(mapping):
            hint = "a nested list begins with an empty `$local`; data from outside is in `$input`"
        if _check_always(subject, mapping, roots, span, hint) or not _uses_its_input(step):
            continue
        path = _way_to_missing(subject, steps, index, mapping)
        if path is not None:
            assert isinstance(mapping.source, Reference)
            message = f"{shown(_text(mapping.source))} is missing on a way to {shown(step.name)}"
            hint = "put the key out on every way, for example in errorMappings or in a pass step before"
            subject.report("missing-on-path", span, message, hint, path)


def _reads_local(mapping: Mapping) -> bool:
    return isinstance(mapping.source, Reference) and mapping.source.root is Root.LOCAL


def _uses_its_input(step: Step) -> bool:
    """Whether null instead of a value is probably not meant: a choice or a pass step may handle it."""
    return isinstance(step, (TaskStep, ForeachStep, WaitStep))


def _way_to_missing(subject: Subject, steps: StepList, index: int, mapping: Mapping) -> tuple[PathStep, ...] | None:
    source = mapping.source
    if not isinstance(source, Reference) or not source.path.segments:
        return None
    key = source.path.segments[0]
    if not isinstance(key, str):
        return None
    if source.root is Root.LOCAL:
        return way_without(subject, steps, index, key)
    if source.root is Root.INPUT:
        return way_without_in_input(subject, steps, key)
    return None


def _check_outputs(subject: Subject, step: Step, facts: StepFacts) -> None:
    if facts.result is STARTED:
        _check_output_of_start(subject, step)
    if facts.outputs:
        roots = (facts.input, facts.result, context_of(step))
        _check_mappings(subject, step, "outputMappings", step.output_mappings, roots, hint_for_result(step))
    if isinstance(step, TaskStep) and step.catch:
        roots = (facts.input, ERROR, context_of(step))
        hint = "`$local` of errorMappings has `error`, `code` and `cause`"
        _check_mappings(subject, step, "errorMappings", step.error_mappings, roots, hint)


def _check_output_of_start(subject: Subject, step: Step) -> None:
    for number, mapping in enumerate(step.output_mappings or ()):
        if isinstance(mapping.source, Reference) and mapping.source.path.segments[:1] == ("Output",):
            span = subject.places.of_step(step.span, "outputMappings", number, "source")
            message = f"`Output` is empty: {shown(step.name)} ends when the flow has started"
            subject.report("output-of-start", span, message, "`pattern: sync` waits for the flow's output, as `$local`")


def _check_mappings(
    subject: Subject, step: Step, attribute: str, mappings: Mappings | None, roots: _Roots, hint: str | None
) -> None:
    for number, mapping in enumerate(mappings or ()):
        span = subject.places.of_step(step.span, attribute, number, "source")
        of_root = hint if _reads_local(mapping) else "`$input` is the step's own input here: inputMappings build it"
        found = hint_of(mapping, roots[0], roots[1], of_root) if attribute == "outputMappings" else of_root
        _check_always(subject, mapping, roots, span, found)


def _paths(subject: Subject, step: Step) -> Iterator[tuple[Path, Span, str]]:
    """The paths into the step's input without which it fails: path, place, name of the attribute."""
    places = subject.places
    match step:
        case ForeachStep():
            yield step.collection, places.of_step(step.span, "iterationMapping", "collection"), "collection"
        case WaitStep(duration=Path() as path):
            yield path, places.of_step(step.span, "duration"), "duration"
        case WaitStep(timestamp=Path() as path):
            yield path, places.of_step(step.span, "timestamp"), "timestamp"
        case TaskStep():
            for name, value in (step.service_params or {}).items():
                for path in _param_paths(value):
                    yield path, places.of_step(step.span, "serviceParams", name), name


def _param_paths(value: ParamValue) -> Iterator[Path]:
    if isinstance(value, ParamPath):
        yield value.path
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _param_paths(item)


def _check_path(
    subject: Subject,
    steps: StepList,
    index: int,
    step: Step,
    facts: StepFacts,
    path: Path,
    span: Span,
    what: str,
) -> None:
    presence, shape = look_up(facts.input, path.segments)
    if presence is Presence.NEVER and isinstance(shape, Array) and what not in ("duration", "timestamp"):
        message = f"`{what}`: {shown(path.text)} selects nothing in any execution: the list is always empty"
        subject.report("always-missing", span, message, "`$` is the step's own input: inputMappings build it")
        return
    if presence is Presence.NEVER:
        message = f"`{what}`: {shown(path.text)} finds nothing in any execution, so the step always fails"
        subject.report("step-always-fails", span, message, "`$` is the step's own input: inputMappings build it")
        return
    if needed := _unfit(what, shape):
        kind = _kind(shape) if presence is Presence.ALWAYS else f"{_kind(shape)} or missing"
        message = f"`{what}`: {shown(path.text)} is {kind} in every execution, not {needed}"
        subject.report("step-always-fails", span, message, "a source that finds nothing gives null")
        return
    key = path.segments[0] if path.segments else None
    if isinstance(key, str) and key in _ROOT_WORDS and key not in facts.input.parts:
        _report_root(subject, span, path)
    elif isinstance(key, str) and step.input_mappings is None:
        found = way_without_in_both(subject, steps, index, key)
        if found is not None:
            message = f"`{what}`: {shown(path.text)} is missing on a way to {shown(step.name)}, which then fails"
            subject.report("step-fails-on-path", span, message, "put the key out on every way", found)


def _unfit(what: str, shape: Shape) -> str | None:
    """What the value has to be if no value of the shape is that."""
    if isinstance(shape, Anything):
        return None
    if what == "collection":
        return None if isinstance(shape, Array) else "a list"
    if what == "duration":
        return None if isinstance(shape, Scalar) and shape.kind == "number" else "a number of seconds"
    if what == "timestamp":
        return None if isinstance(shape, Scalar) and shape.kind == "text" else "an instant"
    return None


def _kind(shape: Shape) -> str:
    if isinstance(shape, Scalar):
        return shape.kind if shape.kind == "null" else f"a {shape.kind}"
    return "an object" if isinstance(shape, Document) else "a list"


def _report_root(subject: Subject, span: Span, path: Path) -> None:
    root, _, rest = path.text[2:].partition(".")
    message = f"{shown(path.text)}: `$` is the step's own input here, so this reads a key named {shown(root)}"
    subject.report("root-in-path", span, message, f"write `$.{rest}`, and add it with inputMappings if it is not there")


def _check_conditions(subject: Subject, step: ChoiceStep, facts: StepFacts) -> None:
    for number, option in enumerate(step.options):
        span = subject.places.of_step(step.span, "choices", number, "condition")
        for path in _selected(option.condition.tree if option.condition else Literal(True)):
            presence, _ = look_up(facts.input, path.segments)
            key = path.segments[0] if path.segments else None
            if isinstance(key, str) and key in _ROOT_WORDS and key not in facts.input.parts:
                _report_root(subject, span, path)
            elif presence is Presence.NEVER:
                message = f"the condition reads {shown(path.text)}, which the step's input never has"
                hint = "`$` is the step's own input: inputMappings build it"
                subject.report("always-missing", span, message, hint)


def _selected(node: Node) -> Iterator[Path]:
    match node:
        case Select():
            yield node.path
        case Not() | Negate():
            yield from _selected(node.operand)
        case Compare():
            for operand in (node.first, *(operand for _, operand in node.rest)):
                yield from _selected(operand)
        case And() | Or():
            for operand in node.operands:
                yield from _selected(operand)
