"""Which data each step of a flow can have, for every execution at once: a fixed point over the ways through its lists.

What comes from outside is not known: the execution's input, and what functions return. Everything else follows from
the mappings. A nested list is looked at with the input of the step that holds it, as the machine runs it.
"""

from dataclasses import dataclass, field
from typing import Final

from flowserver.analysis.shapes import (
    ANYTHING,
    EMPTY,
    NULL,
    UNKNOWN_OBJECT,
    Array,
    Document,
    Part,
    Presence,
    Scalar,
    Shape,
    compared,
    cut,
    join,
    join_documents,
    look_up,
    overlaid,
    shape_of,
)
from flowserver.expressions.references import Constant, Root, Source
from flowserver.language.arrows import LEAVE, Arrow, Way, arrows_from, options_of
from flowserver.language.check_cost import Work
from flowserver.language.graph import (
    ActionTarget,
    ChoiceStep,
    Flow,
    FlowTarget,
    ForeachStep,
    FunctionTarget,
    Mappings,
    ParallelStep,
    Pattern,
    QueueTarget,
    Step,
    StepList,
    TaskStep,
    TopicTarget,
)
from flowserver.language.targets import ASYNC, INVOCATION_TYPE

WORK_MAX: Final = 200_000
"""Keys that the search for the fixed point carries from step to step; a definition with more is not looked at further.
It takes a second or two."""

_UNIT_KEYS: Final = 2
"""Keys that are carried in one unit of work, about 10 µs."""

ELEMENTS_MAX: Final = 20
"""With more branches of a parallel step, its result's elements are known only together."""

TEXT: Final = Scalar("text")
ERROR: Final = Document({name: Part(TEXT) for name in ("error", "code", "cause")})
"""`$local` of errorMappings."""


class TooMuchWork(Exception):
    """The definition needs more than WORK_MAX; nothing is said of its data."""


def _object(**parts: Shape) -> Document:
    return Document({name: Part(shape) for name, shape in parts.items()})


FLOW_CONTEXT: Final = _object(flow=_object(name=TEXT), execution=_object(name=TEXT, startedTime=TEXT))
_STEP_CONTEXT: Final = overlaid(FLOW_CONTEXT, _object(step=_object(name=TEXT, eventId=Scalar("number"))))
TASK_CONTEXT: Final = overlaid(_STEP_CONTEXT, _object(task=_object(token=TEXT)))
_MESSAGE: Final = _object(MessageId=TEXT, MessageBodyMD5=TEXT, RequestId=TEXT)
_STARTED_FIELDS: Final = ("RequestId", "FlowName", "FlowDefinition", "Name", "Input", "Output", "Status")
STARTED: Final = Document(
    {name: Part(ANYTHING, is_sure=False) for name in (*_STARTED_FIELDS, "StartedTime", "StoppedTime", "ExternalInput")}
)
"""What StartExecution answers."""


def context_of(step: Step) -> Document:
    """`$context` in the mappings of a step."""
    waits = isinstance(step, TaskStep) and step.pattern is Pattern.WAIT_FOR_CALLBACK
    return TASK_CONTEXT if waits else _STEP_CONTEXT


@dataclass(slots=True)
class StepFacts:
    """What a step has, whenever it is entered."""

    outer: Document
    """`$input` of its inputMappings."""
    local: Document
    """`$local` of its inputMappings."""
    input: Document
    result: Shape = EMPTY
    """`$local` of its outputMappings."""
    outputs: dict[Arrow, Document] = field(default_factory=dict)
    """What it puts out on each way that can be gone."""


@dataclass(slots=True)
class ListFacts:
    """What is known of a list; `steps` has no entry for a step that is never entered."""

    input: Document
    steps: dict[int, StepFacts]
    end: Document | None
    """`$local` at its end; None if it never ends well."""


def resolve(source: Source, input: Shape, local: Shape, context: Shape) -> tuple[Presence, Shape]:
    """Whether a source is found, and the shape of what it gives."""
    if isinstance(source, Constant):
        return Presence.ALWAYS, shape_of(source.value)
    root = {Root.INPUT: input, Root.LOCAL: local, Root.CONTEXT: context}[source.root]
    return look_up(root, source.path.segments)


def built(mappings: Mappings, input: Shape, local: Shape, context: Shape) -> Document:
    """The object that a mapping list builds; a source that is not found gives null."""
    parts: dict[str, Part] = {}
    for mapping in mappings:
        presence, shape = resolve(mapping.source, input, local, context)
        if presence is Presence.UNKNOWN:
            shape = ANYTHING
        elif presence is Presence.SOMETIMES:
            shape = join(shape, NULL)
        parts[mapping.target] = Part(cut(shape, depth=1))
    return Document(parts)


