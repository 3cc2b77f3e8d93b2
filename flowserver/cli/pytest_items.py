"""Flow test files as pytest shows them."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flowserver.base.limits import Limits
from flowserver.cli.real_callees import RealCallees
from flowserver.flowtests.cases import Case, TestFile
from flowserver.flowtests.findings import render_finding
from flowserver.flowtests.loading import Loader
from flowserver.flowtests.outcomes import Outcome, Rules, run_case
from flowserver.language.diagnostics import DefinitionRejected, render


class FlowTestFailed(Exception):
    """A case has failed."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.failures[0].message)
        self.outcome = outcome


class FlowTestWarning(pytest.PytestWarning):
    """A mock of a flow test is not used."""


class FlowTestItem(pytest.Item):
    """One test of a file."""

    def __init__(self, *, tests: TestFile, case: Case, **given: Any) -> None:
        super().__init__(**given)
        self._tests = tests
        self._case = case

    def runtest(self) -> None:
        """Run it; raises FlowTestFailed."""
        outcome = run_case(self._tests, self._case, Rules(Limits()))
        for each in outcome.warnings:
            self.warn(FlowTestWarning(render_finding(each, "warning")))
        if not outcome.passed:
            raise FlowTestFailed(outcome)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The findings of a case that has failed, instead of a traceback."""
        if isinstance(excinfo.value, FlowTestFailed):
            return "\n".join(map(render_finding, excinfo.value.outcome.failures))
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[os.PathLike[str], int, str]:
        """Its file, its line from 0, and its name."""
        return self.path, self._case.span.line - 1, self.name


class FlowTestFile(pytest.File):
    """A file of tests."""

    def collect(self) -> Iterator[FlowTestItem]:
        """Its tests; raises CollectError, which shows each mistake of the file."""
        file = _near(self.path)
        text = self.path.read_text("utf-8-sig")
        callees = RealCallees(Limits())
        self.config.add_cleanup(callees.close)
        try:
            tests = Loader(Limits(), callees=callees.open).load(file, text)
        except DefinitionRejected as rejected:
            mistakes = (render(each, text, str(file)) for each in rejected.diagnostics)
            raise self.CollectError("\n".join(mistakes)) from None
        for case in tests.cases:
            yield FlowTestItem.from_parent(self, name=case.name, tests=tests, case=case)


def _near(path: Path) -> Path:
    """The path from the current folder, if the file is in it."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
