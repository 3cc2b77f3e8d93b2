"""Which call sites of a flow met which kinds of faults in a simulation: without faults nothing was tried there."""

from collections.abc import Iterator

from flowserver.flowtests.fault_names import FaultKind
from flowserver.flowtests.simulating.faults import faults_of
from flowserver.flowtests.simulating.runs import SimulatedRun
from flowserver.flowtests.step_paths import walk
from flowserver.language.graph import Flow, TaskStep


class FaultCoverage:
    """Counts by call site, which is a task step of the definition."""

    def __init__(self, flow: Flow, chosen: frozenset[FaultKind]) -> None:
        self._flow = flow
        self._chosen = chosen
        self.possible: dict[str, set[FaultKind]] = {}
        """The kinds that can meet each call site that a run has reached."""
        self._met: dict[str, set[FaultKind]] = {}

    def note(self, run: SimulatedRun) -> None:
        """Take in the next run."""
        for ordered, place, _ in run.calls.answers:
            site = run.calls.site_of(place)
            if site not in self.possible:
                self.possible[site] = {each.kind for each in faults_of(ordered, place, self._chosen)}
        for fault in run.calls.faults:
            self._met.setdefault(run.calls.site_of(fault.place), set()).add(fault.kind)

    @property
    def missing(self) -> dict[str, list[FaultKind]]:
        """The kinds that did not meet a call site, by call site; none of those that met all."""
        return {site: kinds for site in self.possible if (kinds := self._missing_at(site))}

    def _missing_at(self, site: str) -> list[FaultKind]:
        return sorted(self.possible[site] - self._met.get(site, set()))

    @property
    def not_called(self) -> list[str]:
        """The tasks of the flow that no run has called."""
        return [path for path in self._tasks() if path not in self.possible]

    def _tasks(self) -> Iterator[str]:
        return (path for path, step in walk(self._flow) if isinstance(step, TaskStep))
