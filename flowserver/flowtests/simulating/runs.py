"""One simulated run: what it is made of, and what it did."""

from collections import Counter
from dataclasses import dataclass
from itertools import chain
from random import Random
from typing import Final

from flowserver.base.json_values import JsonObject
from flowserver.flowtests.calls import Ordered
from flowserver.flowtests.cases import EXECUTION_NAME, Case, Expectation, Mocks, Reply, TestFile
from flowserver.flowtests.choices import PLAIN_SIZE, Choices
from flowserver.flowtests.fault_names import FaultKind
from flowserver.flowtests.findings import CaseStopped, Finding
from flowserver.flowtests.outcomes import Rules
from flowserver.flowtests.records import Record
from flowserver.flowtests.running import Running, VirtualRun
from flowserver.flowtests.schema_reading import TRIES
from flowserver.flowtests.schema_values import object_for
from flowserver.flowtests.schemas import Schema
from flowserver.flowtests.simulating.faults import Fault, Place, faults_of
from flowserver.flowtests.simulating.made_up_data import MadeUpData
from flowserver.flowtests.simulating.simulated_calls import MakeResult, SimulatedCalls, Watcher, made_up
from flowserver.flowtests.simulation_settings import SimulationSettings
from flowserver.language.graph import Flow, Span, Target
from flowserver.machine.events import Event, EventType

ENTRIES_MAX: Final = 1_000
"""After so many entries of one step a run counts as endless: answers are drawn anew each time, so a loop with
an exit takes it much earlier."""
FAULTS_MAX: Final = 12
"""Faults that one run draws."""
CRASHES_MAX: Final = 3
"""Crashes that one run draws: each of them makes all calls anew that are under way."""

INPUT: Final = "input"
"""The key of the input's data."""

_NOWHERE: Final = Span(1, 1, 1, 2)
_ANYTHING: Final = Expectation(_NOWHERE)


@dataclass(frozen=True, slots=True)
class Script:
    """All that decides what a run does: equal scripts make equal runs.

    `faults` are those that meet calls; with a `rate` others are drawn, with that chance for each call. `data` seeds the
    made-up data; None makes it plain.
    """

    faults: tuple[Fault, ...] = ()
    data: str | None = None
    rate: float = 0.0
    draws: str = ""
    sizes: tuple[int, ...] = (PLAIN_SIZE,)
    plain: frozenset[str] = frozenset()
    """What of the data is plain all the same: the keys of `data_key`, and INPUT."""
    input: JsonObject | None = None
    """Instead of a made-up one."""


class EndlessLoop(Exception):
    """A step was entered too often."""

    def __init__(self, path: str, *, times_out: bool) -> None:
        super().__init__(path)
        self.path = path
        self.times_out = times_out
        """Whether the time-out of its flow ends the loop all the same."""


@dataclass(eq=False)
class SimulatedRun:
    """What a run did."""

    script: Script
    case: Case
    record: Record
    calls: SimulatedCalls
    cut_short: Finding | None = None
    """Why it was not run to its end: it passed a limit of test runs. Nothing is known of its end."""


