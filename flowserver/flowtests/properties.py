"""Properties of runs: what a test, or every run of a simulation, can be expected to keep besides its result.

Steps are named as in the rest of a test file: by name, or by path, in which `[]` is every branch or iteration. A
property of a step in a loop holds for each iteration by itself.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple, Protocol

from flowserver.base.json_values import JsonObject
from flowserver.expressions.conditions import CONDITION_VALUES_MAX, Condition, holds, paths_in
from flowserver.expressions.fuel import Fuel, OutOfFuel
from flowserver.expressions.paths import Missing, find
from flowserver.flowtests.condition_names import CALLS, COUNTS, steps_named_in
from flowserver.flowtests.differences import shown_value
from flowserver.flowtests.records import Record
from flowserver.flowtests.resource_names import meant_by_key
from flowserver.flowtests.schemas import Schema
from flowserver.flowtests.step_paths import StepsByPath, names_step, step_at, walk
from flowserver.language.graph import Flow, Span, TaskStep
from flowserver.machine.retry_and_catch import choose_retry
from flowserver.machine.state import Status


class Broken(NamedTuple):
    """How a run breaks a property; `path` is the step that it is about."""

    message: str
    path: str | None = None
    kind: str | None = None
    """What is wrong, without the values that the message shows; None if it shows none but numbers."""


class Property(Protocol):
    """One property of runs."""

    @property
    def name(self) -> str:
        """As test files and reports call it."""

    @property
    def span(self) -> Span | None:
        """Its place in the test file; None if it is not from there."""

    def broken_by(self, record: Record) -> Broken | None:
        """How the run breaks it; None if it does not. What conditions visit counts in the record."""

    def expectation(self) -> JsonObject:
        """What a test expects that has this property."""


@dataclass(frozen=True, slots=True)
class Never:
    """A step is not entered."""

    step: str
    span: Span | None = None
    name: str = "never"

    def broken_by(self, record: Record) -> Broken | None:
        """How the run breaks it."""
        found = next(_of_step(self.step, record.entered), None)
        return None if found is None else Broken(f"step {found} was entered", found)

    def expectation(self) -> JsonObject:
        """What a test expects that has this property."""
        return {self.name: [self.step]}


@dataclass(frozen=True, slots=True)
class AtMostOnce:
    """A step is entered at most once, or a resource called at most for one entry. Calls that are repeated under an
    idempotency key count once.
    """

    key: str
    span: Span | None = None
    name: str = "atMostOnce"

    def broken_by(self, record: Record) -> Broken | None:
        """How the run breaks it."""
        entered = Counter(_of_step(self.key, record.entered))
        for path, count in entered.items():
            if count > 1:
                return Broken(f"step {path} runs {count} times", path)
        keys: dict[str, set[str]] = {}
        for call in record.calls:
            if names_step(self.key, call.path, call.step_name):
                keys.setdefault(f"{call.execution_id} {call.path}", set()).add(call.key)
            elif meant_by_key(self.key, call.target):
                keys.setdefault("", set()).add(call.key)
        for within, found in keys.items():
            if len(found) > 1:
                path = next(call.path for call in reversed(record.calls) if call.key in found)
                what = f"step {path}" if within else self.key
                return Broken(f"{what} is called with {len(found)} idempotency keys", path)
        return None

    def expectation(self) -> JsonObject:
        """What a test expects that has this property."""
        return {self.name: [self.key]}


@dataclass(frozen=True, slots=True)
class Compensated:
    """A step is undone if and only if that is needed: it has succeeded, and `when` is true of the run.

    A step with an attempt that may have done its work, for example after a time-out, may be undone and need not be. The
    task that undoes it has to succeed, unless the execution ends in it after its retries: a redrive goes on with it.
    """

    step: str
    undo: str
    when: Condition | None = None
    """None: the execution does not succeed."""
    span: Span | None = None
    may_fail: bool = False
    """Whether it is enough that the step which undoes the work runs."""
    name: str = "compensated"

    def broken_by(self, record: Record) -> Broken | None:
        """How the run breaks it."""
        ran = Counter(_of_step(self.undo, record.entered))
        done = [path for path in _of_step(self.step, record.done) if record.done[path]]
        is_wanted = self._is_wanted(record)
        if is_wanted:
            flow = record.flow
            entered, undone = _Together(flow, ran), _Together(flow, self._undone(record, ran))
            for path in done:
                if not undone.has(path):
                    why = "does not succeed" if entered.has(path) else "does not run"
                    return Broken(f"step {path} has succeeded and is not undone: {self.undo} {why}", path)
        possible = [*done, *_of_step(self.step, record.unsure)] if is_wanted else []
        could_be = _Together(record.flow, possible)
        for path in ran:
            if not could_be.has(path):
                return Broken(f"step {path} runs, although {self._why(is_wanted)}", path)
        return None

    def _undone(self, record: Record, ran: Iterable[str]) -> Iterator[str]:
        """The entries that undo work, among those of the step that does."""
        if self.may_fail or record.endless is not None:
            yield from ran
            return
        last = failed_after_retries(record)
        for path in ran:
            if record.done[path] or path == last or not isinstance(step_at(record.flow, path), TaskStep):
                yield path

    def _is_wanted(self, record: Record) -> bool:
        if self.when is None:
            return record.execution.status is not Status.SUCCEEDED
        return _holds(self.when, record)

    def _why(self, is_wanted: bool) -> str:
        if is_wanted:
            return f"{self.step} has not succeeded"
        if self.when is None:
            return "the execution succeeds"
        return f"`{self.when.text}` is not true"

    def expectation(self) -> JsonObject:
        """What a test expects that has this property."""
        undo: JsonObject = {"by": self.undo}
        undo |= {} if self.when is None else {"when": self.when.text}
        undo |= {"mayFail": True} if self.may_fail else {}
        return {self.name: {self.step: undo if len(undo) > 1 else self.undo}}


def failed_after_retries(record: Record) -> str | None:
    """The task in which the execution has failed, if a retry of it is for the error: all of them are used up."""
    path, error = record.execution.failed_step, record.execution.error
    step = None if path is None else step_at(record.flow, path)
    if not isinstance(step, TaskStep) or error is None or choose_retry(step.retry, {}, error) is None:
        return None
    return path


@dataclass(frozen=True, slots=True)
class Always:
    """A condition is true of the run, if another one is."""

    then: Condition
    if_: Condition | None = None
    span: Span | None = None
    name: str = "always"

    def broken_by(self, record: Record) -> Broken | None:
        """How the run breaks it."""
        if self.if_ is not None and not _holds(self.if_, record):
            return None
        if _holds(self.then, record):
            return None
        where = "" if self.if_ is None else f", but `{self.if_.text}` is"
        message = f"`{self.then.text}` is not true{where}"
        return Broken(f"{message}: {values_read(self.then, record)}", kind=message)

    def expectation(self) -> JsonObject:
        """What a test expects that has this property."""
        if self.if_ is None:
            return {self.name: [self.then.text]}
        return {self.name: [{"if": self.if_.text, "then": self.then.text}]}


@dataclass(frozen=True, slots=True)
class OutputFits:
    """The output of an execution that succeeds fits a JSON Schema."""

    schema: Schema
    span: Span | None = None
    name: str = "outputSchema"

    def broken_by(self, record: Record) -> Broken | None:
        """How the run breaks it."""
        if record.execution.status is not Status.SUCCEEDED:
            return None
        mistake = self.schema.mistake_in(record.execution.output)
        return (
            None
            if mistake is None
            else Broken(f"the output does not fit its schema, {mistake.message}", kind=mistake.kind)
        )

    def expectation(self) -> JsonObject:
        """What a test expects that has this property."""
        return {self.name: self.schema.document}


VALUES_SHOWN_MAX: Final = 5
"""Values that the message of a broken condition shows."""

FACTS: Final[dict[str, str]] = {
    "status": "`Succeeded`, `Failed` or `TimedOut`; `Running` if the run has no end",
    "error": "the error's name; null if there is none",
    "cause": "the error's text",
    "input": "the execution's input",
    "output": "its output; null unless it succeeded",
    "path": "the list of the paths of all steps, in the order in which they were entered",
    "entered": "by step how often it was entered",
    "succeeded": "by step how often it succeeded",
    "calls": "by step how many calls it made, those that were repeated included",
    "tookSeconds": "virtual time from the start to the end",
}
"""What conditions of properties read. Steps count by name and by path, `entered.Ship`, `calls["pack[].label"]`."""


def document_of(record: Record, condition: Condition) -> JsonObject:
    """The document that a condition of a property is about."""
    execution = record.execution
    counts = {
        "entered": Counter(record.entered),
        "succeeded": record.done,
        CALLS: Counter(call.path for call in record.calls),
    }
    named: dict[str, set[str]] = {}
    for fact, step, *_ in steps_named_in(condition.text):
        named.setdefault(fact, set()).add(step)
    return {
        "status": str(execution.status),
        "error": execution.error,
        "cause": execution.cause,
        "input": execution.input,
        "output": execution.output,
        "path": record.entered,
        **{fact: _counts(record, counts[fact], named.get(fact, set())) for fact in COUNTS},
        "tookSeconds": record.took_ms / 1000,
    }


def values_read(condition: Condition, record: Record) -> str:
    """What the paths of a condition of a run have found: `$.calls.Ship` is 2."""
    document = document_of(record, condition)
    fuel = Fuel(CONDITION_VALUES_MAX)
    shown: dict[str, str] = {}
    for path in islice(paths_in(condition), VALUES_SHOWN_MAX):
        try:
            value = find(path, document, fuel)
        except OutOfFuel:
            break
        shown[path.text] = "not there" if isinstance(value, Missing) else shown_value(value)
    return ", ".join(f"`{path}` is {value}" for path, value in shown.items()) or "it reads nothing"


def _holds(condition: Condition, record: Record) -> bool:
    fuel = Fuel(CONDITION_VALUES_MAX)
    is_true = holds(condition, document_of(record, condition), fuel)
    record.visited += fuel.used
    return is_true


def _counts(record: Record, found: Counter[str], named: set[str]) -> JsonObject:
    """The counts by name, by path and by path with numbers, and of the steps that are named; 0 for those without."""
    steps = StepsByPath(record.flow)
    counts: JsonObject = {key: 0 for path, step in walk(record.flow) for key in (path, step.name)}
    for path, count in found.items():
        for key in {path, steps.path_of(path), path.rpartition(".")[2]}:
            counts[key] = counts.get(key, 0) + count
    return counts | {key: sum(found[path] for path in _of_step(key, found)) for key in named - counts.keys()}


def _of_step(wanted: str, paths: Iterable[str]) -> Iterator[str]:
    """The paths of the step that is wanted."""
    return (path for path in paths if names_step(wanted, path, path.rpartition(".")[2]))


class _Together:
    """Entries of steps, and which others belong to them: not those of another iteration of a loop around both."""

    def __init__(self, flow: Flow, paths: Iterable[str]) -> None:
        self._steps = StepsByPath(flow)
        self._by_step: dict[str, list[str]] = {}
        """By path in the definition."""
        for path in paths:
            self._by_step.setdefault(self._steps.path_of(path), []).append(path)
        self._loops: dict[tuple[str, str], set[str]] = {}

    def has(self, path: str) -> bool:
        """Whether one of the entries belongs to another step's entry."""
        return any(self._has(path, step) for step in self._by_step)

    def _has(self, path: str, step: str) -> bool:
        own = self._steps.path_of(path)
        shared = _shared_parts(own, step)
        if (own, step) not in self._loops:
            self._loops[own, step] = {_begin(each, shared) for each in self._by_step[step]}
        return _begin(path, shared) in self._loops[own, step]


def _shared_parts(one: str, other: str) -> int:
    """How many parts of two paths are the same lists."""
    pairs = zip(one.split("."), other.split("."), strict=False)
    return next((number for number, (mine, others) in enumerate(pairs) if mine != others), one.count(".") + 1)


def _begin(path: str, parts: int) -> str:
    return ".".join(path.split(".")[:parts])
