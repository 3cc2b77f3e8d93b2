"""What has to be true of every run. A property says of one run how it is broken, if it is.

Properties that hold for every right flow are errors when they are broken. Those that judge by the names of steps are
warnings.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from flowserver.analysis.compensation import ends_use, undoes_by_name
from flowserver.base.json_values import JsonObject
from flowserver.flowtests.properties import Broken, Property
from flowserver.flowtests.records import Record
from flowserver.flowtests.step_paths import general, walk
from flowserver.language.arrows import Way, arrows_from
from flowserver.language.diagnostics import Severity
from flowserver.language.graph import FailStep, Flow, Span, Step, TaskStep
from flowserver.machine.mappings import RUNTIME_ERROR
from flowserver.machine.state import Status

ENDS: Final = "ends"
OWN_MISTAKE: Final = "own-mistake"
UNDONE: Final = "undone"
UNDONE_WITHOUT_NEED: Final = "undone-without-need"
SUCCEEDS: Final = "succeeds"

DEFAULT_PROPERTIES: Final[dict[str, tuple[Severity, str]]] = {
    ENDS: (Severity.ERROR, "Every run ends."),
    OWN_MISTAKE: (
        Severity.ERROR,
        "No run fails with `FnF.RuntimeError` because the definition reads data that is not there.",
    ),
    UNDONE: (
        Severity.WARNING,
        "If a run fails after the success of `BookHotel`, a step such as `CancelHotel` runs.",
    ),
    UNDONE_WITHOUT_NEED: (
        Severity.WARNING,
        "A step whose name says that it undoes work, and to which a `catch` leads, does not run if nothing failed.",
    ),
    SUCCEEDS: (Severity.WARNING, "Of all runs at least one succeeds."),
}
"""What is checked without a test file, by name."""


@dataclass(frozen=True, slots=True)
class Ends:
    """Every run ends."""

    name: str = ENDS
    span: Span | None = None

    def expectation(self) -> JsonObject:
        """A test always expects this."""
        return {}

    def broken_by(self, record: Record) -> Broken | None:
        """How the run breaks it."""
        if record.endless is None:
            return None
        if record.endless == "":
            last = record.entered[-1] if record.entered else None
            return Broken("the execution does not end", last)
        return Broken(f"the execution does not end: it enters step {record.endless} again and again", record.endless)


@dataclass(frozen=True, slots=True)
class NoOwnMistake:
    """No run fails by a mistake of the definition."""

    name: str = OWN_MISTAKE
    span: Span | None = None

    def expectation(self) -> JsonObject:
        """What a test expects instead."""
        return {"always": [f'$.error != "{RUNTIME_ERROR}"']}

    def broken_by(self, record: Record) -> Broken | None:
        """How the run breaks it."""
        execution = record.execution
        if execution.error != RUNTIME_ERROR or RUNTIME_ERROR in record.errors:
            return None
        path = execution.failed_step
        if path is not None and isinstance(step_at(record.flow, path), FailStep):
            return None
        where = "" if path is None else f"step {path} fails by itself, "
        return Broken(f"{where}{RUNTIME_ERROR}: {execution.cause}", path)


@dataclass(frozen=True, slots=True)
class UndoneIfNeeded:
    """A step is undone if the execution fails."""

    done: str
    undo: str
    undoing: frozenset[str]
    """All steps that undo."""
    name: str = UNDONE
    span: Span | None = None

    def expectation(self) -> JsonObject:
        """What a test expects instead."""
        return {"compensated": {self.done: self.undo}}

    def broken_by(self, record: Record) -> Broken | None:
        """How the run breaks it."""
        execution = record.execution
        if execution.status is not Status.FAILED or not record.done[self.done] or self.undo in record.entered:
            return None
        if execution.failed_step in self.undoing:
            return None
        after = f"after {execution.failed_step} has failed with {execution.error}"
        return Broken(f"step {self.done} has succeeded and is not undone: {self.undo} does not run {after}", self.done)


@dataclass(frozen=True, slots=True)
class UndoneOnlyIfNeeded:
    """No step is undone if nothing failed."""

    undo: str
    name: str = UNDONE_WITHOUT_NEED
    span: Span | None = None

    def expectation(self) -> JsonObject:
        """What a test expects instead."""
        return {"never": [self.undo]}

    def broken_by(self, record: Record) -> Broken | None:
        """How the run breaks it."""
        if record.failed or self.undo not in record.entered:
            return None
        return Broken(f"step {self.undo} runs, although nothing failed", self.undo)


def severity_of(name: str) -> Severity:
    """The severity of a property: those of a test file are errors."""
    return DEFAULT_PROPERTIES[name][0] if name in DEFAULT_PROPERTIES else Severity.ERROR


def default_properties(flow: Flow) -> tuple[Property, ...]:
    """The properties that are checked of every flow."""
    return (Ends(), NoOwnMistake(), *_undoing(flow))


def step_at(flow: Flow, path: str) -> Step | None:
    """The step of a path, with or without numbers."""
    wanted = general(path)
    return next((step for each, step in walk(flow) if general(each) == wanted), None)


_WORD: Final = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")


def _undoing(flow: Flow) -> Iterator[Property]:
    """What the names of steps say. Steps in loops are left out: which of their entries is meant is not known."""
    paths = {path: step for path, step in walk(flow) if isinstance(step, TaskStep) and "[" not in path}
    caught = {
        id(steps.steps[arrow.end])
        for steps in flow.lists
        for index in range(len(steps.steps))
        for arrow in arrows_from(steps, index)
        if arrow.way is Way.CAUGHT
    }
    undoing = {path: step for path, step in paths.items() if undoes_by_name(step)}
    for undo, step in undoing.items():
        if id(step) in caught and not ends_use(step, paths.values()):
            yield UndoneOnlyIfNeeded(undo)
        what = _words(step)[1:]
        for path, other in paths.items():
            if what and path not in undoing and what in (_words(other), _words(other)[1:]):
                yield UndoneIfNeeded(path, undo, frozenset(undoing))


def _words(step: Step) -> list[str]:
    return [word.lower() for word in _WORD.findall(step.name)]
