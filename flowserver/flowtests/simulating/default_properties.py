"""What has to be true of every run. A property says of one run how it is broken, if it is.

Properties that hold for every right flow are errors when they are broken. Those that judge by the names of steps are
warnings.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from flowserver.analysis.compensation import ends_use, take_for_use, undoes_by_name
from flowserver.base.json_values import JsonObject
from flowserver.flowtests.properties import AtMostOnce, Broken, Compensated, Property, failed_after_retries
from flowserver.flowtests.property_names import (
    ENDS,
    OWN_MISTAKE,
    UNDONE,
    UNDONE_WITHOUT_NEED,
)
from flowserver.flowtests.records import Record
from flowserver.flowtests.resource_names import meant_by_key
from flowserver.flowtests.simulating.done_twice import NotDoneTwice
from flowserver.flowtests.simulating.undo_names import caught_in, takes_money, tasks_outside_of_lists, undo_pairs
from flowserver.flowtests.step_paths import names_step, step_at
from flowserver.language.graph import FailStep, Flow, FunctionTarget, Span
from flowserver.machine.mappings import RUNTIME_ERROR
from flowserver.machine.state import Status


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
        return Broken(f"the execution does not end: it enters step {record.endless} again and again", record.endless)


_VALUE_AFTER: Final = re.compile(r"(an RFC 3339 instant|of seconds, 0 or more): .*", re.DOTALL)
"""The value that the cause of a failed wait shows."""


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
        cause = execution.cause or ""
        return Broken(f"{where}{RUNTIME_ERROR}: {cause}", path, _VALUE_AFTER.sub(r"\1", cause))


@dataclass(frozen=True, slots=True)
class UndoneIfNeeded:
    """A step is undone if the execution fails.

    Not if it fails in another step that undoes work, after the retries of that one: a redrive goes on with it, and
    comes to this one. Without retries the first error keeps it from running.
    """

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
        if failed_after_retries(record) in self.undoing:
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


def default_properties(flow: Flow, given: Sequence[Property] = ()) -> tuple[Property, ...]:
    """The properties that are checked of every flow. Steps that those given are about are left to these."""
    compensated = [each.step for each in given if isinstance(each, Compensated)]
    once = [each.key for each in given if isinstance(each, AtMostOnce)]
    return (Ends(), NoOwnMistake(), *_undoing(flow, compensated, once))


def _undoing(flow: Flow, compensated: Sequence[str], once: Sequence[str]) -> Iterator[Property]:
    """What the names of steps say. Steps in loops are left out: which of their entries is meant is not known."""
    paths = tasks_outside_of_lists(flow)
    caught = caught_in(flow, paths)
    undoing = {path: step for path, step in paths.items() if undoes_by_name(step)}
    is_taken = take_for_use(paths.values())
    for undo, step in undoing.items():
        if undo in caught and not ends_use(step, is_taken=is_taken):
            yield UndoneOnlyIfNeeded(undo)
    pairs = list(undo_pairs(paths, caught))
    all_undoing = frozenset({*undoing, *(undo for _, undo in pairs)})
    for done, undo in pairs:
        if not any(names_step(each, done, paths[done].name) for each in compensated):
            yield UndoneIfNeeded(done, undo, all_undoing)
    undone = {done for done, _ in pairs}
    for path, step in paths.items():
        target = step.target
        if not isinstance(target, FunctionTarget) or path in all_undoing:
            continue
        is_given = any(names_step(key, path, step.name) or meant_by_key(key, target) for key in once)
        if not is_given and (path in undone or takes_money(step)):
            yield NotDoneTwice(path, target, all_undoing)
