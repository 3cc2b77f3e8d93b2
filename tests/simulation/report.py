"""Runs many cases; tells of the first that goes wrong, with all that is needed to see why."""

import traceback
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.simulation.case import make_case
from tests.simulation.simulation import Disorder, Simulation
from tests.support.world import trace


@dataclass
class Summary:
    """What was run, and the story of the case that failed, if one did."""

    executions: int = 0
    turns: int = 0
    events: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    failure: str | None = None

    def __str__(self) -> str:
        ends = ", ".join(f"{count} {end}" for end, count in self.ends.most_common())
        return f"{self.executions:,} executions, {self.turns:,} turns, {self.events:,} events: {ends or 'none ended'}"


def run_cases(seed: int, numbers: Iterable[int], disorder: Disorder | None = None) -> Summary:
    """Run the cases of a seed until one fails."""
    summary = Summary()
    for number in numbers:
        simulation = Simulation(make_case(seed, number), disorder)
        try:
            simulation.run()
        except Exception:
            summary.failure = _story(simulation)
            return summary
        summary.executions += 1
        summary.turns += len(simulation.log)
        summary.events += simulation.execution.next_event_id - 1
        summary.ends[simulation.execution.status] += 1
    return summary


def _story(simulation: Simulation) -> str:
    case, expected = simulation.case, simulation.case.expected
    due = f"Succeeded with {expected.output}" if expected.output is not None else f"Failed by {set(expected.problems)}"
    told: list[str] = []
    for message, turn in simulation.log:
        told += [f"=> {message}: {turn.outcome.kind.name}", *(f"   {line}" for line in trace(turn.events))]
    return "\n".join(
        [
            f"replay with: python -m tests.simulation {case.name}",
            case.text(),
            f"input {case.input}, missing_source {case.missing_source}, expected: {due}",
            *told,
            traceback.format_exc(),
        ]
    )
