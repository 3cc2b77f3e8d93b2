"""The meaning of a flow, implemented a second time: a plain recursive interpreter that never waits.

It follows the algorithm of the language reference, reads the definition as data and shares no code with the machine
(paths and conditions come from the expressions package). Where parallel branches race for the first failure, it names
every failure that can win.
"""

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from flowserver.base.clock import parse_instant
from flowserver.base.json_values import Json, JsonObject
from flowserver.base.limits import Limits
from flowserver.expressions.conditions import Condition, compile_condition, holds
from flowserver.expressions.paths import MISSING, compile_path, find
from flowserver.expressions.references import compile_source, resolve
from tests.simulation.functions import SUB, Answer, Functions, event_text

Problem = tuple[str, str | None]
"""An error's name and cause; None matches any cause."""

Call = tuple[str, str, int]
"""The callee, the event and the number of the retry."""

BROKEN: Problem = ("FnF.RuntimeError", None)
_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_condition = lru_cache(maxsize=1000)(compile_condition)


class ListFailed(Exception):
    """A list failed; `problems` are all possible reasons."""

    def __init__(self, problems: frozenset[Problem]) -> None:
        super().__init__(problems)
        self.problems = problems


STARTED: JsonObject = {"FlowName": SUB, "Status": "Running"}
"""The result of a step that does not wait for its sub-flow."""


class Ambiguous(Exception):
    """A sub-flow may fail for one of several reasons, or for one whose message is the server's own."""


@dataclass(frozen=True)
class Settings:
    """The inputs of the reference besides a definition and an input. Without `sub`, all sub-flows are simulated."""

    limits: Limits
    fails_on_missing: bool
    flow_name: str
    execution_name: str
    started_time: str
    token: str
    sub: JsonObject | None = None


@dataclass
class Expected:
    """The expected end of the execution. Calls and entered steps are compared only if it succeeds."""

    output: JsonObject | None = None
    problems: frozenset[Problem] = frozenset()
    calls: Counter[Call] = field(default_factory=Counter)
    entered: Counter[str] = field(default_factory=Counter)


