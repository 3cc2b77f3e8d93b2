"""What a picture of a flow shows: its steps as nodes, its lists of steps, and the edges that control can take.

Made from a checked graph, for programs that draw or study flows. Nodes, lists and edges are in document order, and a
node or a list is named by its position there, because two options of one choice may hold steps of the same path.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, get_args

from flowserver.base.clock import format_instant
from flowserver.base.durations import shown_duration
from flowserver.expressions.paths import Path
from flowserver.language.fields import STEPS
from flowserver.language.graph import (
    ActionTarget,
    ChoiceStep,
    FailStep,
    Flow,
    FlowTarget,
    ForeachStep,
    FunctionTarget,
    Option,
    ParallelStep,
    PassStep,
    QueueTarget,
    Step,
    StepList,
    SucceedStep,
    Target,
    TaskStep,
    TopicTarget,
    WaitStep,
)
from flowserver.language.resources import START_EXECUTION
from flowserver.language.targets import FLOW_NAME

TYPES: Final[dict[type[Step], str]] = {
    TaskStep: "task",
    WaitStep: "wait",
    PassStep: "pass",
    ChoiceStep: "choice",
    ParallelStep: "parallel",
    ForeachStep: "foreach",
    SucceedStep: "succeed",
    FailStep: "fail",
}
"""The step types by their classes; the names are those of the language."""
assert set(TYPES) == set(get_args(Step))
assert set(TYPES.values()) == set(STEPS)


class ListKind(StrEnum):
    """What a list of steps is the content of."""

    ROOT = "root"
    BRANCH = "branch"
    OPTION = "option"
    DEFAULT = "default"
    ITERATION = "iteration"


class GraphEdgeKind(StrEnum):
    """Why control goes from one step to another."""

    NEXT = "next"
    """The step is done, and its list goes on."""
    OPTION = "option"
    DEFAULT = "default"
    """No option of a choice is taken; also of a choice without a default."""
    GOTO = "goto"
    """An option's own steps are done, and then its goto applies."""
    CATCH = "catch"
    BRANCH = "branch"
    ITERATION = "iteration"
    END = "end"
    """The step ends its list: `end: true`, a succeed or a fail step."""


class CallKind(StrEnum):
    """What a task calls."""

    FUNCTION = "function"
    FLOW = "flow"
    QUEUE = "queue"
    TOPIC = "topic"
    ACTION = "action"


@dataclass(frozen=True, slots=True)
class Call:
    """What a task calls; `flow` is the flow that it starts, if the definition names it."""

    kind: CallKind
    name: str
    pattern: str
    flow: str | None
    retries: int
    """The most retries of an error that a policy of the task allows."""
    timeout_seconds: int | None


@dataclass(frozen=True, slots=True)
class Pause:
    """How long a wait step waits: exactly one is set."""

    seconds: int | None
    until: str | None
    path: str | None
    """Selects the seconds or the instant from the step's input."""


@dataclass(frozen=True, slots=True)
class Loop:
    """What a foreach step iterates over."""

    source: str
    item: str
    index: str | None


@dataclass(frozen=True, slots=True)
class Node:
    """One step; `path` is that of step summaries. `line` and `end_line` are its first and last line, from 1."""

    id: int
    path: str
    name: str
    type: str
    title: str | None
    line: int
    end_line: int
    list: int
    parent: int | None
    call: Call | None
    wait: Pause | None
    foreach: Loop | None


@dataclass(frozen=True, slots=True)
class Steps:
    """One list of steps: which node holds it, as which branch or option, and its nodes."""

    id: int
    kind: ListKind
    parent: int | None
    index: int | None
    nodes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Edge:
    """One way that control can take; `target` is None at the end of the list."""

    source: int
    target: int | None
    kind: GraphEdgeKind
    label: str | None = None
    index: int | None = None
    """The branch, option or catch rule, from 0."""


