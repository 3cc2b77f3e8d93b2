"""Makes a run that breaks a property shorter: fewer and plainer faults, plainer data, a smaller input if it is made up.
Deterministic.

The shorter run has the same mistake: it breaks the property at the same step and in the same way, and its execution
ends by the same error of the same step, or without one. Otherwise the report would be about another mistake than the
run that was found.
"""

import re
from collections.abc import Hashable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Final

from flowserver.base.json_values import Json, JsonObject
from flowserver.flowtests.choices import PLAIN_SIZE
from flowserver.flowtests.fault_names import FaultKind
from flowserver.flowtests.properties import Broken, Property
from flowserver.flowtests.property_names import ENDS, OWN_MISTAKE
from flowserver.flowtests.simulating.faults import Fault, faults_of, is_plain
from flowserver.flowtests.simulating.runs import INPUT, Script, SimulatedRun, Simulator, data_key
from flowserver.flowtests.step_paths import StepsByPath
from flowserver.machine.state import Status

UNITS_MAX: Final = 100_000
"""Work of all tries for one property, in units of a budget: a second or two."""
PARTS_MAX: Final = 16
"""A list is made smaller by a part of its elements, at least by one of so many."""
PLAINER_MAX: Final = 20
"""Calls whose results are made plain one by one."""
_KEEPS_INPUT: Final = (ENDS, OWN_MISTAKE)
"""Properties that an input without something could break for another reason."""


def shortest(
    simulator: Simulator, run: SimulatedRun, property: Property, broken: Broken, units_max: int = UNITS_MAX
) -> tuple[SimulatedRun, Broken]:
    """The shortest run found that breaks the property in the same way, and how it does."""
    return _Shrinking(simulator, property, run, broken, units_max).shortest()


class _Shrinking:
    """The search for a shorter run."""

    def __init__(
        self, simulator: Simulator, property: Property, run: SimulatedRun, broken: Broken, units_max: int
    ) -> None:
        self._simulator = simulator
        self._property = property
        self._run = run
        self._broken = broken
        self._way = _way(broken)
        self._ends = {_end(run), None}
        self._units_left = units_max

    def shortest(self) -> tuple[SimulatedRun, Broken]:
        """Try smaller scripts until none of them breaks the property."""
        drawn = tuple(dict.fromkeys(self._run.calls.faults))
        self._try(replace(self._run.script, faults=drawn, rate=0.0, draws=""))
        while any(self._try(each) for each in self._smaller(self._run.script)):
            pass
        return self._run, self._broken

    def _smaller(self, script: Script) -> Iterator[Script]:
        if script.data is not None:
            yield replace(script, data=None, plain=frozenset())
        yield from self._with_fewer_faults(script)
        if script.data is not None:
            yield from self._with_plainer_data(script)
        if self._property.name not in _KEEPS_INPUT and self._run.case.input not in self._simulator.inputs:
            for smaller in _smaller_documents(self._run.case.input):
                if self._simulator.may_be_input(smaller):
                    yield replace(script, input=smaller)

    def _with_fewer_faults(self, script: Script) -> Iterator[Script]:
        faults = script.faults
        size = len(faults)
        while size:
            for begin in range(0, len(faults), size):
                yield replace(script, faults=faults[:begin] + faults[begin + size :])
            size //= 2
        yield from self._with_earlier_faults(script)
        for position, fault in enumerate(faults):
            if fault.times > 1:
                once = replace(fault, times=1)
                yield replace(script, faults=(*faults[:position], once, *faults[position + 1 :]))
        yield from self._with_plainer_faults(script)

    def _with_earlier_faults(self, script: Script) -> Iterator[Script]:
        """Without a fault for which a call is repeated: those that meet the repeated calls come so much earlier."""
        for position, fault in enumerate(script.faults):
            others = (*script.faults[:position], *script.faults[position + 1 :])
            after = [
                each for each in others if each.place[:3] == fault.place[:3] and each.place.call > fault.place.call
            ]
            if after:
                yield replace(script, faults=tuple(_earlier(each) if each in after else each for each in others))

    def _with_plainer_faults(self, script: Script) -> Iterator[Script]:
        """With one error of a call in place of several, or of something that a reader has to think about."""
        by_place = {place: ordered for ordered, place, _ in self._run.calls.answers}
        for position, fault in enumerate(script.faults):
            ordered = by_place.get(fault.place)
            if ordered is not None and not is_plain(fault) and fault.kind != FaultKind.OUTAGE:
                for other in faults_of(ordered, fault.place, self._simulator.chosen):
                    if is_plain(other):
                        yield replace(script, faults=(*script.faults[:position], other, *script.faults[position + 1 :]))

    def _with_plainer_data(self, script: Script) -> Iterator[Script]:
        keys = dict.fromkeys([INPUT, *(data_key(place) for _, place, _ in self._run.calls.answers)])
        if script.sizes != (PLAIN_SIZE,):
            yield replace(script, sizes=(PLAIN_SIZE,))
        for key in islice((key for key in keys if key not in script.plain), PLAINER_MAX):
            yield replace(script, plain=script.plain | {key})

    def _try(self, script: Script) -> bool:
        """Make the run of a script, and keep it if it breaks the property in the same way."""
        if self._units_left <= 0 or script == self._run.script:
            return False
        run = self._simulator.run(script)
        self._units_left -= run.record.units
        broken = None if run.cut_short else self._property.broken_by(run.record)
        if broken is None or _way(broken) != self._way or _end(run) not in self._ends:
            return False
        self._run, self._broken = run, broken
        return True


def _earlier(fault: Fault) -> Fault:
    return replace(fault, place=fault.place._replace(call=fault.place.call - 1))


_NUMBER: Final = re.compile(r"\d+")


def _way(broken: Broken) -> Hashable:
    """How a property is broken, without values."""
    return broken.path, _NUMBER.sub("0", broken.message) if broken.kind is None else broken.kind


def _end(run: SimulatedRun) -> Hashable:
    """How the execution fails; None if it succeeds."""
    execution = run.record.execution
    if execution.status is Status.SUCCEEDED:
        return None
    failed_step = execution.failed_step
    return execution.status, execution.error, failed_step and StepsByPath(run.record.flow).path_of(failed_step)


def _smaller_documents(document: JsonObject) -> Iterator[JsonObject]:
    """The document without one of its members, or with a smaller one."""
    for key, value in document.items():
        yield {name: each for name, each in document.items() if name != key}
        for smaller in _smaller_values(value):
            yield {**document, key: smaller}


def _smaller_values(value: Json) -> Iterator[Json]:
    if isinstance(value, dict):
        yield from _smaller_documents(value)
    elif isinstance(value, list) and value:
        size = len(value)
        while size > len(value) // PARTS_MAX:
            yield from (value[:begin] + value[begin + size :] for begin in range(0, len(value), size))
            size //= 2
