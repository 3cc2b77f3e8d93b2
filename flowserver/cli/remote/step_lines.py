"""One line for each step, for terminals and for logs."""

from datetime import datetime
from typing import Final

from flowserver.cli.printable import printable
from flowserver.cli.remote.output import one_line
from flowserver.cli.remote.step_states import Progress, State, StepProgress
from flowserver.cli.remote.times import shown_span
from flowserver.client.results import Iterations as ToldIterations
from flowserver.machine.step_summary import Iterations

ERROR_CHARACTERS_MAX: Final = 80

MARKS: Final = {State.WAITING: "·", State.RUNNING: "▸", State.DONE: "✔", State.FAILED: "✘", State.ABORTED: "⊘"}
PLAIN_MARKS: Final = {
    State.WAITING: ".",
    State.RUNNING: ">",
    State.DONE: "ok",
    State.FAILED: "failed",
    State.ABORTED: "aborted",
}
"""Where the output cannot hold the others."""
assert set(MARKS) == set(PLAIN_MARKS) == set(State)


def step_line(step: StepProgress, now: datetime, marks: dict[State, str]) -> str:
    """The step as a line of a log."""
    took = "" if step.state is State.RUNNING else shown_time(step, now)
    parts = [f"{'  ' * step.depth}{marks[step.state]} {step.name}", took, shown_notes(step)]
    return "  ".join(part for part in parts if part)


def shown_time(step: StepProgress, now: datetime) -> str:
    """How long it took, or has run."""
    return shown_span(step.started, step.stopped, now)


def shown_notes(step: StepProgress) -> str:
    """Its attempts, iterations and error."""
    notes = []
    if step.errors:
        most = f" of {step.attempts_max}" if step.attempts_max else ""
        errors = ", ".join(step.errors)
        said = f", after {errors}" if step.attempts > len(step.errors) else f" ({errors})"
        notes.append(printable(f"attempt {step.attempts}{most}{said}"))
    if step.iterations is not None:
        notes += counted(step.iterations)
    if step.redrives:
        notes.append(redriven(step.redrives))
    if step.error:
        notes.append(one_line(step.error, ERROR_CHARACTERS_MAX))
    return "  ".join(notes)


def counted(iterations: Iterations | ToldIterations) -> list[str]:
    """How many iterations are done, and how many failed or were aborted."""
    notes = [f"{iterations.done} of {iterations.total}"]
    notes += [f"{iterations.failed} failed"] if iterations.failed else []
    return notes + ([f"{iterations.aborted} aborted"] if iterations.aborted else [])


def redriven(count: int) -> str:
    """How many redrives ran a step again."""
    return "1 redrive" if count == 1 else f"{count} redrives"


def waiting_lines(path: str, progress: Progress) -> list[str]:
    """Why the execution at that path does not go on, parked or with steps that wait for a redrive, and what helps;
    nothing if it does not.
    """
    if progress.parked:
        reason = one_line(progress.parked, 2 * ERROR_CHARACTERS_MAX)
        return [f"The server has parked it: {reason}", f"Once that is repaired: flowserver executions restart {path}"]
    if not progress.waiting:
        return []
    first = one_line(progress.first_waiting, 2 * ERROR_CHARACTERS_MAX)
    waits = "1 step waits" if progress.waiting == 1 else f"{progress.waiting} steps wait"
    return [f"{waits} for a redrive: {first}", f"Go on: flowserver executions redrive {path}"]