@dataclass(frozen=True, slots=True)
class Picture:
    """All of it."""

    nodes: tuple[Node, ...]
    lists: tuple[Steps, ...]
    edges: tuple[Edge, ...]

    @property
    def path_characters(self) -> int:
        """The characters of all paths. Names are ASCII; long ones that nest deeply repeat in every path below."""
        return sum(len(node.path) for node in self.nodes)


def picture_of(flow: Flow) -> Picture:
    """The picture of a flow. Lists have the numbers of `Flow.lists`."""
    drawing = _Drawing()
    drawing.add_list(flow.root, ListKind.ROOT, None, None, "")
    lists = tuple(drawing.lists[number] for number in range(len(flow.lists)))
    nodes = tuple(drawing.nodes[number] for number in range(len(drawing.nodes)))
    return Picture(nodes, lists, tuple(_edges(flow, lists)))


class _Drawing:
    """The nodes and lists so far."""

    def __init__(self) -> None:
        self.nodes: dict[int, Node] = {}
        self.lists: dict[int, Steps] = {}

    def add_list(self, steps: StepList, kind: ListKind, parent: int | None, index: int | None, prefix: str) -> None:
        """Add a list with all that it holds; `prefix` goes before the names of its steps."""
        ids = tuple(self._add_step(step, steps.list_id, parent, prefix) for step in steps.steps)
        self.lists[steps.list_id] = Steps(steps.list_id, kind, parent, index, ids)

    def _add_step(self, step: Step, list_id: int, parent: int | None, prefix: str) -> int:
        number, path = len(self.nodes), prefix + step.name
        self.nodes[number] = _node(step, number, path, list_id, parent)
        for kind, index, steps in nested(step):
            self.add_list(steps, kind, number, index, f"{path}{place_of_list(kind, index)}.")
        return number


def place_of_list(kind: ListKind, index: int | None) -> str:
    """What a list adds to the path of the step that holds it."""
    return {ListKind.BRANCH: f"[{index}]", ListKind.ITERATION: "[]"}.get(kind, "")


def nested(step: Step) -> Iterator[tuple[ListKind, int | None, StepList]]:
    """The lists that a step holds, with their numbers among the branches or options."""
    match step:
        case ChoiceStep():
            for index, option in enumerate(step.options):
                if option.steps:
                    yield ListKind.OPTION, index, option.steps
            if step.default and step.default.steps:
                yield ListKind.DEFAULT, None, step.default.steps
        case ParallelStep():
            for index, branch in enumerate(step.branches):
                yield ListKind.BRANCH, index, branch
        case ForeachStep():
            yield ListKind.ITERATION, None, step.steps


def _node(step: Step, number: int, path: str, list_id: int, parent: int | None) -> Node:
    span = step.span
    is_behind = span.end_column == 1 and span.end_line > span.line  # a block of text ends where the next line begins
    call = _call(step) if isinstance(step, TaskStep) else None
    wait = _pause(step) if isinstance(step, WaitStep) else None
    loop = Loop(step.collection.text, step.item, step.index) if isinstance(step, ForeachStep) else None
    return Node(
        id=number,
        path=path,
        name=step.name,
        type=TYPES[type(step)],
        title=_title(step, call, wait, loop),
        line=span.line,
        end_line=span.end_line - 1 if is_behind else span.end_line,
        list=list_id,
        parent=parent,
        call=call,
        wait=wait,
        foreach=loop,
    )


def _title(step: Step, call: Call | None, wait: Pause | None, loop: Loop | None) -> str | None:
    if call:
        return call.name if call.kind is CallKind.FUNCTION else f"{call.kind} {call.flow or call.name}"
    if wait:
        return (
            shown_duration(wait.seconds * 1000)
            if wait.seconds is not None
            else f"until {wait.until}"
            if wait.until
            else wait.path
        )
    if loop:
        return loop.source
    return step.error if isinstance(step, FailStep) else None


