"""What a run has done, as far as tests and properties ask for it."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from flowserver.base.json_values import JsonObject, load_json
from flowserver.language.graph import Flow, Target
from flowserver.machine.events import Event, EventType
from flowserver.machine.retry_and_catch import TASK_TIMEOUT
from flowserver.machine.state import Execution

UNSURE_ERRORS: Final = frozenset({"FC.Unknown", "FC.InternalServerError", "FC.ServerError", TASK_TIMEOUT})
"""After these the work of a call may be done or not."""

_FAILED_ATTEMPTS: Final = (EventType.TASK_FAILED, EventType.TASK_SUBMIT_FAILED, EventType.TASK_TIMED_OUT)


@dataclass(frozen=True, slots=True)
class Call:
    """A call that a step has made."""

    path: str
    step_name: str
    target: Target
    input: JsonObject
    key: str
    """The idempotency key: calls of one entry of a step have it in common."""

    @property
    def execution_id(self) -> str:
        """The execution that has made it."""
        return self.key.rpartition("-")[0]


@dataclass(eq=False)
class Record:
    """What a run has done; all but its calls is of the case's own flow. Counts are by path, with numbers."""

    flow: Flow
    execution: Execution
    entered: list[str] = field(default_factory=list)
    """The steps in the order in which they were entered."""
    done: Counter[str] = field(default_factory=Counter)
    """How often each step succeeded."""
    failed: Counter[str] = field(default_factory=Counter)
    """How often an attempt of a step, or the step itself, failed."""
    unsure: set[str] = field(default_factory=set)
    """The steps with an attempt that may have done its work or not."""
    lost: list[tuple[str, int]] = field(default_factory=list)
    """Such attempts, in order: the path, and how many calls were made before."""
    errors: set[str] = field(default_factory=set)
    """The errors that attempts failed with."""
    calls: list[Call] = field(default_factory=list)
    events: int = 0
    turns: int = 0
    units: int = 0
    """The work of the run, in units of a budget."""
    visited: int = 0
    """How many values the conditions of properties have visited."""
    endless: str | None = None
    """The step that a run without an end was in; None if it has ended."""

    @property
    def took_ms(self) -> int:
        """Virtual time from the start to the end."""
        stopped_at = self.execution.stopped_at
        return 0 if stopped_at is None else stopped_at - self.execution.started_at

    def add(self, event: Event, path: str) -> None:
        """Take in the next event of the case's own flow."""
        if event.type is EventType.STEP_ENTERED:
            self.entered.append(path)
        elif event.type is EventType.STEP_SUCCEEDED:
            self.done[path] += 1
        elif event.type is EventType.STEP_FAILED:
            self.failed[path] += 1
        elif event.type in _FAILED_ATTEMPTS:
            self.failed[path] += 1
            error = load_json(event.detail)["error"]
            self.errors.add(error)
            if error in UNSURE_ERRORS:
                self.unsure.add(path)
                self.lost.append((path, len(self.calls)))
