"""Thousands of runs of one flow with faults, and what they break: the entry of the package.

Theory of operation. A run is decided by its script alone (`runs.Script`), and the script by the seed and the number of
the run. Run 0 has no faults and plain data. Two of three runs explore (`exploring`): single faults find most mistakes,
and have short stories; faults of the steps that handle an error follow. All others draw faults and data by chance. A
run that breaks a property is made shorter (`shrinking`): with fewer faults, plainer data, a smaller input.
"""

from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from itertools import count, islice
from pathlib import Path
from typing import Final, NamedTuple

from flowserver.base.json_values import JsonObject
from flowserver.base.limits import Limits
from flowserver.flowtests.cases import Mocks, Source, TestFile
from flowserver.flowtests.choices import PLAIN_SIZE
from flowserver.flowtests.fault_names import FaultKind
from flowserver.flowtests.file_names import flow_name_of
from flowserver.flowtests.outcomes import Rules
from flowserver.flowtests.properties import Broken, Compensated, Property
from flowserver.flowtests.property_names import ENDS, OWN_MISTAKE, SUCCEEDS, severity_of
from flowserver.flowtests.simulating.default_properties import UndoneIfNeeded, default_properties
from flowserver.flowtests.simulating.exploring import Exploration
from flowserver.flowtests.simulating.fault_coverage import FaultCoverage
from flowserver.flowtests.simulating.runs import Script, SimulatedRun, Simulator
from flowserver.flowtests.simulating.shrinking import UNITS_MAX as SHRINKING_UNITS_MAX
from flowserver.flowtests.simulating.shrinking import shortest
from flowserver.flowtests.simulating.story import StoryLine, story_of
from flowserver.flowtests.simulation_settings import SimulationSettings
from flowserver.flowtests.step_paths import StepsByPath
from flowserver.language.diagnostics import Severity
from flowserver.language.graph import Span
from flowserver.language.parser import parse
from flowserver.machine.state import Status

RUNS_MIN: Final = 100
RUNS_MAX: Final = 1_000
QUIET_RUNS: Final = 50
"""If the number of runs is not given, a simulation ends when it has explored all, and so many drawn runs were like
earlier ones; not before RUNS_MIN runs, and at the latest after RUNS_MAX or UNITS_MAX.
"""
UNITS_MAX: Final = 100_000
"""Work of all runs, in units of a budget, if their number is not given: about two seconds."""
BROKEN_RUNS_MAX: Final = 20
"""A simulation ends early after so many runs that break a property."""
SHORTENED_FULLY: Final = 5
"""If more properties are broken, they share the work for which so many are made as short as can be."""
ENDLESS_RUNS_MAX: Final = 3
"""A simulation ends early after so many runs without an end: each takes as long as many others."""
RATES: Final = (0.0, 0.1, 0.3, 0.6)
"""Chances of a fault for each call; a run has one of them."""
DRAWN_EVERY: Final = 3
"""One of so many runs is drawn as long as there is something to explore."""
LARGE_EVERY: Final = 50
"""One of so many runs has large lists."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A property that runs break. `run` is the shortest such run found, `first` the number of the first."""

    property: str
    severity: Severity
    message: str
    path: str | None
    """The step that it is about."""
    span: Span | None
    """The property's place in the test file; None if it is one of every flow."""
    expected: JsonObject
    """What a test expects that has the property."""
    run: SimulatedRun
    story: tuple[StoryLine, ...]
    """What happens in it."""
    first: int
    count: int
    """How many runs break it."""


@dataclass(frozen=True, slots=True)
class Simulation:
    """The result."""

    file: TestFile
    seed: int
    runs: int
    failures: tuple[Failure, ...]
    statuses: Counter[str]
    """How many runs ended in each status."""
    faults: Counter[str]
    """How many faults of each kind met a call."""
    cut_short: int
    """How many runs passed a limit of test runs, so that nothing is known of their ends."""
    undone_by: tuple[tuple[str, str], ...] = ()
    """Steps, each with the step that by its name undoes its work: the pairs that were checked."""
    coverage: FaultCoverage | None = None
    """Which call sites met which kinds of faults; None of a run that is repeated."""
    story: tuple[StoryLine, ...] = ()
    """What happens in a run that is repeated."""

    @property
    def errors(self) -> tuple[Failure, ...]:
        """The failures that are surely mistakes."""
        return tuple(each for each in self.failures if each.severity is Severity.ERROR)


