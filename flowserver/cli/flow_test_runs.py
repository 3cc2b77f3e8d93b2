"""Runs flow test files as the options say, and remembers which files each of them was made from."""

from dataclasses import dataclass
from pathlib import Path

from flowserver.base.limits import Limits
from flowserver.base.utf8_texts import NotUtf8, read_utf8
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed
from flowserver.cli.flow_test_output import RunFile
from flowserver.cli.real_callees import RealCallees
from flowserver.flowtests.cases import Case, TestFile
from flowserver.flowtests.coverage import Coverage
from flowserver.flowtests.loading import Loader, stamp_of
from flowserver.flowtests.outcomes import Rules, run_case, unused_by_all
from flowserver.language.diagnostics import DefinitionRejected


@dataclass(frozen=True, slots=True)
class Choices:
    """What the options say of the runs."""

    rules: Rules
    lenient: bool
    only: str | None
    """Text that the file's name or the test's has."""
    is_measured: bool
    """Whether coverage is asked for."""

    @property
    def limits(self) -> Limits:
        """The limits in force."""
        return self.rules.limits


class TestRun:
    """Runs files; each definition and each handler is read once."""

    __test__ = False  # not a test of pytest's

    def __init__(self, choices: Choices, callees: RealCallees) -> None:
        self._choices = choices
        self._loader = Loader(choices.limits, lenient=choices.lenient, callees=callees.open)
        self.coverage = Coverage(choices.limits) if choices.is_measured else None

    def run(self, file: Path) -> RunFile:
        """Run the tests of a file; raises OSError, and CommandFailed if it is not text."""
        stamp = stamp_of(file)
        try:
            text = read_utf8(file)
        except NotUtf8 as error:
            raise CommandFailed(f"{file}: {error}", ExitCode.USAGE) from None
        try:
            tests = self._loader.load(file, text)
        except DefinitionRejected as rejected:
            return RunFile(str(file), text, rejected, made_from={file: stamp, **self._loader.named})
        observe = None if self.coverage is None else self.coverage.observe
        if self.coverage is not None:
            for source in tests.sources:
                self.coverage.add(source)
        rules = self._choices.rules
        outcomes = tuple(run_case(tests, case, rules, observe) for case in tests.cases if self._is_chosen(tests, case))
        warnings = tuple(unused_by_all(tests, list(outcomes)))
        return RunFile(str(file), text, None, outcomes, warnings, {file: stamp, **self._loader.named})

    def _is_chosen(self, tests: TestFile, case: Case) -> bool:
        only = self._choices.only
        return only is None or only.casefold() in f"{tests.file}::{case.name}".casefold()
