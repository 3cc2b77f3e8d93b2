"""What a step summary says of each step path: its status, counts of its entries and attempts, and instants."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from flowserver.machine.event_details import HistoryEvent, facts_of, text_in
from flowserver.machine.events import EventType


class StepStatus(StrEnum):
    """What became of a step."""

    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    CAUGHT = "Caught"
    """It failed, and its `catch` went on elsewhere."""
    FAILED = "Failed"
    CANCELLED = "Cancelled"
    """It was cut short: by the failure of another step, or by the end of the execution."""


@dataclass(slots=True)
class Iterations:
    """The iterations of a foreach. `total` counts those that wait for a slot, or were never begun, too."""

    total: int = 0
    done: int = 0
    failed: int = 0
    aborted: int = 0
    """Begun, and cut short: by the failure of another, or by the end of the execution."""
    running: int = 0


class EdgeKind(StrEnum):
    """How control left a step, as its events tell."""

    NEXT = "next"
    """The step succeeded, and its list went on. Also of a choice whose option is not recorded."""
    OPTION = "option"
    """A choice took this option: to the option's first own step, or on at once. Without a number it is not recorded."""
    DEFAULT = "default"
    """The same of its default, or because no option held."""
    AFTER = "after"
    """The own steps of the option were done; no number for the default."""
    CATCH = "catch"
    """The step failed and this rule caught it; without a number the rule is not recorded."""
    BRANCH = "branch"
    ITERATION = "iteration"


class Edge(NamedTuple):
    """A way from a step that an execution took."""

    to: str | None
    """The path of the step that was entered; None at the end of the list."""
    kind: EdgeKind
    number: int | None = None
    """The option, catch rule or branch, from 0."""


ATTEMPTS_KEPT: Final = 10
"""Attempts whose instants are kept, of each task."""


EDGE_BYTES: Final = 100
"""About what an edge or an option takes besides its path."""


ATTEMPT_EVENTS: Final = frozenset(
    (
        EventType.TASK_SCHEDULED,
        EventType.TASK_SUCCEEDED,
        EventType.TASK_FAILED,
        EventType.TASK_TIMED_OUT,
        EventType.TASK_SUBMIT_FAILED,
    )
)
"""Begins and ends of attempts."""


class Attempt(NamedTuple):
    """One attempt of a task; instants in ms."""

    first_ms: int
    last_ms: int | None = None
    """None while it runs."""
    error: str | None = None


VISITS_KEPT: Final = 10
"""So many visits are kept of a step, the first ones, and so many, the last ones."""

VISIT_BYTES: Final = 400
"""About what a visit takes with its attempts."""


class Visit(NamedTuple):
    """One entry of a step, from StepEntered to StepExited; instants in ms."""

    first_ms: int
    last_ms: int | None = None
    """None while it runs."""
    status: StepStatus = StepStatus.RUNNING
    attempts: tuple[Attempt, ...] = ()
    """The last attempts of a task, `ATTEMPTS_KEPT` at most."""
    error: str | None = None


def _begun(attempts: tuple[Attempt, ...], at_ms: int) -> tuple[Attempt, ...]:
    return (*attempts[1 - ATTEMPTS_KEPT :], Attempt(at_ms))


def _ended(attempts: tuple[Attempt, ...], at_ms: int, error: str | None) -> tuple[Attempt, ...]:
    """The attempt that runs, if one does, has ended; with an error if it failed."""
    if attempts and attempts[-1].last_ms is None:
        return (*attempts[:-1], Attempt(attempts[-1].first_ms, at_ms, error))
    return attempts


