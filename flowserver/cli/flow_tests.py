"""The command `flowserver test`: runs flow test files in virtual time, without a server."""

from pathlib import Path
from typing import Annotated

import typer

from flowserver.base.limits import Limits
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed
from flowserver.cli.flow_test_output import RunFile, show
from flowserver.cli.options import LenientFlag, LimitsFlag, MissingSourceFlag, read_settings
from flowserver.cli.server_options import formatted
from flowserver.flowtests.cases import Case, TestFile
from flowserver.flowtests.coverage import Coverage, percent_of
from flowserver.flowtests.file_names import SUFFIX
from flowserver.flowtests.junit import junit_xml
from flowserver.flowtests.lcov import lcov
from flowserver.flowtests.loading import Loader, files_in
from flowserver.flowtests.outcomes import Rules, run_case, unused_by_all
from flowserver.language.diagnostics import DefinitionRejected

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


@formatted
def test(
    output: str,
    paths: Paths = None,
    only: Filter = None,
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
    return, and what the result has to be.

    Exit code 0: all tests pass. 1: a test fails, or the coverage is less than --fail-under. 2: a test file has
    mistakes. 3: there are no tests.

    \b
    Examples:
      flowserver test
      flowserver test flows/order.flowtest.yaml -k declined
      flowserver test flows/ --junitxml report.xml
      flowserver test flows/ --coverage --fail-under 80
    """
    settings = read_settings({"limits": limits, "lenient": lenient, "missing_source": missing_source})
    rules = Rules(Limits.of(settings.limits), settings.missing_source)
    loader = Loader(rules.limits, lenient=settings.lenient)
    measured = Coverage(rules.limits) if coverage or lcov_file is not None or fail_under is not None else None
    files = [_run(file, loader, rules, only, measured) for file in _found(paths or [Path()])]
    if junit_file is not None:
        rejected = {file.name: file.mistakes for file in files if file.rejected is not None}
        junit_file.write_text(junit_xml([outcome for file in files for outcome in file.outcomes], rejected), "utf-8")
    if measured is not None and lcov_file is not None:
        lcov_file.write_text(lcov(measured.files()), "utf-8")
    show(files, measured.files() if measured is not None and coverage else None, output)
    _end(files, only)
    if measured is not None and fail_under is not None:
        _require(percent_of(measured.files()), fail_under)


def _require(percent: float, wanted: float) -> None:
    if percent < wanted:
        raise CommandFailed(f"the coverage is {percent:.1f} %, less than {wanted:g} %")


def _found(paths: list[Path]) -> list[Path]:
    for path in paths:
        if path.is_file() and not path.name.endswith(SUFFIX):
            raise CommandFailed(f"{path} is no flow test: their names end in {SUFFIX}", ExitCode.USAGE)
    files = list(files_in(paths))
    if not files:
        raise CommandFailed(f"{', '.join(map(str, paths))} holds no files *{SUFFIX}", ExitCode.NOT_FOUND)
    return files


def _run(file: Path, loader: Loader, rules: Rules, only: str | None, measured: Coverage | None) -> RunFile:
    try:
        text = file.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise CommandFailed(f"{file}: not UTF-8 text (at byte {error.start + 1})", ExitCode.USAGE) from None
    try:
        tests = loader.load(file, text)
    except DefinitionRejected as rejected:
        return RunFile(str(file), text, rejected)
    observe = None if measured is None else measured.observe
    if measured is not None:
        for source in tests.sources:
            measured.add(source)
    outcomes = tuple(run_case(tests, case, rules, observe) for case in tests.cases if _is_chosen(tests, case, only))
    return RunFile(str(file), text, None, outcomes, tuple(unused_by_all(tests, list(outcomes))))


def _is_chosen(tests: TestFile, case: Case, only: str | None) -> bool:
    return only is None or only.casefold() in f"{tests.file}::{case.name}".casefold()


def _end(files: list[RunFile], only: str | None) -> None:
    outcomes = [outcome for file in files for outcome in file.outcomes]
    if any(file.rejected is not None for file in files):
        raise typer.Exit(ExitCode.USAGE)
    if not outcomes:
        raise CommandFailed(f"no test has {only!r} in its name", ExitCode.NOT_FOUND)
    if not all(outcome.passed for outcome in outcomes):
        raise typer.Exit(ExitCode.FAILED)
