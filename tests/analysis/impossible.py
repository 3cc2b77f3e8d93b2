"""What findings call impossible, in terms of what happens in a run: the finding is true if no run ever has the fact.

A fact is a tuple: what happens, to which step (its name; "" is the flow), and to which part of it. `facts_of` reads
the facts of a run from its events; `forbidden_by` says which facts a finding excludes. Steps have names of their own.
"""

from collections.abc import Iterator

from flowserver.analysis.places import Places
from flowserver.analysis.rules import Finding
from flowserver.base.clock import format_instant
from flowserver.base.json_values import Json, JsonObject, load_json
from flowserver.base.limits import Limits
from flowserver.expressions.condition_nodes import Compare, Literal, Negate, Node, Not, Select
from flowserver.expressions.conditions import CONDITION_VALUES_MAX
from flowserver.expressions.fuel import Fuel
from flowserver.expressions.paths import EVERY, MISSING, Path, find
from flowserver.expressions.references import Reference, resolve
from flowserver.language.diagnostics import shown
from flowserver.language.graph import (
    CatchRule,
    ChoiceStep,
    Flow,
    ForeachStep,
    Mappings,
    ParamPath,
    ParamValue,
    Pattern,
    RetryPolicy,
    Span,
    Step,
    TaskStep,
    WaitStep,
)
from flowserver.machine.events import Event, EventType
from flowserver.machine.retry_and_catch import ALL_ERRORS
from flowserver.machine.state import Status
from flowserver.machine.step_summary_fold import StepSummaries
from flowserver.machine.steps.choice import DEFAULT_OPTION, choose
from tests.support.world import World

Fact = tuple[str | int, ...]

ATTRIBUTES = ("inputMappings", "outputMappings", "errorMappings")
OWN_TIMEOUT = "the attempt took longer"
CLAIMED = frozenset({
    "always-missing", "catch-never-matches", "endless-loop", "loop-changes-nothing", "no-task-token",
    "passes-limit", "retry-never-applies",
    "step-always-fails", "timeout-never-fires", "unreachable-step", "unused-error-mappings", "wait-outlives-flow",
})  # fmt: skip
"""The findings that call something impossible: all rules that are errors, and five warnings of the parser."""


# What findings exclude


class Claims:
    """Finds the parts of a definition that its findings are about."""

    def __init__(self, text: str, flow: Flow) -> None:
        self._steps: dict[str, Step] = {}
        self._parts: dict[tuple[Span, str], list[Fact]] = {}
        places = Places(text, Limits())
        for attribute, mappings in (("inputMappings", flow.input_mappings), ("outputMappings", flow.output_mappings)):
            for number in range(len(mappings or ())):
                self._note(places.of_flow(attribute, number, "source"), "source", ("", attribute, number))
        for steps in flow.lists:
            for step in steps.steps:
                assert step.name not in self._steps, "each step has a name of its own"
                self._steps[step.name] = step
                self._note_step(places, step)

    def forbidden_by(self, finding: Finding) -> Iterator[Fact]:
        """The facts that no run may have; none for a finding that says what is likely."""
        rule, at = finding.id, finding.span
        if rule == "no-task-token":
            (name,) = self._parts[at, "step"][0]
            yield from (("found", name, *part) for part in _reads_of_token(self._steps[str(name)]))
        elif rule == "always-missing":
            yield from (("found", *part) for part in self._parts.get((at, "source"), ()))
            for name, path in self._parts.get((at, "path"), ()):
                if shown(str(path)) in finding.message:
                    yield "read", name, path
        elif rule in ("catch-never-matches", "retry-never-applies"):
            what = "caught" if rule == "catch-never-matches" else "retried"
            yield from ((what, *part) for part in self._parts[at, what])
        elif rule == "loop-changes-nothing":
            yield from (("took in a success", *part) for part in self._parts[at, "goto"])
        elif rule in _BY_STEP:
            yield from ((_BY_STEP[rule], str(name)) for name, *_ in self._parts[at, "step"])
        elif rule == "passes-limit":
            for name, attribute in self._parts[at, "mappings"]:
                yield _BUILDS[str(attribute)], name

    def shown_by(self, finding: Finding) -> Iterator[Fact]:
        """The facts that the path of a finding shows."""
        if finding.id == "missing-on-path":
            yield from (("not found", *part) for part in self._parts[finding.span, "source"])
        else:
            for name, path in self._parts[finding.span, "path"]:
                yield "not read", name, path

    def _note_step(self, places: Places, step: Step) -> None:
        name, span = step.name, step.span
        for attribute, mappings in _mappings_of(step):
            for number in range(len(mappings)):
                self._note(places.of_step(span, attribute, number, "source"), "source", (name, attribute, number))
            self._note(places.of_step(span, attribute), "mappings", (name, attribute))
            self._note(places.of_step(span, attribute), "step", (name,))
        for attribute in ("name", "duration", "timestamp", "timeoutSeconds"):
            self._note(places.of_step(span, attribute), "step", (name,))
        self._note(places.of_step(span, "iterationMapping", "collection"), "step", (name,))
        for keys, path in paths_of(step):
            self._note(places.of_step(span, *keys), "path", (name, path.text))
        if isinstance(step, ChoiceStep):
            for number in range(len(step.options)):
                self._note(places.of_step(span, "choices", number, "goto"), "goto", (name, number))
            self._note(places.of_step(span, "default", "goto"), "goto", (name, DEFAULT_OPTION))
        if isinstance(step, TaskStep):
            for parameter in step.service_params or {}:
                self._note(places.of_step(span, "serviceParams", parameter), "step", (name,))
            for number in range(len(step.catch)):
                self._note(places.of_step(span, "catch", number, "errors"), "caught", (name, number))
            for number in range(len(step.retry)):
                self._note(places.of_step(span, "retry", number, "errors"), "retried", (name, number))

    def _note(self, span: Span, kind: str, part: Fact) -> None:
        known = self._parts.setdefault((span, kind), [])
        if part not in known:
            known.append(part)