@dataclass(slots=True)
class StepSummary:
    """One step path. Counts are of entries: a step in a loop or an iteration is entered many times. Instants in ms."""

    path: str
    first_ms: int
    last_ms: int
    """The last event of the step itself."""
    entered: int = 0
    running: int = 0
    waiting: int = 0
    """Of those that run, how many have failed and wait for a redrive."""
    succeeded: int = 0
    caught: int = 0
    failed: int = 0
    cancelled: int = 0
    began_ms: int = 0
    """The begin of its last run: its first entry since the last redrive that ran it again, or since the start. If it
    waited for that redrive, the redrive."""
    attempts: int = 0
    """Attempts of a task in its last run; 0 for other steps."""
    last_attempts: tuple[Attempt, ...] = ()
    """The last of them, in order. None are kept of a step in an iteration, whose attempts run beside each other."""
    redrives: int = 0
    """How many redrives have run it again."""
    seen_redrives: int = 0
    """How many redrives of an execution that had ended there were before its last run."""
    error: str | None = None
    """The last error of an attempt or of the step; None once it has succeeded."""
    iterations: Iterations | None = None
    """Of all its entries together."""
    last_end: StepStatus = StepStatus.RUNNING
    options: dict[str, int] = field(default_factory=dict)
    """How often a choice took each option: by its number, `default`, or `none` if none held. Only what is recorded."""
    edges: dict[Edge, int] = field(default_factory=dict)
    """How often control left the step on each way. A step that a redrive enters again was not reached by a way."""
    visits: tuple[Visit, ...] = ()
    """The first and the last visits, those before redrives included; visits of a step in iterations may overlap."""
    visit_count: int = 0
    """Of all visits."""
    changed_event_id: int = 0
    """The last event that has changed any of this."""

    def run_again(self, at_ms: int) -> None:
        """A redrive runs it again: its time and its attempts count anew."""
        self.began_ms, self.attempts, self.error = at_ms, 0, None
        self.last_attempts = ()
        self.redrives += 1

    def begin_visit(self, at_ms: int) -> int:
        """The step is entered; returns the number of the visit."""
        first, last = self.visits[:VISITS_KEPT], self.visits[VISITS_KEPT:]
        self.visits = (*first, *last[-VISITS_KEPT + 1 :], Visit(at_ms))
        self.visit_count += 1
        return self.visit_count - 1

    def end_visit(self, number: int, at_ms: int, status: StepStatus, error: str | None) -> None:
        """The step is left."""
        visit, place = self._visit(number)
        if visit is not None:
            attempts = _ended(visit.attempts, at_ms, status)
            self._put(place, Visit(visit.first_ms, at_ms, status, attempts, error))

    def note_attempt(self, number: int, event: HistoryEvent) -> None:
        """One of `ATTEMPT_EVENTS`, in the visit of that number."""
        visit, place = self._visit(number)
        if event.type == EventType.TASK_SCHEDULED:
            self.attempts += 1
            if "[]" not in self.path:
                self.last_attempts = _begun(self.last_attempts, event.time_ms)
            if visit is not None:
                self._put(place, visit._replace(attempts=_begun(visit.attempts, event.time_ms)))
            return
        error = None
        if event.type != EventType.TASK_SUCCEEDED:
            self.error = text_in(facts_of(event).error)
            error = self.error or ""
        self.end_attempt(event.time_ms, error)
        if visit is not None:
            self._put(place, visit._replace(attempts=_ended(visit.attempts, event.time_ms, error)))

    def end_attempt(self, at_ms: int, error: str | None) -> None:
        """The attempt that runs, if one does, has ended; with an error if it failed."""
        self.last_attempts = _ended(self.last_attempts, at_ms, error)

    def _visit(self, number: int) -> tuple[Visit | None, int]:
        """The visit of that number, if it is kept, and its place."""
        place = number if number < VISITS_KEPT else len(self.visits) - (self.visit_count - number)
        return (self.visits[place] if number < VISITS_KEPT or place >= VISITS_KEPT else None), place

    def _put(self, place: int, visit: Visit) -> None:
        self.visits = (*self.visits[:place], visit, *self.visits[place + 1 :])

    @property
    def shown_bytes(self) -> int:
        """About how many bytes an answer needs for what is not of a fixed size."""
        edges = sum(EDGE_BYTES + len(edge.to or "") for edge in self.edges)
        return len(self.path) + edges + VISIT_BYTES * len(self.visits)

    @property
    def status(self) -> StepStatus:
        """Running while any entry runs; then whether any failed or was cut short; else what the last one came to."""
        if self.running:
            return StepStatus.RUNNING
        if self.failed:
            return StepStatus.FAILED
        return StepStatus.CANCELLED if self.cancelled else self.last_end
