"""Open lists and entries of steps, as the fold of a step summary keeps them, with the way to the next step."""

from dataclasses import dataclass, field
from typing import NamedTuple

from flowserver.machine.foreach_iterations import Loop
from flowserver.machine.step_summary import EdgeKind, Iterations, StepStatus, StepSummary


class From(NamedTuple):
    """What leads to the step that is entered next."""

    step: StepSummary
    kind: EdgeKind
    number: int | None = None


@dataclass(slots=True, eq=False)
class Entry:
    """One entry of a step, from StepEntered to StepExited."""

    step: StepSummary
    path: str
    """With the numbers of iterations: `pack[17].label`."""
    entered_event_id: int
    started_event_id: int = 0
    """Its StepStarted, which may cause events until the step is left."""
    end: StepStatus = StepStatus.CANCELLED
    """What it has come to, should it be left now."""
    opened: int = 0
    """Iterations or branches."""
    iterations: Iterations | None = None
    """Its own; those that a redrive keeps are among them."""
    loop: Loop | None = None
    """The same, each iteration by itself; None unless the fold keeps them."""
    visit: int = 0
    """Its number among the visits of its step."""
    error: str | None = None
    """Of the step's failure."""
    is_resumed: bool = False
    """Whether a redrive has entered it again."""
    option: From | None = None
    """The option that a choice has taken, if it is recorded."""
    rule: int | None = None
    """The catch rule that has caught its failure, if it is recorded."""
    came_from: From | None = None
    """What leads to the next own step of a choice's option."""
    has_inner: bool = False
    """Whether an own step of an option was entered."""

    def count(self, *, total: int = 0, done: int = 0, failed: int = 0, aborted: int = 0, running: int = 0) -> None:
        """Count iterations of this entry, and so of its step."""
        self.iterations = self.iterations or Iterations()
        self.step.iterations = self.step.iterations or Iterations()
        for each in (self.iterations, self.step.iterations):
            each.total += total
            each.done += done
            each.failed += failed
            each.aborted += aborted
            each.running += running

    def take_option(self, option: object) -> str | None:
        """A choice has taken this option; returns its name in counts, None if it is none."""
        kind, number = (EdgeKind.OPTION, option) if isinstance(option, int) else (EdgeKind.DEFAULT, None)
        if number is None and option not in ("default", None):
            return None
        self.option = From(self.step, kind, number)
        if not self.is_resumed:
            self.came_from = self.option
        return "none" if option is None else str(option)

    def way_on(self) -> From | None:
        """What leads on from it after its exit; None if nothing does."""
        if self.end is StepStatus.CAUGHT:
            return From(self.step, EdgeKind.CATCH, self.rule)
        if self.end is not StepStatus.SUCCEEDED:
            return None
        if self.option is None:
            return From(self.step, EdgeKind.NEXT)
        return self.option._replace(kind=EdgeKind.AFTER) if self.has_inner else self.option

    def leave_to_redrive(self) -> None:
        """Count its iterations no longer: the entry that goes on with them does."""
        own, of_step = self.iterations, self.step.iterations
        assert own is not None and of_step is not None, "only entries with iterations are unfinished"
        of_step.total -= own.total
        of_step.done -= own.done

    def go_on(self, before: "Entry") -> None:
        """Count the iterations that the entry before the redrive has done."""
        assert before.iterations is not None
        self.opened, self.loop = before.opened, before.loop
        if self.loop is not None:
            self.loop.keep_finished()
        self.count(total=before.iterations.total, done=before.iterations.done)


@dataclass(slots=True, eq=False)
class OpenList:
    """A running list of steps: the flow's own, a branch or an iteration; with the choices and steps open in it."""

    path: str
    """Of its steps, before their names."""
    numbered: str
    """The same with the numbers of iterations."""
    around: "OpenList | None" = None
    entries: list[Entry] = field(default_factory=list)
    head: int = 0
    """Its last event."""
    has_failed: bool = False
    came_from: From | None = None
    """What leads to its next step."""
    loop: Loop | None = None
    """The loop whose iteration the list is, or is a branch in."""
    index: int = 0
    """That iteration's."""


def level_of(steps: OpenList) -> Entry | OpenList:
    """Where its next step is entered: in an option of the innermost open step, or in the list itself."""
    return steps.entries[-1] if steps.entries else steps


def prefixes(steps: OpenList) -> tuple[str, str]:
    """The paths up to the step that is entered next: those of the innermost open step, or of the list."""
    if not steps.entries:
        return steps.path, steps.numbered
    entry = steps.entries[-1]
    return f"{entry.step.path}.", f"{entry.path}."