_BUILDS = {"inputMappings": "started", "outputMappings": "succeeded", "errorMappings": "caught by any"}
"""What happens only after a mapping list is built."""

_BY_STEP = {
    "endless-loop": "left by a success",
    "step-always-fails": "passed",
    "timeout-never-fires": "timed out",
    "unreachable-step": "entered",
    "unused-error-mappings": "caught by any",
    "wait-outlives-flow": "waited",
}


def _mappings_of(step: Step) -> Iterator[tuple[str, Mappings]]:
    errors = step.error_mappings if isinstance(step, TaskStep) else None
    yield from zip(ATTRIBUTES, (step.input_mappings or (), step.output_mappings or (), errors or ()), strict=True)


def _reads_of_token(step: Step) -> Iterator[tuple[str, int]]:
    for attribute, mappings in _mappings_of(step):
        for number, mapping in enumerate(mappings):
            if isinstance(mapping.source, Reference) and mapping.source.path.segments[:1] == ("task",):
                yield attribute, number


# What happens in a run


def facts_of(world: World) -> set[Fact]:
    """All facts of a run."""
    reading = _Reading(world)
    for event in world.events:
        reading.add(event)
    if world.execution.status is Status.SUCCEEDED:
        entered = [name for what, name, *_ in reading.facts if what == "entered"]
        reading.facts |= {("took in a success", *rest) for what, *rest in reading.facts if what == "took"}
        reading.facts.update(("left by a success", name) for name in entered)
    return reading.facts