class Reference:
    """Runs one definition."""

    def __init__(self, definition: JsonObject, functions: Functions, settings: Settings) -> None:
        self._definition = definition
        self._functions = functions
        self._settings = settings
        self._bytes_max = settings.limits.step_data_bytes_max
        self._expected = Expected()

    def run(self, given: JsonObject) -> Expected:
        """The expected outcome of an execution with this input; raises Ambiguous."""
        try:
            self._expected.output = self._flow(given)
        except ListFailed as failed:
            self._expected.problems = failed.problems
        return self._expected

    def _flow(self, given: JsonObject) -> JsonObject:
        context = self._context()
        given = self._mapped(self._definition.get("inputMappings"), given, {}, context, given)
        self._measure(given)
        local = self._list(self._definition["steps"], given)
        output = self._mapped(self._definition.get("outputMappings"), given, local, context, local)
        self._measure(output)
        return output

    def _list(self, steps: list[JsonObject], scope_input: JsonObject) -> JsonObject:
        positions = {step["name"]: index for index, step in enumerate(steps)}
        local: JsonObject = {}
        index = 0
        while index < len(steps):
            step = steps[index]
            output, jump = self._step(step, scope_input, local)
            local = {**local, **output}
            self._measure(local)
            if jump is not None:
                index = positions[jump]
            elif step.get("end") or step["type"] == "succeed":
                break
            else:
                index += 1
        return local

    def _step(
        self, step: JsonObject, scope_input: JsonObject, scope_local: JsonObject
    ) -> tuple[JsonObject, str | None]:
        """The output of a step and its jump target."""
        self._expected.entered[step["name"]] += 1
        context = self._context(step)
        everything = {**scope_input, **scope_local}
        given = self._mapped(step.get("inputMappings"), scope_input, scope_local, context, everything)
        kind = step["type"]
        if kind == "task":
            return self._run_task(step, given, scope_local)
        self._measure(given)
        jump: str | None = None
        local: Json = {}
        default: JsonObject = {}
        if kind == "fail":
            raise ListFailed(frozenset({(step.get("error", "FnF.Failed"), step.get("cause", ""))}))
        if kind == "wait":
            self._wait(step, given)
        elif kind == "choice":
            local, jump = self._choice(step, given)
            default = local
        elif kind == "parallel":
            local = self._concurrent_lists([(branch["steps"], given) for branch in step["branches"]])
        elif kind == "foreach":
            local = self._foreach(step, given)
        output = self._mapped(step.get("outputMappings"), given, local, context, default)
        self._measure(given, output, local)
        return output, jump

    # Kinds of steps

    def _choice(self, step: JsonObject, given: JsonObject) -> tuple[JsonObject, str | None]:
        options = (option for option in step["choices"] if _holds(option["condition"], given))
        option = next(options, step.get("default", {}))
        return self._list(option.get("steps", []), given), option.get("goto")

    def _foreach(self, step: JsonObject, given: JsonObject) -> list[JsonObject]:
        mapping = step["iterationMapping"]
        collection = find(compile_path(mapping["collection"]), given)
        if not isinstance(collection, list):
            raise ListFailed(frozenset({BROKEN}))
        inputs = [given | {mapping["item"]: item} for item in collection]
        if "index" in mapping:
            inputs = [each | {mapping["index"]: index} for index, each in enumerate(inputs)]
        return self._concurrent_lists([(step["steps"], each) for each in inputs])

    def _concurrent_lists(self, lists: list[tuple[list[JsonObject], JsonObject]]) -> list[JsonObject]:
        locals: list[JsonObject] = []
        problems: set[Problem] = set()
        for steps, given in lists:
            try:
                locals.append(self._list(steps, given))
            except ListFailed as failed:
                problems |= failed.problems
        if problems:
            raise ListFailed(frozenset(problems))
        return locals

    def _wait(self, step: JsonObject, given: JsonObject) -> None:
        duration, timestamp = step.get("duration"), step.get("timestamp")
        if isinstance(duration, str):
            duration = find(compile_path(duration), given)
        if timestamp is not None:
            parse_instant(timestamp)
        elif isinstance(duration, bool) or not isinstance(duration, int | float) or duration < 0:
            raise ListFailed(frozenset({BROKEN}))

    def _run_task(self, step: JsonObject, given: JsonObject, scope_local: JsonObject) -> tuple[JsonObject, str | None]:
        """As `_step`. A catch, but no retry, applies to an input that is too large."""
        problem = self._excess(f"the input of step {step['name']}", given)
        if problem is not None:
            return self._catch(step, given, scope_local, problem, counted=())
        output, problem = self._task(step, given, scope_local)
        if problem is not None:
            return self._catch(step, given, scope_local, problem, counted=(given,))
        return output, None

    def _task(self, step: JsonObject, given: JsonObject, scope_local: JsonObject) -> tuple[JsonObject, Problem | None]:
        """The output of a task, or the error that remains after all retries."""
        params = self._params(step.get("serviceParams"), given)
        used: Counter[int] = Counter()
        while True:
            result, problem = self._attempt(step, given, params, used.total())
            if problem is None:
                output = self._mapped(step.get("outputMappings"), given, result, self._context(step), result)
                problem = self._excess(f"input, output and local of step {step['name']}", given, output, result)
                problem = problem or self._excess_after(step, scope_local, output)
                if problem is None:
                    return output, None
            number = _naming(step.get("retry", ()), problem)
            if number is None or used[number] >= step["retry"][number].get("maxAttempts", 3):
                return {}, problem
            used[number] += 1

    def _attempt(
        self, step: JsonObject, given: JsonObject, params: Json, retry: int
    ) -> tuple[JsonObject, Problem | None]:
        target, is_function = _target(step)
        invocation = params.get("InvocationType", "Sync") if is_function and params else "Sync"
        if invocation not in ("Sync", "Async"):
            return {}, ("FC.InvalidArgument", "serviceParams.InvocationType must be Sync or Async")
        event = given if is_function or params is None else params
        self._expected.calls[target, event_text(event), retry] += 1
        if invocation == "Async" and step.get("pattern", "requestResponse") == "requestResponse":
            return {}, None  # submitted without waiting for the result
        if target == SUB and self._settings.sub is not None:
            return self._child(step, given, self._settings.sub)
        return _result(step, self._functions.answer(target, event, retry))

    def _child(self, step: JsonObject, given: JsonObject, sub: JsonObject) -> tuple[JsonObject, Problem | None]:
        """The result of a sub-flow: its output if the step waits for it, or the one reason for its failure."""
        if step.get("pattern") != "sync":
            return STARTED, None
        settings = replace(self._settings, flow_name=SUB, sub=None)
        expected = Reference(sub, self._functions, settings).run(given)
        if expected.output is not None:
            return expected.output, None
        if len(expected.problems) > 1 or any(cause is None for _, cause in expected.problems):
            raise Ambiguous
        return {}, next(iter(expected.problems))

    def _catch(
        self,
        step: JsonObject,
        given: JsonObject,
        scope_local: JsonObject,
        problem: Problem,
        *,
        counted: tuple[JsonObject, ...],
    ) -> tuple[JsonObject, str | None]:
        """As `_step`. The cause is left out if it does not fit."""
        number = _naming(step.get("catch", ()), problem)
        if number is None:
            raise ListFailed(frozenset({problem}))
        for cause in (problem[1], ""):
            local = {"error": problem[0], "code": problem[0], "cause": cause}
            output = self._mapped(step.get("errorMappings"), given, local, self._context(step), {})
            excess = (output and self._excess("", *counted, output)) or self._excess_after(step, scope_local, output)
            if not excess:
                return output, step["catch"][number]["goto"]
        raise ListFailed(frozenset({BROKEN}))

    # Documents

    def _mapped(
        self, mappings: list[JsonObject] | None, given: Json, local: Json, context: JsonObject, default: JsonObject
    ) -> JsonObject:
        if mappings is None:
            return default
        built: JsonObject = {}
        for mapping in mappings:
            value = resolve(compile_source(mapping["source"]), input=given, local=local, context=context)
            if value is MISSING and self._settings.fails_on_missing:
                raise ListFailed(frozenset({BROKEN}))
            built[mapping["target"]] = None if value is MISSING else value
        return built

    def _context(self, step: JsonObject | None = None) -> JsonObject:
        settings = self._settings
        context: JsonObject = {
            "flow": {"name": settings.flow_name},
            "execution": {"name": settings.execution_name, "startedTime": settings.started_time},
        }
        if step is not None:
            context["step"] = {"name": step["name"]}
        if step is not None and step.get("pattern") == "waitForCallback":
            context["task"] = {"token": settings.token}
        return context

    def _params(self, value: Json, given: JsonObject) -> Any:
        if isinstance(value, dict):
            return {key: self._params(item, given) for key, item in value.items()}
        if isinstance(value, list):
            return [self._params(item, given) for item in value]
        if not isinstance(value, str) or not value.startswith("$"):
            return value
        found = find(compile_path(value), given)
        if found is MISSING:
            raise ListFailed(frozenset({BROKEN}))
        return found

    def _measure(self, *documents: Json) -> None:
        """The size rule, where nothing catches its failure."""
        if self._excess("", *documents) is not None:
            raise ListFailed(frozenset({BROKEN}))

    def _excess(self, what: str, *documents: Json) -> Problem | None:
        """The size rule: an empty document beside others takes nothing."""
        if len(documents) > 1:
            documents = tuple(document for document in documents if document)
        size = sum(len(_COMPACT.encode(document).encode()) for document in documents)
        if size <= self._bytes_max:
            return None
        return BROKEN[0], f"{what}: more than {self._bytes_max} bytes, the limit step_data_bytes_max"

    def _excess_after(self, step: JsonObject, scope_local: JsonObject, output: JsonObject) -> Problem | None:
        return self._excess(f"the local of the list after step {step['name']}", {**scope_local, **output})


def _holds(text: str, given: JsonObject) -> bool:
    condition: Condition = _condition(text)
    return holds(condition, given)


def _target(step: JsonObject) -> tuple[str, bool]:
    """The callee, and whether it is a function."""
    arn = step.get("resourceArn")
    if arn is None:
        return step["action"], False
    return arn.rpartition("/")[2], arn.startswith("acs:fc:")


def _result(step: JsonObject, answer: Answer) -> tuple[JsonObject, Problem | None]:
    if answer.is_silent:
        return {}, ("FnF.TaskTimeout", f"the attempt took longer than {step['timeoutSeconds']} seconds")
    if answer.raises is not None:
        return {}, (answer.raises, answer.cause)
    if not isinstance(answer.returns, dict):
        return {}, ("FnF.InvalidLocal", "not an object")
    return answer.returns, None


def _naming(rules: Any, problem: Problem) -> int | None:
    """The number of the first rule that names the error."""
    for number, rule in enumerate(rules):
        if problem[0] in rule["errors"] or "FnF.ALL" in rule["errors"]:
            return number
    return None
