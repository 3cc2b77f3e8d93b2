"""Runs the cases of files, and what has come of each."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from flowserver.base.limits import Limits
from flowserver.flowtests.cases import Case, TestFile
from flowserver.flowtests.checking import Checks
from flowserver.flowtests.findings import CaseStopped, Finding
from flowserver.flowtests.mocks import all_mocks
from flowserver.flowtests.running import Observer, Record, VirtualRun
from flowserver.machine.mappings import MissingSource


@dataclass(frozen=True, slots=True)
class Rules:
    """What of a server's settings has a meaning for flows."""

    limits: Limits
    missing_source: MissingSource = "null"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What has come of one case."""

    file: TestFile
    case: Case
    record: Record
    failures: tuple[Finding, ...]
    warnings: tuple[Finding, ...]
    seconds: float
    """Of real time."""
    used: frozenset[int]
    """The mocks that answered, by identity."""

    @property
    def passed(self) -> bool:
        """Whether all was as expected."""
        return not self.failures


Clock = Callable[[], float]


def run_case(
    file: TestFile, case: Case, rules: Rules, observe: Observer | None = None, clock: Clock = time.perf_counter
) -> Outcome:
    """Run a case and check it."""
    began = clock()
    run = VirtualRun(file, case, rules.limits, rules.missing_source, observe)
    try:
        record = run.run()
        failures = tuple(Checks(file, case, record).findings())
        warnings = tuple(run.mocks.mocks.unused())
    except CaseStopped as stopped:
        failures, warnings = (stopped.finding,), ()
    used = frozenset(map(id, run.mocks.mocks.used()))
    return Outcome(file, case, run.record, failures, warnings, clock() - began, used)


def unused_by_all(file: TestFile, outcomes: list[Outcome]) -> Iterator[Finding]:
    """A warning for each mock of a file that none of its cases has used; nothing unless all have run to their ends."""
    if len(outcomes) < len(file.cases) or not all(outcome.passed for outcome in outcomes):
        return
    used = frozenset().union(*(outcome.used for outcome in outcomes))
    for kind, mock in all_mocks(file.mocks):
        if id(mock) not in used:
            yield Finding(f"the mock `{mock.key}` of {kind} is not used by any test", file.place(mock.span))
