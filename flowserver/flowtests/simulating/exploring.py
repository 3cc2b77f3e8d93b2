"""Which runs a simulation makes on purpose, beside those that it draws: single faults, then faults after faults.

Each fault by itself meets each call of the run without faults. A run with a fault calls steps that the run without
faults does not call, those that handle the error. Each kind of fault meets these, too, after that fault; so each kind
meets each call site that a way of faults leads to. At last, faults that may have different effects meet the steps that
handle an error once for each step whose fault leads there.

If a function is called again after it has failed, it is down for good from then on in a further run: a loop without a
bound shows.
"""

from collections import deque
from collections.abc import Callable, Hashable
from typing import Final

from flowserver.flowtests.calls import Ordered
from flowserver.flowtests.fault_names import FaultKind
from flowserver.flowtests.records import UNSURE_ERRORS
from flowserver.flowtests.simulating.faults import Fault, Place, faults_of, is_error, outage_after
from flowserver.flowtests.simulating.runs import Script, SimulatedRun
from flowserver.machine.retry_and_catch import TASK_TIMEOUT, choose_catch, choose_retry

FAULTS_MAX: Final = 4
"""Faults of one run on the way to a call site that no shorter way has reached."""


class Exploration:
    """The scripts of such runs, in order. What a run has called decides which others follow."""

    def __init__(self, chosen: frozenset[FaultKind]) -> None:
        self._chosen = chosen
        self._sites: set[str] = set()
        """The call sites whose faults are planned."""
        self._plain: set[str] = set()
        """Those of the run without faults."""
        self._pairs_seen: set[tuple[str, str]] = set()
        self._singles: deque[Script] = deque()
        self._pairs: deque[Script] = deque()
        self._outages: deque[Script] = deque()

    @property
    def has_more(self) -> bool:
        """Whether there is a script that no run has had."""
        return bool(self._singles or self._pairs or self._outages)

    def next(self) -> Script | None:
        """The next script. Its run has to be noted."""
        waiting = next((each for each in (self._singles, self._pairs, self._outages) if each), None)
        return None if waiting is None else waiting.popleft()

    def begin(self, plain: SimulatedRun) -> None:
        """Take in the run without faults."""
        for ordered, place, _ in plain.calls.answers:
            self._plain.add(plain.calls.site_of(place))
            self._singles.extend(Script((fault,)) for fault in faults_of(ordered, place, self._chosen))
        self._sites |= self._plain

    def note(self, run: SimulatedRun) -> None:
        """Take in a run of a script from here."""
        faults = run.script.faults
        if not faults or run.record.endless is not None or run.cut_short is not None:
            return
        for ordered, place, _ in run.calls.answers:
            site = run.calls.site_of(place)
            if site not in self._plain:
                self._handle(faults, ordered, place, run.calls.site_of)
        outage = outage_after(faults[-1], run.calls.answers)
        if outage is not None and FaultKind.OUTAGE in self._chosen:
            self._outages.append(Script((*faults[:-1], outage)))

    def _handle(
        self, faults: tuple[Fault, ...], ordered: Ordered, place: Place, site_of: Callable[[Place], str]
    ) -> None:
        """Plan the faults of a call that a fault has led to."""
        site = site_of(place)
        if site not in self._sites and len(faults) < FAULTS_MAX:
            self._sites.add(site)
            self._pairs_seen.add((site_of(faults[-1].place), site))
            self._singles.extend(Script((*faults, each)) for each in faults_of(ordered, place, self._chosen))
        pair = site_of(faults[-1].place), site
        if len(faults) == 1 and pair not in self._pairs_seen:
            self._pairs_seen.add(pair)
            different = {_effect(each, ordered): each for each in faults_of(ordered, place, self._chosen)}
            self._pairs.extend(Script((*faults, each)) for each in different.values())


def _effect(fault: Fault, ordered: Ordered) -> Hashable:
    """Faults with an equal effect lead to the same retries and catch."""
    if not is_error(fault) and fault.kind != FaultKind.TIMEOUT:
        return fault.kind, fault.detail
    step, error = ordered.step, fault.detail or TASK_TIMEOUT
    rule = choose_catch(step.catch, error)
    return choose_retry(step.retry, {}, error), rule and rule.goto, error in UNSURE_ERRORS, fault.times