def simulate(
    text: str,
    *,
    limits: Limits | None = None,
    settings: SimulationSettings | None = None,
    name: str = "flow.yaml",
) -> Simulation:
    """Simulate a definition that has no test file: `simulate(text).failures` is what is wrong with it.

    Data is made up from what the flow reads. The result is the same each time. Raises DefinitionRejected for a
    definition with errors.
    """
    limits = limits or Limits()
    source = Source(Path(name), text, parse(text, limits, allow_ref_tags=True).flow)
    return simulate_file(file_of(source), Rules(limits), settings)


def file_of(source: Source) -> TestFile:
    """A test file without anything, for a definition alone."""
    return TestFile(source.file, source.text, source, flow_name_of(source.file), Mocks(), ())


def simulate_file(file: TestFile, rules: Rules, settings: SimulationSettings | None = None) -> Simulation:
    """Simulate the flow of a test file, with its mocks, inputs and settings; `settings` are instead of those.

    The result is the same each time.
    """
    return _Simulation(file, rules, settings or file.simulation or SimulationSettings()).run()


def repeat_run(file: TestFile, rules: Rules, settings: SimulationSettings, number: int) -> Simulation:
    """Make one run of a simulation again, and no others. Its failures are not made shorter."""
    return _Simulation(file, rules, settings).run_one(number)


class _Mistake(NamedTuple):
    """What tells one mistake from others: the runs that have it are shown as one."""

    property: int
    """The position of the property that is broken."""
    path: str | None
    has_outage: bool
    """Whether an outage keeps the run from its end."""
    way: str | None
    """How work is not undone."""


@dataclass
class _Found:
    """The runs that break one property."""

    property: Property
    broken: Broken
    run: SimulatedRun
    first: int
    count: int = 1


