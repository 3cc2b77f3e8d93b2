"""Thousands of runs of one flow with faults, and what they break: the entry of the package.

Theory of operation. A run is decided by its script alone (`runs.Script`), and the script by the seed and the number of
the run. Run 0 has no faults and plain data. The calls that it makes, each with each fault that can meet it, are the
odd runs: single faults find most mistakes, and have short stories. All others draw faults and data by chance. A run
that breaks a property is made shorter (`shrinking`): with fewer faults, plainer data, a smaller input.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from flowserver.base.limits import Limits
from flowserver.flowtests.cases import Mocks, Source, TestFile
from flowserver.flowtests.outcomes import Rules
from flowserver.flowtests.properties import Broken, Property
from flowserver.flowtests.simulating.default_properties import SUCCEEDS, default_properties, severity_of
from flowserver.flowtests.simulating.faults import EMPTY_COLLECTION, FAULTS, LARGE_COLLECTION, Fault, faults_of
from flowserver.flowtests.simulating.made_up_data import PLAIN_SIZE
from flowserver.flowtests.simulating.runs import Script, SimulatedRun, Simulator
from flowserver.flowtests.simulating.shrinking import shortest
from flowserver.language.diagnostics import Severity
from flowserver.language.parser import parse
from flowserver.machine.state import Status

RUNS: Final = 200
SEED: Final = 1
BROKEN_RUNS_MAX: Final = 20
"""A simulation ends early after so many runs that break properties."""
ENDLESS_RUNS_MAX: Final = 3
"""A simulation ends early after so many runs without an end: each takes as long as many others."""
RATES: Final = (0.0, 0.1, 0.3, 0.6)
"""Chances of a fault for each call; a run has one of them."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How a flow is simulated."""

    runs: int = RUNS
    seed: int = SEED
    faults: frozenset[str] = frozenset(FAULTS)


@dataclass(frozen=True, slots=True)
class Failure:
    """A property that runs break. `run` is the shortest such run found, `first` the number of the first."""

    property: str
    severity: Severity
    message: str
    path: str | None
    """The step that it is about."""
    run: SimulatedRun
    first: int
    count: int
    """How many runs break it."""


@dataclass(frozen=True, slots=True)
class Simulation:
    """The result."""

    file: TestFile
    runs: int
    failures: tuple[Failure, ...]
    statuses: Counter[str]
    """How many runs ended in each status."""
    faults: Counter[str]
    """How many faults of each kind met a call."""

    @property
    def errors(self) -> tuple[Failure, ...]:
        """The failures that are surely mistakes."""
        return tuple(each for each in self.failures if each.severity is Severity.ERROR)


def simulate(
    text: str,
    *,
    limits: Limits | None = None,
    settings: Settings | None = None,
    name: str = "flow.yaml",
) -> Simulation:
    """Simulate a definition that has no test file: `simulate(text).failures` is what is wrong with it.

    Data is made up from what the flow reads. The result is the same each time. Raises DefinitionRejected for a
    definition with errors.
    """
    limits = limits or Limits()
    source = Source(Path(name), text, parse(text, limits, allow_ref_tags=True).flow)
    file = TestFile(Path(name), text, source, source.file.stem, Mocks(), ())
    return simulate_file(file, Rules(limits), settings)


def simulate_file(file: TestFile, rules: Rules, settings: Settings | None = None) -> Simulation:
    """Simulate the flow of a test file, with the mocks and inputs of the file. The result is the same each time."""
    settings = settings or Settings()
    return _Simulation(file, rules, settings).run()


@dataclass
class _Found:
    """The runs that break one property."""

    property: Property
    broken: Broken
    run: SimulatedRun
    first: int
    count: int = 1


@dataclass
class _Simulation:
    """A simulation that runs."""

    file: TestFile
    rules: Rules
    settings: Settings
    found: dict[tuple[str, str | None], _Found] = field(default_factory=dict)
    statuses: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.simulator = Simulator(self.file, self.rules, self.settings.faults)
        self.properties = default_properties(self.file.source.flow)
        self.done = 0
        self.broken_runs = self.endless_runs = 0

    def run(self) -> Simulation:
        """Make all runs."""
        for number, script in enumerate(self._scripts()):
            run = self.simulator.run(script)
            self._note(number, run)
            if self.broken_runs >= BROKEN_RUNS_MAX or self.endless_runs >= ENDLESS_RUNS_MAX:
                break
        failures = tuple(map(self._failure, self.found.values()))
        return Simulation(self.file, self.done, (*failures, *self._of_all()), self.statuses, self.faults)

    def _scripts(self) -> Iterator[Script]:
        """Those of all runs, in order."""
        singles = self._singles()
        for number in range(self.settings.runs):
            single = next(singles, None) if number % 2 else None
            if number == 0:
                yield Script()
            elif single is not None:
                yield Script((single,))
            else:
                yield self._drawn(number)

    def _singles(self) -> Iterator[Fault]:
        """Each fault that can meet a call of the run without faults."""
        plain = self.simulator.run(Script())
        for ordered, place in plain.calls.places:
            yield from faults_of(ordered, place, self.settings.faults)

    def _drawn(self, number: int) -> Script:
        named = f"{self.settings.seed}/{number}"
        chosen = self.settings.faults
        sizes = (PLAIN_SIZE,) + ((0, 1) if EMPTY_COLLECTION in chosen else ())
        if LARGE_COLLECTION in chosen and number % 50 == 2:
            sizes = (self.rules.limits.foreach_concurrency_max + 1,)
        return Script((), named, RATES[number // 2 % len(RATES)], named, sizes)

    def _note(self, number: int, run: SimulatedRun) -> None:
        self.done += 1
        self.statuses[str(run.record.execution.status)] += 1
        self.faults.update(fault.kind for _, fault in run.calls.faults)
        is_broken = False
        for each in self.properties:
            broken = each.broken_by(run.record)
            if broken is None:
                continue
            is_broken = True
            known = self.found.get((each.name, broken.path))
            if known is None:
                self.found[each.name, broken.path] = _Found(each, broken, run, number)
            else:
                known.count += 1
        self.broken_runs += is_broken
        self.endless_runs += run.record.endless is not None

    def _failure(self, found: _Found) -> Failure:
        run, broken = shortest(self.simulator, found.run, found.property, found.broken)
        each = found.property
        return Failure(each.name, severity_of(each.name), broken.message, broken.path, run, found.first, found.count)

    def _of_all(self) -> Iterator[Failure]:
        """What is wrong with all runs together."""
        if self.statuses[Status.SUCCEEDED] or self.found:
            return
        run = self.simulator.run(Script())
        end = run.record.execution
        message = f"none of {self.done} runs succeeds; without faults it ends {end.status} with {end.error}"
        if run.calls.untold:
            message += f": step {min(run.calls.untold)} waits for a report, but sends its token nowhere"
        yield Failure(SUCCEEDS, Severity.WARNING, message, end.failed_step, run, 0, self.done)
