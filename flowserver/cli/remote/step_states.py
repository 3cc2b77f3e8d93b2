"""The state of an execution, made from its events: its steps in the order in which they were entered.

The events are folded as the server folds them for `describe`, so that both count alike.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from flowserver.cli.remote.error_lines import error_text
from flowserver.client.event_streams import LAST
from flowserver.client.results import Event
from flowserver.machine.step_entries import Entry
from flowserver.machine.step_summary import Iterations, StepStatus
from flowserver.machine.step_summary_fold import StepSummaries

ERRORS_MAX: Final = 5
"""Errors of earlier attempts that are kept of a step, the newest ones."""


class State(StrEnum):
    """The state of a step."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    ABORTED = "aborted"


_STATES: Final = {
    StepStatus.SUCCEEDED: State.DONE,
    StepStatus.FAILED: State.FAILED,
    StepStatus.CAUGHT: State.FAILED,
    StepStatus.CANCELLED: State.ABORTED,
}


class StepProgress(Struct):
    """One entry of a step outside of iterations. `depth` is the number of steps around it."""

    name: str
    depth: int = 0
    state: State = State.WAITING
    started: str | None = None
    stopped: str | None = None
    attempts: int = 0
    attempts_max: int = 0
    errors: list[str] = []
    error: str = ""
    redrives: int = 0
    """How many redrives it has waited for."""
    iterations: Iterations | None = None

    def run_again(self, at: str) -> None:
        """It waited for a redrive, which has come: its time and its attempts count anew."""
        self.started, self.attempts, self.attempts_max, self.errors, self.error = at, 0, 0, [], ""
        self.redrives += 1


class FoldedEvent(Struct, frozen=True):
    """An event of the client as the fold reads it."""

    event_id: int
    schedule_event_id: int
    type: str
    step_name: str
    detail: dict[str, Any]
    time_ms: int = 0

    @staticmethod
    def of(event: Event) -> "FoldedEvent":
        """The event. What the fold says of instants is not used."""
        return FoldedEvent(event.event_id, event.schedule_event_id, event.type, event.step_name, event.detail)


class Progress:
    """The steps of one execution. Feed it every event, in order, from the first."""

    def __init__(self) -> None:
        self.status = "Running"
        self.waiting = 0
        """Steps that wait for a redrive, in iterations too."""
        self.first_waiting = ""
        """The first of them: its path, and its error if it has one."""
        self.parked = ""
        """Why the server has parked the execution, if it has."""
        self.notice = ""
        """What there is to say of the connection, if anything."""
        self._fold = StepSummaries()
        self._steps: dict[int, StepProgress] = {}
        """Those that are shown, by the events with which they were entered."""

    def steps(self) -> list[StepProgress]:
        """All steps that were entered and are shown: iterations are only counted."""
        return list(self._steps.values())

    def add(self, event: Event) -> Iterator[StepProgress]:
        """Take an event in; yields the step that it has begun, ended or set back, if that step is shown."""
        seen = self._fold.add(FoldedEvent.of(event))
        entry = seen.entry
        self._count_waiting(seen.path, event)
        if event.type in LAST:
            self.status = event.type.removeprefix("Execution")
            for step in self._steps.values():
                if step.state is State.RUNNING:
                    step.state, step.stopped = State.ABORTED, event.time
                    yield step
        elif event.type == "ExecutionRedriven":
            self.status = "Running"
            for step in self._steps.values():
                if step.state is State.RUNNING and step.error:
                    step.run_again(event.time)
        if entry is None or "[]" in entry.step.path:
            return
        if event.type == "StepEntered":
            depth = entry.step.path.count(".")
            self._steps[entry.entered_event_id] = StepProgress(event.step_name, depth, State.RUNNING, event.time)
        step = self._steps[entry.entered_event_id]
        step.iterations = entry.iterations
        if self._change(step, entry, event):
            yield step

    def _count_waiting(self, path: str, event: Event) -> None:
        if event.type == "StepWaitingForRedrive":
            if not self.waiting:
                self.first_waiting = ": ".join(part for part in (path, _error(event)) if part)
            self.waiting += 1
        elif event.type == "ExecutionRedriven" or event.type in LAST:
            self.waiting = 0

    def _change(self, step: StepProgress, entry: Entry, event: Event) -> bool:
        """Change the step; returns whether people should see that at once."""
        match event.type:
            case "TaskScheduled":
                step.attempts += 1
            case "TaskFailed" | "TaskTimedOut" | "TaskSubmitFailed" if "retry" in event.detail:
                step.errors = [*step.errors, str(event.detail.get("error") or event.type)][-ERRORS_MAX:]
                step.attempts_max = _attempts_max(step.attempts, event.detail["retry"])
                return True
            case "StepWaitingForRedrive":
                step.error = _error(event)
                return True
            case "StepFailed":
                step.error = _error(event)
            case "StepExited":
                step.stopped = event.time
                step.state = _STATES[entry.end]
                return True
        return event.type == "StepEntered"


def _attempts_max(attempts: int, retry: dict[str, Any]) -> int:
    """How many attempts there will be at most, if each further error is retried as this one; 0 if that is not known."""
    return attempts + 1 + int(retry["max"]) - int(retry["number"]) if "max" in retry else 0


def _error(event: Event) -> str:
    return error_text(event.detail.get("error"), event.detail.get("cause"))