class Simulator:
    """Makes runs of one file."""

    def __init__(self, file: TestFile, rules: Rules, settings: SimulationSettings) -> None:
        self._file = file
        self._rules = rules
        self.chosen = settings.faults
        """The kinds of faults that runs can have."""
        self.inputs = file.inputs
        """Those of the file and of its tests."""
        self._schema = settings.input_schema
        self._data = {id(source.flow): MadeUpData(source.flow) for source in file.sources}

    @property
    def is_doubtful(self) -> bool:
        """Whether made-up data of a flow is surely wrong somewhere."""
        return any(data.is_doubtful for data in self._data.values())

    def run(self, script: Script, watcher: Watcher | None = None) -> SimulatedRun:
        """Make a run; equal scripts make equal runs."""
        case = Case(
            "simulated", _NOWHERE, self._input(script), self._file.started_ms, EXECUTION_NAME, Mocks(), _ANYTHING
        )
        calls = SimulatedCalls(self._file, case, _Drawn(script, self.chosen).draw, self._maker(script), watcher)
        rules = self._rules
        virtual = VirtualRun(
            self._file, case, rules.limits, rules.missing_source, _LoopGuard(watcher).observe, None, calls
        )
        run = SimulatedRun(script, case, virtual.record, calls)
        try:
            virtual.run()
        except EndlessLoop as loop:
            if loop.times_out:
                message = f"step {loop.path} is entered again and again until the flow times out"
                run.cut_short = Finding(message, self._file.place(_NOWHERE))
            else:
                run.record.endless = loop.path
        except CaseStopped as stopped:
            run.cut_short = stopped.finding
        return run

    def may_be_input(self, document: JsonObject) -> bool:
        """Whether the document fits the schema of inputs, if there is one."""
        return self._schema is None or self._schema.mistake_in(document) is None

    def _input(self, script: Script) -> JsonObject:
        if script.input is not None:
            return script.input
        if self._schema is not None:
            return self._fitting(self._schema, script)
        examples = self._file.inputs
        choices = _choices(script, INPUT)
        if examples:
            return examples[0] if choices.random is None else choices.random.choice(examples)
        return self._data_of(self._file.source.flow).input(choices)

    def _fitting(self, schema: Schema, script: Script) -> JsonObject:
        """An input that fits the schema: the file's own, if plain data is wanted."""
        given = self._file.input
        is_plain = script.data is None or INPUT in script.plain
        if is_plain and given is not None:
            return given
        tries = (_choices(script, f"{INPUT}/{number}") for number in range(TRIES))
        plain = () if not is_plain else (Choices(),)
        others = (Choices(Random(number)) for number in range(TRIES))  # noqa: S311 - no secret
        found = object_for(schema, chain(plain, others if is_plain else tries, others))
        assert found is not None, "the reader has found one by the same choices"
        return found

    def _data_of(self, flow: Flow) -> MadeUpData:
        return self._data[id(flow)]

    def _maker(self, script: Script) -> MakeResult:
        def make(ordered: Ordered, place: Place) -> Reply:
            key = data_key(place)
            choices = _choices(script, key)
            if choices.random is None and place.entry > 1:
                choices = Choices(Random(key))  # noqa: S311 - no secret
            return made_up(self._data_of(ordered.source.flow).result(ordered.step, choices))

        return make


def data_key(place: Place) -> str:
    """By which the made-up result of a call is chosen: calls that are repeated get the same."""
    return f"{place.execution}/{place.path}/{place.entry}"


def _choices(script: Script, what: str) -> Choices:
    if script.data is None or what in script.plain:
        return Choices()
    return Choices(Random(f"{script.data}/{what}"), script.sizes)  # noqa: S311 - no secret


class _Drawn:
    """The faults of a run: those of its script, and those that it draws."""

    def __init__(self, script: Script, chosen: frozenset[FaultKind]) -> None:
        self._given: dict[tuple[str, str, int], list[Fault]] = {}
        for fault in script.faults:
            self._given.setdefault(fault.place[:3], []).append(fault)
        self._rate = script.rate
        self._chosen = chosen
        self._random = Random(script.draws) if script.rate else None  # noqa: S311 - no secret
        self._active: dict[tuple[str, str, int], Fault] = {}
        self._drawn = self._crashes = 0
        self._outages: list[tuple[Target, Fault]] = []
        """What is down for good."""

    def draw(self, ordered: Ordered, place: Place) -> Fault | None:
        """The fault that meets a call."""
        for target, outage in self._outages:
            if target == ordered.step.target:
                return outage
        for fault in self._given.get(place[:3], ()):
            if fault.meets(place):
                if fault.kind == FaultKind.OUTAGE:
                    self._outages.append((ordered.step.target, fault))
                return fault
        return None if self._random is None else self._by_chance(self._random, ordered, place)

    def _by_chance(self, random: Random, ordered: Ordered, place: Place) -> Fault | None:
        active = self._active.get(place[:3])
        if active is not None and active.meets(place):
            return active
        if self._drawn == FAULTS_MAX or random.random() >= self._rate:
            return None
        found = list(faults_of(ordered, place, self._chosen))
        drawn = random.choice(found) if found else None
        if drawn is None or (drawn.kind == FaultKind.CRASH and self._crashes == CRASHES_MAX):
            return None
        self._drawn += 1
        self._crashes += drawn.kind == FaultKind.CRASH
        self._active[place[:3]] = drawn
        return drawn


class _LoopGuard:
    """Ends a run that enters a step again and again."""

    def __init__(self, watcher: Watcher | None) -> None:
        self._entered: Counter[tuple[str, str]] = Counter()
        self._last_ms: dict[tuple[str, str], int] = {}
        self._watcher = watcher

    def observe(self, running: Running, event: Event, path: str) -> None:
        """Take in the next event; raises EndlessLoop."""
        if self._watcher is not None:
            self._watcher.observe(running, event, path)
        if event.type is EventType.STEP_ENTERED:
            key = running.execution.execution_id, path
            self._entered[key] += 1
            if self._entered[key] > ENTRIES_MAX:
                has_timeout = running.source.flow.timeout_seconds is not None
                raise EndlessLoop(path, times_out=has_timeout and event.time_ms > self._last_ms[key])
            self._last_ms[key] = event.time_ms