class _Simulation:
    """A simulation that runs."""

    def __init__(self, file: TestFile, rules: Rules, settings: SimulationSettings) -> None:
        self._file = file
        self._settings = settings
        self._large = rules.limits.foreach_concurrency_max + 1
        self._simulator = Simulator(file, rules, settings)
        self._properties = [
            *(
                each
                for each in default_properties(file.source.flow, settings.properties)
                if each.name not in settings.ignored
            ),
            *settings.properties,
        ]
        self._found: dict[_Mistake, _Found] = {}
        self._statuses: Counter[str] = Counter()
        self._faults: Counter[str] = Counter()
        self._done = self._broken_runs = self._endless_runs = self._quiet_runs = self._units = self._cut_short = 0
        self._seen: set[Hashable] = set()
        self._stories: list[tuple[Script, tuple[StoryLine, ...]]] = []
        self._exploration = Exploration(settings.faults)
        self._coverage = FaultCoverage(file.source.flow, settings.faults)
        self._steps = StepsByPath(file.source.flow)

    def run(self) -> Simulation:
        """Make all runs."""
        for number, script in enumerate(self._scripts()):
            run = self._simulator.run(script)
            self._note(number, run)
            self._exploration.note(run)
            self._coverage.note(run)
            if self._is_over(number + 1):
                break
        found = [
            each
            for mistake, each in self._found.items()
            if not (mistake.has_outage and mistake._replace(has_outage=False) in self._found)
        ]
        return self._result((*map(self._shortest, found), *self._of_all()), self._coverage)

    def run_one(self, number: int) -> Simulation:
        """Make the run of one number."""
        scripts = self._scripts()
        for earlier in islice(scripts, number):
            if earlier.faults:
                self._exploration.note(self._simulator.run(earlier))
        script = next(scripts)
        run = self._simulator.run(script)
        self._note(number, run)
        story = story_of(self._simulator, script)
        failures = (self._failure(each, run, each.broken, story) for each in self._found.values())
        return replace(self._result(tuple(failures)), story=story)

    def _result(self, failures: tuple[Failure, ...], coverage: FaultCoverage | None = None) -> Simulation:
        pairs = tuple((each.done, each.undo) for each in self._properties if isinstance(each, UndoneIfNeeded))
        return Simulation(
            self._file,
            self._settings.seed,
            self._done,
            failures,
            self._statuses,
            self._faults,
            self._cut_short,
            pairs,
            coverage,
        )

    def _is_over(self, done: int) -> bool:
        if self._broken_runs >= BROKEN_RUNS_MAX or self._endless_runs >= ENDLESS_RUNS_MAX:
            return True
        if self._settings.runs is not None:
            return done >= self._settings.runs
        if done >= RUNS_MAX or self._units >= UNITS_MAX:
            return True
        return done >= RUNS_MIN and not self._exploration.has_more and self._quiet_runs >= QUIET_RUNS

    def _scripts(self) -> Iterator[Script]:
        """Those of all runs, in order, without an end."""
        yield Script()
        self._exploration.begin(self._simulator.run(Script()))
        for number in count(1):
            script = self._exploration.next() if number % DRAWN_EVERY else None
            yield self._drawn(number) if script is None else script

    def _drawn(self, number: int) -> Script:
        named = f"{self._settings.seed}/{number}"
        return Script((), named, RATES[number // DRAWN_EVERY % len(RATES)], named, self._sizes(number))

    def _sizes(self, number: int) -> tuple[int, ...]:
        if self._settings.sizes is not None:
            return self._settings.sizes
        chosen = self._settings.faults
        if FaultKind.LARGE_COLLECTION in chosen and number % LARGE_EVERY == DRAWN_EVERY:
            return (self._large,)
        return (PLAIN_SIZE, 0, 1) if FaultKind.EMPTY_COLLECTION in chosen else (PLAIN_SIZE,)

    def _note(self, number: int, run: SimulatedRun) -> None:
        record = run.record
        self._done += 1
        self._units += record.units
        self._statuses[str(record.execution.status)] += 1
        self._faults.update(str(fault.kind) for fault in run.calls.faults)
        self._endless_runs += record.endless is not None
        self._note_whether_new(run)
        if run.cut_short is not None:
            self._cut_short += 1
            return
        is_broken = False
        for position, each in enumerate(self._properties):
            broken = each.broken_by(record)
            if broken is not None:
                is_broken = True
                self._note_broken(position, broken, number, run)
        self._broken_runs += is_broken

    def _note_whether_new(self, run: SimulatedRun) -> None:
        record = run.record
        alike = (record.execution.status, record.execution.error, frozenset(map(self._steps.path_of, record.entered)))
        is_new = alike not in self._seen
        self._seen.add(alike)
        if run.script.data is not None:
            self._quiet_runs = 0 if is_new else self._quiet_runs + 1

    def _note_broken(self, position: int, broken: Broken, number: int, run: SimulatedRun) -> None:
        has_outage = run.record.endless is not None and FaultKind.OUTAGE in (each.kind for each in run.script.faults)
        way = broken.message if isinstance(self._properties[position], Compensated) else None
        key = _Mistake(position, broken.path, has_outage, way)
        known = self._found.get(key)
        if known is None:
            self._found[key] = _Found(self._properties[position], broken, run, number)
        else:
            known.count += 1

    def _shortest(self, found: _Found) -> Failure:
        units_max = min(SHRINKING_UNITS_MAX, SHORTENED_FULLY * SHRINKING_UNITS_MAX // len(self._found))
        run, broken = shortest(self._simulator, found.run, found.property, found.broken, units_max)
        return self._failure(found, run, broken, self._story(run.script))

    def _story(self, script: Script) -> tuple[StoryLine, ...]:
        """The story of a run; runs that break several properties have one."""
        story = next((story for told, story in self._stories if told == script), None)
        if story is None:
            story = story_of(self._simulator, script)
            self._stories.append((script, story))
        return story

    def _of_all(self) -> Iterator[Failure]:
        """What is wrong with all runs together, but for those that were cut short."""
        if self._statuses[Status.SUCCEEDED] or self._found or SUCCEEDS in self._settings.ignored:
            return
        run, ended = self._simulator.run(Script()), self._done - self._cut_short
        if run.cut_short is not None:
            return
        end = run.record.execution
        message = f"none of {ended} runs succeeds; without faults it ends {end.status} with {end.error}"
        if run.calls.untold:
            message += f": step {min(run.calls.untold)} waits for a report, but sends its token nowhere"
        story = story_of(self._simulator, run.script)
        expected: JsonObject = {"status": str(Status.SUCCEEDED)}
        step = end.failed_step
        yield Failure(SUCCEEDS, Severity.WARNING, message, step, None, expected, run, story, 0, ended)

    def _failure(self, found: _Found, run: SimulatedRun, broken: Broken, story: tuple[StoryLine, ...]) -> Failure:
        each = found.property
        is_doubtful = each.name == OWN_MISTAKE and self._simulator.is_doubtful
        is_outage = each.name == ENDS and any(fault.kind == FaultKind.OUTAGE for fault in run.calls.faults)
        severity = Severity.WARNING if is_doubtful or is_outage else severity_of(each.name)
        expected = each.expectation()
        return Failure(
            each.name, severity, broken.message, broken.path, each.span, expected, run, story, found.first, found.count
        )
