"""Which points of definitions runs have reached: a fold over the events of the runs.

Nothing of it is in the machine. Which option a choice takes, and which policy an error meets, follows from the events
by the machine's own functions.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from flowserver.base.clock import format_instant
from flowserver.base.json_values import Json, JsonObject
from flowserver.base.limits import Limits
from flowserver.expressions.conditions import CONDITION_VALUES_MAX
from flowserver.expressions.fuel import Fuel, OutOfFuel
from flowserver.expressions.paths import MISSING
from flowserver.expressions.references import resolve
from flowserver.flowtests.cases import Source
from flowserver.flowtests.coverage_points import FALL_THROUGH, Kind, Point, PointKey, Points
from flowserver.flowtests.running import Running
from flowserver.language.graph import (
    ChoiceStep,
    Flow,
    ForeachStep,
    Mappings,
    ParallelStep,
    Pattern,
    Span,
    Step,
    StepList,
    TaskStep,
)
from flowserver.machine.events import Event, EventType, whole_detail
from flowserver.machine.mappings import fuel_for
from flowserver.machine.retry_and_catch import choose_catch, choose_retry
from flowserver.machine.steps.choice import DEFAULT_OPTION, choose

_FAILURES = (EventType.TASK_FAILED, EventType.TASK_SUBMIT_FAILED, EventType.TASK_TIMED_OUT)
_READ = frozenset(
    {
        EventType.EXECUTION_STARTED,
        EventType.EXECUTION_SUCCEEDED,
        EventType.STEP_ENTERED,
        EventType.STEP_STARTED,
        EventType.STEP_SUCCEEDED,
        EventType.STEP_EXITED,
        *_FAILURES,
    }
)


@dataclass(frozen=True, slots=True)
class FileCoverage:
    """The points of one definition with how often each was reached, and the mappings that gave null."""

    source: Source
    counts: tuple[tuple[Point, int], ...]
    nulls: tuple[tuple[Span, str], ...]

    def reached(self, kind: Kind | None = None) -> tuple[int, int]:
        """How many points of a kind, or of all, were reached, and how many there are."""
        counts = [count for point, count in self.counts if kind is None or point.kind is kind]
        return sum(count > 0 for count in counts), len(counts)


def percent_of(files: Iterable[FileCoverage]) -> float:
    """How many percent of all points were reached; 100 if there are none."""
    totals = [each.reached() for each in files]
    wanted = sum(total for _, total in totals)
    return 100 * sum(reached for reached, _ in totals) / wanted if wanted else 100.0


@dataclass
class _Seen:
    """What is remembered of one execution."""

    inputs: dict[str, JsonObject] = field(default_factory=dict)
    """By path the input of a step that is open."""
    lists: dict[str, StepList | None] = field(default_factory=dict)
    """By path the list that a choice has opened."""
    flow_input: JsonObject = field(default_factory=dict)
    local: JsonObject = field(default_factory=dict)
    """Of the flow's own list."""


