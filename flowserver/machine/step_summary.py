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
    changed_event_id: int = 0
    """The last event that has changed any of this."""

    def run_again(self, at_ms: int) -> None:
        """A redrive runs it again: its time and its attempts count anew."""
        self.began_ms, self.attempts, self.error = at_ms, 0, None
        self.last_attempts = ()
        self.redrives += 1

    def note_attempt(self, event: HistoryEvent) -> None:
        """One of `ATTEMPT_EVENTS`."""
        if event.type == EventType.TASK_SCHEDULED:
            self.attempts += 1
            if "[]" not in self.path:
                self.last_attempts = (*self.last_attempts[1 - ATTEMPTS_KEPT :], Attempt(event.time_ms))
        elif event.type == EventType.TASK_SUCCEEDED:
            self.end_attempt(event.time_ms, None)
        else:
            self.error = text_in(facts_of(event).error)
            self.end_attempt(event.time_ms, self.error or "")

    def end_attempt(self, at_ms: int, error: str | None) -> None:
        """The attempt that runs, if one does, has ended; with an error if it failed."""
        if self.last_attempts and self.last_attempts[-1].last_ms is None:
            self.last_attempts = (*self.last_attempts[:-1], Attempt(self.last_attempts[-1].first_ms, at_ms, error))

    @property
    def shown_bytes(self) -> int:
        """About how many bytes an answer needs for what is not of a fixed size."""
        return len(self.path) + sum(EDGE_BYTES + len(edge.to or "") for edge in self.edges)

    @property
    def status(self) -> StepStatus:
        """Running while any entry runs; then whether any failed or was cut short; else what the last one came to."""
        if self.running:
            return StepStatus.RUNNING
        if self.failed:
            return StepStatus.FAILED
        return StepStatus.CANCELLED if self.cancelled else self.last_end
