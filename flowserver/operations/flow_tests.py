"""Runs the tests of a definition that need not be stored, in virtual time: no call leaves the server."""

import time
from dataclasses import dataclass, replace
from typing import Final

from flowserver.concurrency.background_throttle import yield_to_writer
from flowserver.concurrency.threads import Threads
from flowserver.engine.engine import Engine
from flowserver.flowtests.budget import Budget
from flowserver.flowtests.cases import TestFile
from flowserver.flowtests.coverage import Coverage, FileCoverage
from flowserver.flowtests.findings import Finding
from flowserver.flowtests.given_definition import load_with
from flowserver.flowtests.outcomes import Outcome, Rules, run_case, unused_by_all
from flowserver.language.check_cost import Work
from flowserver.language.diagnostics import DefinitionRejected, Diagnostic
from flowserver.language.parser import parse

TURN_STEPS: Final = 10
"""Steps of one turn: it takes less than a millisecond, and after it the thread lets others run."""


@dataclass(frozen=True, slots=True)
class TestedDefinition:
    """What has come of the tests; with `mistakes`, none has run."""

    mistakes: tuple[Diagnostic, ...]
    outcomes: tuple[Outcome, ...] = ()
    warnings: tuple[Finding, ...] = ()
    coverage: FileCoverage | None = None


class FlowTestOperations:
    """Runs flow tests, those of one request after those of another, in a thread of their own."""

    def __init__(self, engine: Engine, *, lenient: bool = False) -> None:
        self._engine = engine
        self._lenient = lenient
        self._thread = Threads("flow-tests", waiting_max=engine.limits.flow_tests_waiting_max)

    def close(self) -> None:
        """End the thread; no operation may follow."""
        self._thread.close()

    async def run(self, definition: str, tests: str) -> TestedDefinition:
        """Run the tests in a flow test file for a definition.

        Raises DefinitionRejected if the definition has errors, and ResourceThrottled if too many requests wait.
        """
        return await self._thread.run(lambda: self._run(definition, tests))

    def _run(self, definition: str, tests: str) -> TestedDefinition:
        limits, work = self._engine.limits, Work(pause=yield_to_writer)
        flow = parse(definition, limits, lenient=self._lenient, work=work).flow
        try:
            return self._run_all(load_with(definition, flow, tests, limits, work))
        except DefinitionRejected as rejected:
            return TestedDefinition(rejected.diagnostics)

    def _run_all(self, file: TestFile) -> TestedDefinition:
        limits = self._engine.limits
        rules = Rules(replace(limits, turn_steps_max=TURN_STEPS), self._engine.missing_source)
        budget = Budget(
            limits.flow_tests_request_events_max,
            limits.flow_tests_request_seconds_max,
            yield_to_writer,
            time.thread_time,
        )
        coverage = Coverage(limits)
        coverage.add(file.source)
        outcomes = [run_case(file, case, rules, coverage.observe, budget=budget) for case in file.cases]
        (measured,) = coverage.files()
        return TestedDefinition((), tuple(outcomes), tuple(unused_by_all(file, outcomes)), measured)
