"""Steps drawn live on a terminal, with rich."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from flowserver.cli.remote.step_lines import MARKS, PLAIN_MARKS, shown_notes, shown_time, waiting_lines
from flowserver.cli.remote.step_states import Progress, State, StepProgress
from flowserver.cli.remote.times import shown_span
from flowserver.cli.yaml_text import step_names
from flowserver.client.results import Execution

REDRAWS_PER_SECOND: Final = 8
BAR_CELLS: Final = 28
KEPT_LINES: Final = 4
"""Lines of the terminal that are left for the heading and the prompt."""

_COLOURS: Final = {
    State.WAITING: "dim",
    State.RUNNING: "cyan",
    State.DONE: "green",
    State.FAILED: "red",
    State.ABORTED: "yellow",
}
assert set(_COLOURS) == set(State)
_OF_STATUS: Final = {"Running": "cyan", "Succeeded": "green"}


@contextmanager
def drawn(execution: Execution, progress: Progress, colourful: bool) -> Iterator[None]:
    """Draw the steps on stderr while what is inside runs; what is drawn last stays."""
    console = Console(stderr=True, highlight=False, no_color=not colourful)
    drawing = Drawing(execution, progress, step_names(execution.definition), console)
    with Live(
        console=console,
        get_renderable=drawing.draw,
        refresh_per_second=REDRAWS_PER_SECOND,
        redirect_stdout=False,
        redirect_stderr=False,
    ):
        yield


@dataclass(frozen=True)
class Drawing:
    """What is drawn: a heading, and one line for each step, the newest ones if there are too many."""

    execution: Execution
    progress: Progress
    names: Sequence[str]
    console: Console

    def draw(self) -> RenderableType:
        """All of it, as things are now."""
        now = datetime.now(UTC)
        steps = self.progress.steps()
        ended = self.progress.status != "Running"
        if not ended:
            entered = {step.name for step in steps}
            steps += [StepProgress(name) for name in self.names if name not in entered]
        hints = waiting_lines(self.execution.path, self.progress)
        hints += [self.progress.notice] if self.progress.notice else []
        shown = self._visible(steps, len(hints))
        last = max((step.stopped for step in steps if step.stopped), default=None) if ended else None
        took = shown_span(self.execution.started_time, last, now)
        heading = Text(f"{self.execution.path}  ")
        heading.append(self.progress.status, _OF_STATUS.get(self.progress.status, "red")).append(f"  {took}")
        below = [Text(f"  {hint}", "yellow", no_wrap=True, overflow="ellipsis") for hint in hints]
        return Group(heading, self._lines(shown, now), *below)

    def _visible(self, steps: list[StepProgress], lines_below: int) -> list[StepProgress]:
        room = max(1, self.console.height - KEPT_LINES - lines_below)
        if len(steps) <= room:
            return steps
        current = next((n for n, step in enumerate(steps) if step.state in (State.RUNNING, State.WAITING)), len(steps))
        first = max(0, min(current - room // 2, len(steps) - room))
        return steps[first : first + room]

    def _lines(self, steps: Sequence[StepProgress], now: datetime) -> Table:
        marks = MARKS if self.console.encoding.lower().startswith("utf") else PLAIN_MARKS
        table = Table.grid(padding=(0, 2))
        for shrinks in (False, False, True):
            table.add_column(no_wrap=not shrinks)
        for step in steps:
            name = (
                Text(f"  {'  ' * step.depth}").append(marks[step.state], _COLOURS[step.state]).append(f" {step.name}")
            )
            table.add_row(name, Text(shown_time(step, now)), self._notes(step))
        return table

    def _notes(self, step: StepProgress) -> RenderableType:
        colour = "red" if step.state is State.FAILED else ""
        notes = Text(shown_notes(step), colour, no_wrap=True, overflow="ellipsis")
        loop = step.iterations
        if loop is None:
            return notes
        row = Table.grid(padding=(0, 2))
        row.add_row(ProgressBar(total=loop.total, completed=loop.done, width=BAR_CELLS), notes)
        return row