class DataFlow:
    """The facts of every list of a flow, by `list_id`, for an execution's input of that shape; raises TooMuchWork."""

    def __init__(self, root: StepList, input: Document, work: Work | None = None, keys_max: int = WORK_MAX) -> None:
        """`work` is paused meanwhile; `keys_max` are carried from step to step at most."""
        self.lists: dict[int, ListFacts] = {}
        self._left = keys_max
        self._work = work or Work()
        self._settle(root, input)

    def _settle(self, steps: StepList, input: Document) -> Document | None:
        """The facts of a list whose input is known; returns its `$local` at its end."""
        known = self.lists.get(steps.list_id)
        if known is not None and known.input == input:
            return known.end
        locals_: dict[int, Document] = {0: EMPTY}
        found: dict[int, StepFacts] = {}
        end: Document | None = None
        todo = [0]
        while todo:
            index = min(todo)
            todo.remove(index)
            self._carry(1 + len(locals_[index].parts) + len(input.parts))
            facts = self._enter(steps.steps[index], list(arrows_from(steps, index)), input, locals_[index])
            found[index] = facts
            for arrow, output in facts.outputs.items():
                self._carry(compared(locals_[index], output) if arrow.way is Way.OPTION else 0)
                after = overlaid(locals_[index], output)
                if arrow.end == LEAVE:
                    end = after if end is None else self._join(end, after)
                    continue
                before = locals_.get(arrow.end)
                joined = after if before is None else self._join(before, after)
                if joined != before:
                    locals_[arrow.end] = joined
                    if arrow.end not in todo:
                        todo.append(arrow.end)
        self.lists[steps.list_id] = ListFacts(input, found, end)
        return end

    def _carry(self, keys: int) -> None:
        """Count work; raises TooMuchWork."""
        self._left -= keys
        self._work.spend(1 + keys // _UNIT_KEYS)
        if self._left < 0:
            raise TooMuchWork

    def _join(self, one: Document, other: Document) -> Document:
        self._carry(compared(one, other))
        return join_documents(one, other)

    def _built(self, mappings: Mappings, input: Shape, local: Shape, context: Shape) -> Document:
        document = built(mappings, input, local, context)
        self._carry(len(mappings) + document.size)
        return document

    def _enter(self, step: Step, arrows: list[Arrow], outer: Document, local: Document) -> StepFacts:
        context = context_of(step)
        input = overlaid(outer, local)
        if step.input_mappings is not None:
            input = self._built(step.input_mappings, outer, local, context)
        facts = StepFacts(outer, local, input)
        match step:
            case ChoiceStep():
                self._take_options(step, arrows, facts)
            case ParallelStep():
                ends = [self._settle(branch, facts.input) for branch in step.branches]
                item: Shape | None = None
                for end in ends:
                    item = item if end is None else join(item, end)
                known = tuple(end for end in ends if end is not None)
                facts.result = Array(item, known if len(known) == len(ends) <= ELEMENTS_MAX else None)
                if len(known) == len(ends):
                    self._put_out(step, arrows, facts, EMPTY)
            case ForeachStep():
                facts.result = Array(self._settle(step.steps, _iteration_input(step, facts.input)))
                self._put_out(step, arrows, facts, EMPTY)
            case TaskStep():
                facts.result = result_of(step)
                self._put_out(step, arrows, facts, facts.result)
            case _:
                self._put_out(step, arrows, facts, EMPTY)
        return facts

    def _put_out(self, step: Step, arrows: list[Arrow], facts: StepFacts, default: Document) -> None:
        context = context_of(step)
        for arrow in arrows:
            if arrow.way is Way.DONE and step.output_mappings is not None:
                facts.outputs[arrow] = self._built(step.output_mappings, facts.input, facts.result, context)
            elif arrow.way is Way.DONE:
                facts.outputs[arrow] = default
            elif arrow.way is Way.CAUGHT:
                assert isinstance(step, TaskStep)
                facts.outputs[arrow] = self._built(step.error_mappings or (), facts.input, ERROR, context)

    def _take_options(self, step: ChoiceStep, arrows: list[Arrow], facts: StepFacts) -> None:
        result: Shape | None = None
        for arrow in arrows:
            steps = options_of(step)[arrow.number].steps
            end = EMPTY if steps is None else self._settle(steps, facts.input)
            if end is None:
                continue
            result = join(result, end)
            output = end
            if step.output_mappings is not None:
                output = self._built(step.output_mappings, facts.input, end, context_of(step))
            facts.outputs[arrow] = output
        facts.result = EMPTY if result is None else result


def data_of(flow: Flow, work: Work | None = None, keys_max: int = WORK_MAX) -> DataFlow | None:
    """The facts of a flow, for any input of an execution; None if that is too much work."""
    given = UNKNOWN_OBJECT
    if flow.input_mappings is not None:
        given = built(flow.input_mappings, UNKNOWN_OBJECT, EMPTY, FLOW_CONTEXT)
    try:
        return DataFlow(flow.root, given, work, keys_max)
    except TooMuchWork:
        return None


def _iteration_input(step: ForeachStep, input: Document) -> Document:
    _, collection = look_up(input, step.collection.segments)
    item = collection.item if isinstance(collection, Array) and collection.item is not None else ANYTHING
    keys = {step.item: Part(item)}
    if step.index is not None:
        keys[step.index] = Part(Scalar("number"))
    return overlaid(input, Document(keys))


def submits(step: TaskStep) -> bool | None:
    """Whether the step submits an asynchronous invocation; None if that depends on the execution."""
    value = (step.service_params or {}).get(INVOCATION_TYPE)
    if not isinstance(step.target, FunctionTarget) or value is None:
        return False
    return value == ASYNC if isinstance(value, str) else None


def result_of(step: TaskStep) -> Document:
    """`$local` of the outputMappings of a task; what a function returns, or a client reports, is not known."""
    if step.pattern is not Pattern.REQUEST_RESPONSE:
        return UNKNOWN_OBJECT
    match step.target:
        case QueueTarget() | TopicTarget():
            return _MESSAGE
        case FlowTarget():
            return STARTED
        case ActionTarget(service="fnf"):
            return STARTED
        case FunctionTarget() if submits(step):
            return EMPTY
    return UNKNOWN_OBJECT