class _Reading:
    def __init__(self, world: World) -> None:
        self.facts: set[Fact] = set()
        self._flow = world.flow
        self._steps = {step.name: step for steps in world.flow.lists for step in steps.steps}
        self._paths = StepSummaries()
        self._inputs: dict[str, JsonObject] = {}
        self._local: JsonObject = {}
        execution = world.execution
        self._context: JsonObject = {
            "flow": {"name": execution.flow_name},
            "execution": {"name": execution.name, "startedTime": format_instant(execution.started_at)},
        }
        self._input = execution.input

    def add(self, event: Event) -> None:
        path, _ = self._paths.add(event)
        detail = load_json(event.detail)
        match event.type:
            case EventType.EXECUTION_STARTED:
                self.facts.add(("entered", ""))
                self._look("", "inputMappings", self._flow.input_mappings, detail["input"], {}, {})
            case EventType.STEP_ENTERED if "." not in path and not self._inputs:
                self._input = detail["input"]
            case EventType.EXECUTION_SUCCEEDED:
                self._look("", "outputMappings", self._flow.output_mappings, self._input, self._local, {})
            case EventType.STEP_EXITED if "." not in path:
                self._local = detail["local"]
        if event.step_name:
            self._add_of_step(self._steps[event.step_name], event, path, detail)

    def _add_of_step(self, step: Step, event: Event, path: str, detail: JsonObject) -> None:
        name, context = step.name, _step_context(step, event)
        match event.type:
            case EventType.STEP_ENTERED:
                self.facts.add(("entered", name))
                self._look(name, "inputMappings", step.input_mappings, detail["input"], detail["local"], context)
            case EventType.STEP_STARTED:
                self.facts.add(("started", name))
                self._inputs[path] = detail["input"]
                for _, read in paths_of(step):
                    is_there = _is_value(read.segments, find(read, detail["input"]))
                    self.facts.add(("read" if is_there else "not read", name, read.text))
                if isinstance(step, ChoiceStep):
                    option = choose(step, detail["input"], Fuel(CONDITION_VALUES_MAX))
                    self.facts.add(("took", name, DEFAULT_OPTION if option is None else option))
            case EventType.STEP_SUCCEEDED:
                self.facts |= {("succeeded", name), ("passed", name)}
                if isinstance(step, WaitStep):
                    self.facts.add(("waited", name))
                given = self._inputs.pop(path)
                self._look(name, "outputMappings", step.output_mappings, given, detail["output"], context)
            case EventType.TASK_FAILED | EventType.TASK_SUBMIT_FAILED | EventType.TASK_TIMED_OUT:
                assert isinstance(step, TaskStep)
                if detail["cause"].startswith(OWN_TIMEOUT):
                    self.facts.add(("timed out", name))
                if "retry" in detail:
                    self.facts.add(("retried", name, _first_for(step.retry, detail["error"])))
            case EventType.STEP_FAILED if "caughtBy" in detail:
                assert isinstance(step, TaskStep)
                error = detail["error"]
                rule = _first_for(step.catch, error)
                self.facts |= {("caught", name, rule), ("caught by any", name), ("passed", name)}
                local = {"error": error, "code": error, "cause": detail["cause"]}
                given = self._inputs.pop(path)
                self._look(name, "errorMappings", step.error_mappings, given, local, context)

    def _look(
        self, name: str, attribute: str, mappings: Mappings | None, given: Json, local: Json, context: JsonObject
    ) -> None:
        whole = self._context | context
        for number, mapping in enumerate(mappings or ()):
            if isinstance(mapping.source, Reference):
                value = resolve(mapping.source, input=given, local=local, context=whole, fuel=None)
                is_there = _is_value(mapping.source.path.segments, value)
                self.facts.add(("found" if is_there else "not found", name, attribute, number))


def paths_of(step: Step) -> Iterator[tuple[tuple[str | int, ...], Path]]:
    """The paths into a step's input, with where each is written."""
    match step:
        case ChoiceStep():
            for number, option in enumerate(step.options):
                if option.condition is not None:
                    for node in selected(option.condition.tree):
                        yield ("choices", number, "condition"), node.path
        case ForeachStep():
            yield ("iterationMapping", "collection"), step.collection
        case WaitStep(duration=Path() as path):
            yield ("duration",), path
        case WaitStep(timestamp=Path() as path):
            yield ("timestamp",), path
        case TaskStep():
            for name, value in (step.service_params or {}).items():
                yield from ((("serviceParams", name), path) for path in _param_paths(value))


def _param_paths(value: ParamValue) -> Iterator[Path]:
    if isinstance(value, ParamPath):
        yield value.path
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _param_paths(item)


def _is_value(segments: tuple[object, ...], value: object) -> bool:
    """Whether something was found; `[*]` finds an empty list where there is nothing."""
    return value is not MISSING and not (EVERY in segments and value == [])


def _first_for(rules: tuple[CatchRule | RetryPolicy, ...], error: str) -> int:
    """The rule that is used for an error."""
    return next(number for number, rule in enumerate(rules) if {error, ALL_ERRORS} & rule.errors)


def _step_context(step: Step, event: Event) -> JsonObject:
    context: JsonObject = {"step": {"name": step.name, "eventId": event.event_id}}
    if isinstance(step, TaskStep) and step.pattern is Pattern.WAIT_FOR_CALLBACK:
        context["task"] = {"token": "token"}
    return context


def selected(node: Node) -> Iterator[Select]:
    """The paths of a condition."""
    match node:
        case Select():
            yield node
        case Not() | Negate():
            yield from selected(node.operand)
        case Compare():
            for operand in (node.first, *(operand for _, operand in node.rest)):
                yield from selected(operand)
        case Literal():
            return
        case _:
            for operand in node.operands:
                yield from selected(operand)