def _call(step: TaskStep) -> Call:
    kind, name = _called(step.target)
    flow = name if kind is CallKind.FLOW else None
    if isinstance(step.target, ActionTarget) and step.target.action == START_EXECUTION:
        started = (step.service_params or {}).get(FLOW_NAME)
        flow = started if isinstance(started, str) else None
    retries = max((policy.max_attempts for policy in step.retry), default=0)
    return Call(kind, name, step.pattern.value, flow, retries, step.timeout_seconds)


def _called(target: Target) -> tuple[CallKind, str]:
    match target:
        case FunctionTarget():
            service = target.service + (f".{target.qualifier}" if target.qualifier and target.service else "")
            return CallKind.FUNCTION, "/".join(part for part in (service, target.function) if part)
        case FlowTarget():
            return CallKind.FLOW, target.flow_name
        case QueueTarget():
            return CallKind.QUEUE, target.queue
        case TopicTarget():
            return CallKind.TOPIC, target.topic
    return CallKind.ACTION, target.action


def _pause(step: WaitStep) -> Pause:
    duration, timestamp = step.duration, step.timestamp
    path = duration if isinstance(duration, Path) else timestamp if isinstance(timestamp, Path) else None
    seconds = duration if isinstance(duration, int) else None
    until = format_instant(timestamp) if isinstance(timestamp, int) else None
    return Pause(seconds, until, None if path is None else path.text)


def _edges(flow: Flow, lists: tuple[Steps, ...]) -> Iterator[Edge]:
    """The edges by the step that they leave, in document order."""
    places = sorted((node, steps.id, place) for steps in lists for place, node in enumerate(steps.nodes))
    for node, list_id, place in places:
        yield from _edges_of(node, flow.lists[list_id], place, lists)


def _edges_of(node: int, steps: StepList, place: int, lists: tuple[Steps, ...]) -> Iterator[Edge]:
    step, ids = steps.steps[place], lists[steps.list_id].nodes
    follower = ids[place + 1] if place + 1 < len(ids) else None
    ends = step.end or isinstance(step, (SucceedStep, FailStep))
    after = Edge(node, None, GraphEdgeKind.END) if ends else Edge(node, follower, GraphEdgeKind.NEXT)
    if isinstance(step, ChoiceStep):
        targets = {name: ids[position] for name, position in steps.position.items()}
        yield from _edges_of_choice(step, after, targets, lists)
        return
    for kind, index, inner in nested(step):
        way = GraphEdgeKind.BRANCH if kind is ListKind.BRANCH else GraphEdgeKind.ITERATION
        yield Edge(node, lists[inner.list_id].nodes[0], way, index=index)
    yield after
    if isinstance(step, TaskStep):
        for index, rule in enumerate(step.catch):
            names = ", ".join(sorted(rule.errors))
            yield Edge(node, ids[steps.position[rule.goto]], GraphEdgeKind.CATCH, names, index)


def _edges_of_choice(
    step: ChoiceStep, after: Edge, targets: dict[str, int], lists: tuple[Steps, ...]
) -> Iterator[Edge]:
    """For each option the edge to its first step, or at once to where it leads; then where its steps lead."""
    falls_through = False
    for index, option in [*enumerate(step.options), (None, step.default or _NOTHING)]:
        kind = GraphEdgeKind.DEFAULT if index is None else GraphEdgeKind.OPTION
        label = None if option.condition is None else option.condition.text
        leads_to = after.target if option.goto is None else targets[option.goto]
        if option.steps is None:
            yield Edge(after.source, leads_to, kind, label, index)
            continue
        yield Edge(after.source, lists[option.steps.list_id].nodes[0], kind, label, index)
        if option.goto is None:
            falls_through = True
        else:
            yield Edge(after.source, leads_to, GraphEdgeKind.GOTO, None, index)
    if falls_through:
        yield after


_NOTHING: Final = Option(None, None, None)
