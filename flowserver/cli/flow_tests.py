"""The command `flowserver test`: runs flow test files in virtual time, without a server."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Final

import typer

from flowserver.base.lazy_import import load
from flowserver.base.limits import Limits
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed
from flowserver.cli.flow_test_output import RunFile, show
from flowserver.cli.flow_test_runs import Choices, TestRun
from flowserver.cli.options import LenientFlag, LimitsFlag, MissingSourceFlag, read_language_settings
from flowserver.cli.printable import printable
from flowserver.cli.real_callees import RealCallees
from flowserver.cli.server_options import formatted
from flowserver.flowtests.coverage import FileCoverage, percent_of
from flowserver.flowtests.file_names import SUFFIX
from flowserver.flowtests.junit import junit_xml
from flowserver.flowtests.lcov import lcov
from flowserver.flowtests.loading import Stamp, files_in, stamp_of
from flowserver.flowtests.outcomes import Rules

_WATCH: Final = "flowserver.cli.flow_test_watching:watch_tests"
"""Loaded when it is needed."""

Paths = Annotated[
    list[Path] | None,
    typer.Argument(metavar="PATH", help=f"Files named *{SUFFIX}, or folders of them; the current folder by default."),
]
Filter = Annotated[
    str | None, typer.Option("-k", metavar="TEXT", help="Only tests with this text in their file's name or their own.")
]
MeasureFlag = Annotated[
    bool, typer.Option("--coverage", help="Show which steps, options, retries and catches the tests reach.")
]
LcovFile = Annotated[Path | None, typer.Option("--lcov", metavar="FILE", help="Write the coverage as LCOV to FILE.")]
FailUnder = Annotated[
    float | None,
    typer.Option("--fail-under", metavar="PERCENT", min=0, max=100, help="Fail if the coverage is less."),
]
JunitFile = Annotated[Path | None, typer.Option("--junitxml", metavar="FILE", help="Write a JUnit report to FILE.")]
WatchFlag = Annotated[
    bool, typer.Option("--watch", "-w", help="Stay, and run tests again when a file changes that they are made from.")
]


@formatted
def test(
    output: str,
    paths: Paths = None,
    only: Filter = None,
    watch: WatchFlag = False,
    junit_file: JunitFile = None,
    coverage: MeasureFlag = False,
    lcov_file: LcovFile = None,
    fail_under: FailUnder = None,
    limits: LimitsFlag = None,
    lenient: LenientFlag = None,
    missing_source: MissingSourceFlag = None,
) -> None:
    """Run flow tests, in virtual time and without a server.

    A test file is beside a definition, and its name ends in `.flowtest.yaml`. It says what the calls of the flow
    return, and what the result has to be. `flowserver test record` makes one of an execution; a folder with the name
    `record` is written `./record`.

    With --watch the command stays until Ctrl-C. If a test file, its definition, that of a sub-flow or a Python handler
    changes, it runs the tests again that are made from it; with coverage, all tests.

    Exit code 0: all tests pass. 1: a test fails, or the coverage is less than --fail-under. 2: a test file has
    mistakes. 3: there are no tests.

    \b
    Examples:
      flowserver test
      flowserver test flows/order.flowtest.yaml -k declined
      flowserver test flows/ --watch
      flowserver test flows/ --junitxml report.xml
      flowserver test flows/ --coverage --fail-under 80
    """
    settings = read_language_settings({"limits": limits, "lenient": lenient, "missing_source": missing_source})
    rules = Rules(Limits.of(settings.limits), settings.missing_source)
    is_measured = coverage or lcov_file is not None or fail_under is not None
    choices = Choices(rules, settings.lenient, only, is_measured)
    reports = _Reports(output, junit_file, lcov_file, fail_under, shows_coverage=coverage)
    given = paths or [Path()]
    if not watch:
        files, measured = _run_all(_found(given), choices)
        reports.show(files, measured)
        _end(files, only)
        reports.require_coverage(measured)
        return
    if output != "table":
        raise CommandFailed(f"--watch shows tests to people; leave out `-o {output}`", ExitCode.USAGE)
    _found(given)
    watching = _Watching(choices, reports, given)
    load(_WATCH)(given, watching.find, watching.run)


class _Watching:
    """The results of all files while the command stays."""

    def __init__(self, choices: Choices, reports: "_Reports", paths: list[Path]) -> None:
        self._choices = choices
        self._reports = reports
        self._paths = paths
        self._files: dict[Path, RunFile] = {}

    def find(self) -> list[Path]:
        """The test files that there are. An editor may take one away for a moment."""
        return [file for file in files_in(self._paths) if file.is_file()]

    def run(self, tests: list[Path]) -> dict[Path, Mapping[Path, Stamp]]:
        """Run these files, or all if coverage is measured; returns of all files what they were made from."""
        there = self.find()
        again = [file for file in there if self._choices.is_measured or file in tests]
        files, measured = _run_all(again, self._choices, _run_or_tell)
        kept = {file: run for file, run in self._files.items() if file in there}
        self._files = kept | dict(zip(again, files, strict=True))
        self._reports.show(files, measured, everything=list(self._files.values()))
        try:
            self._reports.require_coverage(measured)
        except CommandFailed as failed:
            typer.echo(f"flowserver: {failed}", err=True)
        return {file: run.made_from for file, run in self._files.items()}


class _Reports:
    """Shows results, and writes them to files."""

    def __init__(
        self,
        output: str,
        junit_file: Path | None,
        lcov_file: Path | None,
        fail_under: float | None,
        *,
        shows_coverage: bool,
    ) -> None:
        self._output = output
        self._junit_file = junit_file
        self._lcov_file = lcov_file
        self._fail_under = fail_under
        self._shows_coverage = shows_coverage

    def show(
        self, files: list[RunFile], measured: list[FileCoverage] | None, everything: list[RunFile] | None = None
    ) -> None:
        """Show files; write reports of `everything`, if that is more."""
        if self._junit_file is not None:
            reported = files if everything is None else everything
            rejected = {file.name: file.mistakes for file in reported if file.rejected is not None}
            outcomes = [outcome for file in reported for outcome in file.outcomes]
            self._junit_file.write_text(junit_xml(outcomes, rejected), "utf-8")
        if measured is not None and self._lcov_file is not None:
            self._lcov_file.write_text(lcov(measured), "utf-8")
        show(files, measured if self._shows_coverage else None, self._output)

    def require_coverage(self, measured: list[FileCoverage] | None) -> None:
        """Raises CommandFailed if the coverage is too little."""
        if measured is not None and self._fail_under is not None:
            percent = percent_of(measured)
            if percent < self._fail_under:
                raise CommandFailed(f"the coverage is {percent:.1f} %, less than {self._fail_under:g} %")


def _run_all(
    files: list[Path], choices: Choices, run_file: Callable[[TestRun, Path], RunFile] = TestRun.run
) -> tuple[list[RunFile], list[FileCoverage] | None]:
    with RealCallees(choices.limits) as callees:
        run = TestRun(choices, callees)
        return [run_file(run, file) for file in files], None if run.coverage is None else run.coverage.files()


def _run_or_tell(run: TestRun, file: Path) -> RunFile:
    """Run a file; if it cannot be read now, that does not end the command: it may change."""
    stamp = stamp_of(file)
    try:
        return run.run(file)
    except (OSError, CommandFailed) as error:
        typer.echo(printable(f"flowserver: {error}"), err=True)
        return RunFile(str(file), "", None, made_from={file: stamp})


def _found(paths: list[Path]) -> list[Path]:
    for path in paths:
        path.stat()  # raises FileNotFoundError
        if path.is_file() and not path.name.endswith(SUFFIX):
            raise CommandFailed(f"{path} is no flow test: their names end in {SUFFIX}", ExitCode.USAGE)
    files = list(files_in(paths))
    if not files:
        raise CommandFailed(f"{', '.join(map(str, paths))} holds no files *{SUFFIX}", ExitCode.NOT_FOUND)
    return files


def _end(files: list[RunFile], only: str | None) -> None:
    outcomes = [outcome for file in files for outcome in file.outcomes]
    if any(file.rejected is not None for file in files):
        raise typer.Exit(ExitCode.USAGE)
    if not outcomes:
        reason = "there are no tests" if only is None else f"no test has {only!r} in its name"
        raise CommandFailed(reason, ExitCode.NOT_FOUND)
    if not all(outcome.passed for outcome in outcomes):
        raise typer.Exit(ExitCode.FAILED)
