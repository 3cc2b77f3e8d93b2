"""One simulated run: what it is made of, and what it did."""

from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import Final

from flowserver.base.json_values import JsonObject
from flowserver.flowtests.calls import Ordered
from flowserver.flowtests.cases import Case, Expectation, Mocks, Reply, TestFile
from flowserver.flowtests.findings import CaseStopped, Finding
from flowserver.flowtests.outcomes import Rules
from flowserver.flowtests.records import Record
from flowserver.flowtests.running import Running, VirtualRun
from flowserver.flowtests.simulating.faults import CRASH, Fault, Place, faults_of
from flowserver.flowtests.simulating.made_up_data import PLAIN_SIZE, Choices, MadeUpData
from flowserver.flowtests.simulating.simulated_calls import MakeResult, SimulatedCalls, made_up
from flowserver.language.graph import Flow, Span
from flowserver.machine.events import Event, EventType

ENTRIES_MAX: Final = 1_000
"""After so many entries of one step a run counts as endless: answers are drawn anew each time, so a loop with
an exit takes it much earlier."""
CRASHES_MAX: Final = 3
"""Crashes that one run draws: each of them makes all calls anew that are under way."""

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
    input: JsonObject | None = None
    """Instead of a made-up one."""


class EndlessLoop(Exception):
    """A step was entered too often."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


@dataclass(eq=False)
class SimulatedRun:
    """What a run did."""

    script: Script
    case: Case
    record: Record
    calls: SimulatedCalls
    stopped: Finding | None = None
    """Why it has no end, if it is not a loop."""


class Simulator:
    """Makes runs of one file."""

    def __init__(self, file: TestFile, rules: Rules, chosen: frozenset[str]) -> None:
        self._file = file
        self._rules = rules
        self._chosen = chosen
        self._data = {id(source.flow): MadeUpData(source.flow) for source in file.sources}

    def run(self, script: Script) -> SimulatedRun:
        """Make a run; equal scripts make equal runs."""
        case = Case("simulated", _NOWHERE, self._input(script), self._file.started_ms, "simulated", Mocks(), _ANYTHING)
        calls = SimulatedCalls(self._file, case, _Drawn(script, self._chosen).draw, self._maker(script))
        rules = self._rules
        virtual = VirtualRun(self._file, case, rules.limits, rules.missing_source, _LoopGuard().observe, None, calls)
        run = SimulatedRun(script, case, virtual.record, calls)
        try:
            virtual.run()
        except EndlessLoop as loop:
            run.record.endless = loop.path
        except CaseStopped as stopped:
            run.record.endless, run.stopped = "", stopped.finding
        return run

    def _input(self, script: Script) -> JsonObject:
        if script.input is not None:
            return script.input
        examples = self._file.inputs
        choices = _choices(script, "input")
        if examples:
            return examples[0] if choices.random is None else choices.random.choice(examples)
        return self._data_of(self._file.source.flow).input(choices)

    def _data_of(self, flow: Flow) -> MadeUpData:
        return self._data[id(flow)]

    def _maker(self, script: Script) -> MakeResult:
        def make(ordered: Ordered, place: Place) -> Reply:
            choices = _choices(script, f"{place.execution}/{place.path}/{place.entry}")
            if script.data is None and place.entry > 1:
                choices = Choices(Random(f"{place.path}/{place.entry}"))  # noqa: S311 - no secret
            return made_up(self._data_of(ordered.source.flow).result(ordered.step, choices))

        return make


def _choices(script: Script, what: str) -> Choices:
    if script.data is None:
        return Choices()
    return Choices(Random(f"{script.data}/{what}"), script.sizes)  # noqa: S311 - no secret


class _Drawn:
    """The faults of a run: those of its script, and those that it draws."""

    def __init__(self, script: Script, chosen: frozenset[str]) -> None:
        self._script = script
        self._chosen = chosen
        self._random = Random(script.draws) if script.rate else None  # noqa: S311 - no secret
        self._active: dict[tuple[str, str, int], Fault] = {}
        self._crashes = 0

    def draw(self, ordered: Ordered, place: Place) -> Fault | None:
        """The fault that meets a call."""
        for fault in self._script.faults:
            if fault.meets(place):
                return fault
        if self._random is None:
            return None
        active = self._active.get(place[:3])
        if active is not None and active.meets(place):
            return active
        if self._random.random() >= self._script.rate:
            return None
        found = list(faults_of(ordered, place, self._chosen))
        drawn = self._random.choice(found) if found else None
        if drawn is None or (drawn.kind == CRASH and self._crashes == CRASHES_MAX):
            return None
        self._crashes += drawn.kind == CRASH
        self._active[place[:3]] = drawn
        return drawn


class _LoopGuard:
    """Ends a run that enters a step again and again."""

    def __init__(self) -> None:
        self._entered: Counter[tuple[str, str]] = Counter()

    def observe(self, running: Running, event: Event, path: str) -> None:
        """Take in the next event; raises EndlessLoop."""
        if event.type is EventType.STEP_ENTERED:
            key = running.execution.execution_id, path
            self._entered[key] += 1
            if self._entered[key] > ENTRIES_MAX:
                raise EndlessLoop(path)