class Coverage:
    """Give `observe` to the runs."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._files: dict[int, tuple[Source, Points]] = {}
        self._counts: Counter[PointKey] = Counter()
        self._nulls: dict[int, dict[tuple[int, str, int], str]] = {}
        self._seen: dict[int, tuple[Running, _Seen]] = {}

    def add(self, source: Source) -> None:
        """Report on a definition, even if no run reaches it."""
        self._files.setdefault(id(source), (source, Points(source, self._limits)))

    def files(self) -> list[FileCoverage]:
        """What was reached of each definition, in the order in which they were added."""
        return [self._file(source, points) for source, points in self._files.values()]

    def _file(self, source: Source, points: Points) -> FileCoverage:
        counts = tuple((point, self._counts[point.key]) for point in points.all)
        found = self._nulls.get(id(source), {})
        nulls = sorted(
            ((points.mappings[key], text) for key, text in found.items()),
            key=lambda null: (null[0].line, null[0].column),
        )
        return FileCoverage(source, counts, tuple(nulls))

    def observe(self, running: Running, event: Event, path: str) -> None:
        """Take in the next event of an execution."""
        if event.type not in _READ:
            return
        _, seen = self._seen.setdefault(id(running), (running, _Seen()))
        detail = whole_detail(event)
        flow = running.source.flow
        match event.type:
            case EventType.EXECUTION_STARTED:
                seen.flow_input = detail["input"]
                self._look(running, flow, "inputMappings", flow.input_mappings, seen.flow_input, {}, {})
            case EventType.EXECUTION_SUCCEEDED:
                self._look(running, flow, "outputMappings", flow.output_mappings, seen.flow_input, seen.local, {})
            case EventType.STEP_EXITED:
                if "." not in path:
                    seen.local = detail["local"]
            case _:
                self._observe_step(running, seen, event, path, detail)

    def _observe_step(self, running: Running, seen: _Seen, event: Event, path: str, detail: JsonObject) -> None:
        step = _step_at(running.source.flow, seen, path)
        context = _step_context(step, event)
        if event.type is EventType.STEP_ENTERED:
            self._counts[id(step), Kind.STEP, 0] += 1
            self._look(running, step, "inputMappings", step.input_mappings, detail["input"], detail["local"], context)
        elif event.type is EventType.STEP_STARTED:
            seen.inputs[path] = detail["input"]
            if isinstance(step, ChoiceStep):
                self._observe_choice(seen, step, path, detail["input"])
        elif event.type is EventType.STEP_SUCCEEDED:
            given = seen.inputs.pop(path, {})
            self._look(running, step, "outputMappings", step.output_mappings, given, detail["output"], context)
        elif isinstance(step, TaskStep):
            self._observe_failure(running, step, seen.inputs.get(path, {}), detail, context)

    def _observe_choice(self, seen: _Seen, step: ChoiceStep, path: str, given: JsonObject) -> None:
        number = choose(step, given, Fuel(CONDITION_VALUES_MAX))
        self._counts[id(step), Kind.OPTION, FALL_THROUGH if number is None else number] += 1
        option = None if number is None else step.default if number == DEFAULT_OPTION else step.options[number]
        seen.lists[path] = None if option is None else option.steps

    def _observe_failure(
        self, running: Running, step: TaskStep, given: JsonObject, detail: JsonObject, context: JsonObject
    ) -> None:
        error = detail["error"]
        if "retry" in detail:
            number = choose_retry(step.retry, {}, error)
            self._counts[id(step), Kind.RETRY, -1 if number is None else number] += 1
            return
        rule = choose_catch(step.catch, error)
        if rule is not None:
            self._counts[id(step), Kind.CATCH, step.catch.index(rule)] += 1
            local = {"error": error, "code": error, "cause": detail["cause"]}
            self._look(running, step, "errorMappings", step.error_mappings, given, local, context)

    def _look(
        self,
        running: Running,
        owner: Flow | Step,
        attribute: str,
        mappings: Mappings | None,
        given: Json,
        local: Json,
        context: JsonObject,
    ) -> None:
        """Note which of the mappings find nothing, up to where the machine gives up on those that select too much."""
        if not mappings:
            return
        fuel = fuel_for(self._limits.step_data_bytes_max)
        execution = running.execution
        whole: JsonObject = {
            "flow": {"name": execution.flow_name},
            "execution": {"name": execution.name, "startedTime": format_instant(execution.started_at)},
            **context,
        }
        for position, mapping in enumerate(mappings):
            try:
                is_missing = resolve(mapping.source, input=given, local=local, context=whole, fuel=fuel) is MISSING
            except OutOfFuel:
                return
            if is_missing:
                name = f"step {owner.name}" if not isinstance(owner, Flow) else "the flow"
                text = f"{attribute} of {name}: the source of {mapping.target} was not found and gave null"
                self._nulls.setdefault(id(running.source), {})[id(owner), attribute, position] = text


def _step_at(flow: Flow, seen: _Seen, path: str) -> Step:
    """The step at a path with numbers."""
    steps, end = flow.root, 0
    while True:
        dot = path.find(".", end)
        name, _, number = path[end : dot if dot >= 0 else len(path)].partition("[")
        step = steps.steps[steps.position[name]]
        if dot < 0:
            return step
        match step:
            case ParallelStep(branches=branches):
                steps = branches[int(number[:-1])]
            case ForeachStep(steps=inner):
                steps = inner
            case _:
                opened = seen.lists[path[:dot]]
                assert opened is not None, "an option without steps has none below it"
                steps = opened
        end = dot + 1


def _step_context(step: Step, event: Event) -> JsonObject:
    context: JsonObject = {"step": {"name": step.name, "eventId": event.event_id}}
    if isinstance(step, TaskStep) and step.pattern is Pattern.WAIT_FOR_CALLBACK:
        context["task"] = {"token": ""}
    return context
