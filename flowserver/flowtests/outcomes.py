"""Runs the cases of files, and what has come of each."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

from flowserver.base.limits import Limits
from flowserver.flowtests.budget import Budget, BudgetSpent
from flowserver.flowtests.calls import MockedCalls
from flowserver.flowtests.cases import Case, TestFile
from flowserver.flowtests.checking import Checks
from flowserver.flowtests.findings import CaseStopped, Finding
from flowserver.flowtests.mocks import all_mocks, replies_of
from flowserver.flowtests.records import Record
from flowserver.flowtests.running import Observer, VirtualRun
from flowserver.machine.mappings import MissingSource
from flowserver.machine.step_summary import StepSummary

CASE_UNITS: Final = 10
"""What a case costs besides its events, in units of the budget."""

FAILURES_MAX: Final = 50
"""Failures of one test that are shown, and warnings."""


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
    steps: list[StepSummary]
    """What became of each step of its flow, in the order in which they were entered first."""
    failures: tuple[Finding, ...]
    warnings: tuple[Finding, ...]
    seconds: float
    """Of real time."""
    used: Mapping[int, int]
    """How many replies each mock gave that answered, by identity."""

    @property
    def passed(self) -> bool:
        """Whether all was as expected."""
        return not self.failures


Clock = Callable[[], float]


def run_case(
    file: TestFile,
    case: Case,
    rules: Rules,
    observe: Observer | None = None,
    clock: Clock = time.perf_counter,
    budget: Budget | None = None,
) -> Outcome:
    """Run a case and check it; it fails if it has used up the budget."""
    began = clock()
    budget = budget or Budget()
    calls = MockedCalls(file, case, budget)
    run = VirtualRun(file, case, rules.limits, rules.missing_source, observe, budget, calls)
    failures: tuple[Finding, ...]
    warnings: tuple[Finding, ...] = ()
    try:
        budget.spend(CASE_UNITS)
        record = run.run()
        failures = tuple(islice(Checks(file, case, record, budget).findings(), FAILURES_MAX))
        warnings = tuple(islice(calls.mocks.unused(), FAILURES_MAX))
    except CaseStopped as stopped:
        failures = (stopped.finding,)
    except BudgetSpent as spent:
        failures = (_too_much(file, case, spent),)
    used = {id(mock): taken for mock, taken in calls.mocks.used()}
    return Outcome(file, case, run.record, run.steps, failures, warnings, clock() - began, used)


def _too_much(file: TestFile, case: Case, spent: BudgetSpent) -> Finding:
    message = f"all tests together have {spent}, the most that a server gives them"
    return Finding(message, file.place(case.span), hint="run them with `flowserver test`, which has no such limit")


def unused_by_all(file: TestFile, outcomes: list[Outcome]) -> Iterator[Finding]:
    """A warning for each mock of a file that none of its cases has used, or with replies that none has used; nothing
    unless all have run to their ends. Each case begins with the first reply.
    """
    if not outcomes or len(outcomes) < len(file.cases) or not all(outcome.passed for outcome in outcomes):
        return
    for kind, mock in all_mocks(file.mocks):
        most = max((outcome.used[id(mock)] for outcome in outcomes if id(mock) in outcome.used), default=None)
        given = replies_of(mock)
        if most is None:
            yield Finding(f"the mock `{mock.key}` of {kind} is not used by any test", file.place(mock.span))
        elif given is not None and most < given:
            message = f"no test uses more than {most} of the {given} replies of `{mock.key}`"
            yield Finding(message, file.place(mock.span))
