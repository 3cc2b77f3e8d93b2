"""Makes a run that breaks a property shorter: fewer faults, plainer data, a smaller input. Deterministic."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from flowserver.flowtests.properties import Broken, Property
from flowserver.flowtests.simulating.runs import Script, SimulatedRun, Simulator

EVENTS_MAX: Final = 200_000
"""Events of all tries together: some seconds."""


def shortest(
    simulator: Simulator, run: SimulatedRun, property: Property, broken: Broken
) -> tuple[SimulatedRun, Broken]:
    """The shortest run found that breaks the property at the same step, and how it does."""
    return _Shrinking(simulator, property, run, broken).shortest()


class _Shrinking:
    """The search for a shorter run."""

    def __init__(self, simulator: Simulator, property: Property, run: SimulatedRun, broken: Broken) -> None:
        self._simulator = simulator
        self._property = property
        self._run = run
        self._broken = broken
        self._events_left = EVENTS_MAX

    def shortest(self) -> tuple[SimulatedRun, Broken]:
        """Try smaller scripts until none of them breaks the property."""
        drawn = tuple(fault for _, fault in self._run.calls.faults)
        script = self._run.script
        self._try(replace(script, faults=tuple(dict.fromkeys(drawn)), rate=0.0, draws=""))
        while any(self._try(each) for each in self._smaller(self._run.script)):
            pass
        return self._run, self._broken

    def _smaller(self, script: Script) -> Iterator[Script]:
        if script.data is not None:
            yield replace(script, data=None)
        faults = script.faults
        size = len(faults)
        while size:
            for begin in range(0, len(faults), size):
                yield replace(script, faults=faults[:begin] + faults[begin + size :])
            size //= 2
        for position, fault in enumerate(faults):
            if fault.times > 1:
                once = (*faults[:position], replace(fault, times=1), *faults[position + 1 :])
                yield replace(script, faults=once)

    def _try(self, script: Script) -> bool:
        """Make the run of a script, and keep it if it breaks the property in the same way."""
        if self._events_left <= 0 or script == self._run.script:
            return False
        run = self._simulator.run(script)
        self._events_left -= run.record.events
        broken = self._property.broken_by(run.record)
        if broken is None or broken.path != self._broken.path:
            return False
        self._run, self._broken = run, broken
        return True
