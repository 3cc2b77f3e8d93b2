"""What the rules look at, and where they put their findings."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from flowserver.analysis.constants import Ways
from flowserver.analysis.data_flow import DataFlow, ListFacts, StepFacts
from flowserver.analysis.places import Places
from flowserver.analysis.rules import Finding, PathStep, severity_of
from flowserver.base.limits import Limits
from flowserver.language.arrows import Arrow, arrows_from
from flowserver.language.check_cost import Work
from flowserver.language.graph import Flow, Span, Step, StepList

STEP_UNITS: Final = 5
"""What the rules of one subject take for a step, as units of work."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The step that holds a list."""

    list_id: int
    index: int


@dataclass(frozen=True, slots=True)
class Subject:
    """A valid definition, and all that is known of it; `data` is None if its data is not known."""

    flow: Flow
    limits: Limits
    places: Places
    data: DataFlow | None
    owners: dict[int, Owner]
    """The owner of each nested list."""
    findings: dict[Finding, None] = field(default_factory=dict)
    work: Work = field(default_factory=Work)
    """Paused from step to step."""
    searched: dict[tuple[int, str], Ways] = field(default_factory=dict)
    """The ways through a list, by `list_id`, on which nothing puts out a key."""
    _arrows: dict[int, tuple[tuple[Arrow, ...], ...]] = field(default_factory=dict)

    def report(
        self, rule: str, span: Span, message: str, hint: str | None = None, path: tuple[PathStep, ...] = ()
    ) -> None:
        """Add a finding, once."""
        self.findings[Finding(rule, severity_of(rule), message, span, hint, None, path)] = None

    def steps(self) -> Iterator[tuple[StepList, int, Step]]:
        """Every step with its list and its position."""
        for steps in self.flow.lists:
            for index, step in enumerate(steps.steps):
                self.work.spend(STEP_UNITS)
                yield steps, index, step

    def arrows_of(self, steps: StepList) -> tuple[tuple[Arrow, ...], ...]:
        """The ways from each step of a list."""
        if steps.list_id not in self._arrows:
            self._arrows[steps.list_id] = tuple(tuple(arrows_from(steps, index)) for index in range(len(steps.steps)))
        return self._arrows[steps.list_id]

    def facts_of(self, steps: StepList) -> ListFacts | None:
        """What is known of a list; None if nothing, or if it is never entered."""
        return None if self.data is None else self.data.lists.get(steps.list_id)

    def entered(self) -> Iterator[tuple[StepList, int, Step, StepFacts]]:
        """Every step that may be entered, with what it has."""
        for steps, index, step in self.steps():
            facts = self.facts_of(steps)
            if facts is not None and index in facts.steps:
                yield steps, index, step, facts.steps[index]

    def is_entered(self, steps: StepList, index: int) -> bool:
        """Whether a step may be entered, as far as that is known."""
        if self.data is None:
            return True
        facts = self.facts_of(steps)
        return facts is not None and index in facts.steps

    def path_step(self, step: Step, note: str) -> PathStep:
        """A step of a path."""
        span = self.places.name_of(step.span)
        return PathStep(step.name, span.line, span.column, note)
