"""One line for each step, for terminals and for logs."""

from datetime import datetime
from typing import Final

from flowserver.cli.remote.output import one_line
from flowserver.cli.remote.progress import State, StepProgress
from flowserver.cli.remote.times import seconds_between, shown_seconds

ERROR_CHARACTERS_MAX: Final = 80

MARKS: Final = {State.WAITING: "·", State.RUNNING: "▸", State.DONE: "✔", State.FAILED: "✘"}
PLAIN_MARKS: Final = {State.WAITING: ".", State.RUNNING: ">", State.DONE: "ok", State.FAILED: "failed"}
"""Where the output cannot hold the others."""


def step_line(step: StepProgress, now: datetime, marks: dict[State, str]) -> str:
    """The step as a line of a log."""
    took = "" if step.state is State.RUNNING else shown_time(step, now)
    parts = [f"{'  ' * step.depth}{marks[step.state]} {step.name}", took, shown_notes(step)]
    return "  ".join(part for part in parts if part)


def shown_time(step: StepProgress, now: datetime) -> str:
    """How long it took, or has run."""
    return "" if step.started is None else shown_seconds(seconds_between(step.started, step.stopped, now))


def shown_notes(step: StepProgress) -> str:
    """Its attempts, iterations and error."""
    notes = []
    if step.errors:
        notes.append(f"attempt {step.attempts} ({', '.join(step.errors)})")
    if step.iterations:
        notes.append(f"{step.iterations_over} of {step.iterations}")
    if step.iterations_failed:
        notes.append(f"{step.iterations_failed} failed")
    if step.error:
        notes.append(one_line(step.error, ERROR_CHARACTERS_MAX))
    return "  ".join(notes)
