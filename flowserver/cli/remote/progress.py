"""The state of an execution, made from its events: its steps in the order in which they were entered."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from flowserver.client.feeds import LAST
from flowserver.client.results import Event

ERRORS_MAX: Final = 5
"""Errors of earlier attempts that are kept of a step, the newest ones."""


class State(StrEnum):
    """The state of a step."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(slots=True)
class StepProgress:
    """One step outside of iterations. `depth` is the number of steps around it."""

    name: str
    depth: int = 0
    state: State = State.WAITING
    started: str | None = None
    stopped: str | None = None
    attempts: int = 0
    errors: list[str] = field(default_factory=list)
    error: str = ""
    iterations: int = 0
    iterations_entered: int = 0
    iterations_done: int = 0
    iterations_failed: int = 0
    resumes: bool = False

    @property
    def iterations_over(self) -> int:
        """Iterations that are done; in a redrive those that it does not run again are among them."""
        kept = self.iterations - self.iterations_entered if self.resumes else 0
        return kept + self.iterations_done


@dataclass(slots=True, eq=False)
class _Scope:
    """One running list of steps: the flow's, a branch or an iteration, with the steps that are entered in it."""

    around: "_Scope | None"
    is_iteration: bool
    depth: int
    entered: list[StepProgress] = field(default_factory=list)
    has_failed: bool = False

    @property
    def is_shown(self) -> bool:
        """Whether its steps have lines of their own: iterations are counted only."""
        return not self.is_iteration and (self.around is None or self.around.is_shown)


class Progress:
    """The steps of one execution. Feed it every event, in order, from the first."""

    def __init__(self) -> None:
        self.status = "Running"
        self._steps: list[StepProgress] = []
        self._scopes: dict[int, _Scope] = {}
        """In which list of steps the events happen that an event causes, by its id."""

    def steps(self) -> list[StepProgress]:
        """All steps that were entered and are shown."""
        return list(self._steps)

    def add(self, event: Event) -> Iterator[StepProgress]:
        """Take an event in; yields the step that it has begun, ended or set back, if that step is shown."""
        cause = self._scopes.get(event.schedule_event_id)
        scope = cause or _Scope(None, False, 0)
        self._scopes[event.event_id] = scope
        match event.type:
            case "StepEntered":
                yield from self._enter(scope, event)
            case "IterationEntered" | "BranchEntered":
                self._open(scope, event)
            case "IterationExited" | "BranchExited":
                self._close(scope, event)
            case "StepExited":
                if scope.entered:
                    step = scope.entered.pop()
                    step.stopped = event.time
                    if scope.is_shown:
                        yield step
            case type if type in LAST:
                self.status = type.removeprefix("Execution")
            case "ExecutionRedriven":
                self.status = "Running"
            case _:
                yield from self._change(scope, event)

    def _enter(self, scope: _Scope, event: Event) -> Iterator[StepProgress]:
        depth = scope.depth + len(scope.entered)
        step = StepProgress(event.step_name, depth, State.RUNNING, event.time, resumes="resumes" in event.detail)
        scope.entered.append(step)
        scope.has_failed = False
        if scope.is_shown:
            self._steps.append(step)
            yield step

    def _change(self, scope: _Scope, event: Event) -> Iterator[StepProgress]:
        step = scope.entered[-1] if scope.entered else None
        if step is None:
            return
        match event.type:
            case "TaskScheduled":
                step.attempts += 1
            case "TaskFailed" | "TaskTimedOut" | "TaskSubmitFailed" if "retry" in event.detail:
                step.errors = [*step.errors, str(event.detail.get("error") or event.type)][-ERRORS_MAX:]
                if scope.is_shown:
                    yield step
            case "StepSucceeded":
                step.state = State.DONE
            case "StepFailed":
                step.state = State.FAILED
                step.error = _error(event)
                scope.has_failed = True

    def _open(self, scope: _Scope, event: Event) -> None:
        is_iteration = event.type == "IterationEntered"
        inner = _Scope(scope, is_iteration, scope.depth + len(scope.entered))
        self._scopes[event.event_id] = inner
        if is_iteration and scope.entered:
            step = scope.entered[-1]
            step.iterations_entered += 1
            step.iterations = max(step.iterations_entered, int(event.detail.get("total", 0)))

    def _close(self, scope: _Scope, event: Event) -> None:
        around = scope.around or scope
        self._scopes[event.event_id] = around
        if scope.is_iteration and around.entered:
            around.entered[-1].iterations_done += 1
            around.entered[-1].iterations_failed += scope.has_failed


def _error(event: Event) -> str:
    error, cause = event.detail.get("error"), event.detail.get("cause")
    return f"{error}: {cause}" if cause else str(error or "")
