"""The command `flowserver test`: runs flow test files in virtual time, without a server."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from flowserver.base.durations import shown_duration
from flowserver.base.limits import Limits
from flowserver.cli.document_output import show_document
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed
from flowserver.cli.options import LenientFlag, LimitsFlag, MissingSourceFlag, read_settings
from flowserver.cli.printable import printable
from flowserver.cli.server_options import formatted
from flowserver.flowtests.cases import Case, TestFile
from flowserver.flowtests.file_names import SUFFIX
from flowserver.flowtests.findings import Finding, located, render_finding
from flowserver.flowtests.junit import junit_xml
from flowserver.flowtests.loading import Loader, files_in
from flowserver.flowtests.outcomes import Outcome, Rules, run_case, unused_by_all
from flowserver.language.diagnostics import DefinitionRejected, render

Paths = Annotated[
    list[Path] | None,
    typer.Argument(metavar="PATH", help=f"Files named *{SUFFIX}, or folders of them; the current folder by default."),
]
Filter = Annotated[
    str | None, typer.Option("-k", metavar="TEXT", help="Only tests with this text in their file's name or their own.")
]
JunitFile = Annotated[Path | None, typer.Option("--junitxml", metavar="FILE", help="Write a JUnit report to FILE.")]

_SIGNS: Final = {True: "✔", False: "✘"}


@dataclass(frozen=True, slots=True)
class RunFile:
    """A file whose tests have run, or whose text has mistakes."""

    name: str
    text: str
    rejected: DefinitionRejected | None
    outcomes: tuple[Outcome, ...] = ()
    warnings: tuple[Finding, ...] = ()


@formatted
def test(
    output: str,
    paths: Paths = None,
    only: Filter = None,
    junit_file: JunitFile = None,
    limits: LimitsFlag = None,
    lenient: LenientFlag = None,
    missing_source: MissingSourceFlag = None,
) -> None:
    """Run flow tests, in virtual time and without a server.

    A test file is beside a definition, and its name ends in `.flowtest.yaml`. It says what the calls of the flow return, and
    what has to come out.

    Exit code 0: all tests pass. 1: a test fails. 2: a test file has mistakes. 3: there are no tests.

    \b
    Examples:
      flowserver test
      flowserver test flows/order.flowtest.yaml -k declined
      flowserver test flows/ --junitxml report.xml
    """
    settings = read_settings({"limits": limits, "lenient": lenient, "missing_source": missing_source})
    rules = Rules(Limits.of(settings.limits), settings.missing_source)
    loader = Loader(rules.limits, lenient=settings.lenient)
    files = [_run(file, loader, rules, only) for file in _found(paths or [Path()])]
    if junit_file is not None:
        junit_file.write_text(junit_xml([outcome for file in files for outcome in file.outcomes], _rejected(files)))
    _show(files, output)
    _end(files, only)


def _found(paths: list[Path]) -> list[Path]:
    files = list(files_in(paths))
    if not files:
        raise CommandFailed(f"{', '.join(map(str, paths))} holds no files *{SUFFIX}", ExitCode.NOT_FOUND)
    return files


def _run(file: Path, loader: Loader, rules: Rules, only: str | None) -> RunFile:
    try:
        text = file.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise CommandFailed(f"{file}: not UTF-8 text (at byte {error.start + 1})", ExitCode.USAGE) from None
    try:
        tests = loader.load(file, text)
    except DefinitionRejected as rejected:
        return RunFile(str(file), text, rejected)
    outcomes = tuple(run_case(tests, case, rules) for case in tests.cases if _is_chosen(tests, case, only))
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


def _rejected(files: list[RunFile]) -> dict[str, str]:
    return {file.name: _mistakes(file) for file in files if file.rejected is not None}


def _mistakes(file: RunFile) -> str:
    assert file.rejected is not None
    return "\n".join(render(each, file.text, file.name) for each in file.rejected.diagnostics)


def _show(files: list[RunFile], output: str) -> None:
    if output == "name":
        for file in files:
            for outcome in file.outcomes:
                if not outcome.passed:
                    typer.echo(printable(f"{file.name}::{outcome.case.name}"))
    elif output != "table":
        show_document(output, [document for file in files for document in _documents(file)])
    else:
        for line in _lines(files):
            typer.echo(printable(line))


def _lines(files: list[RunFile]) -> Iterator[str]:
    for file in files:
        yield file.name
        if file.rejected is not None:
            yield _mistakes(file)
        for outcome in file.outcomes:
            yield f"  {_SIGNS[outcome.passed]} {outcome.case.name}  {_summary(outcome)}"
            yield from (render_finding(each) for each in outcome.failures)
            yield from (render_finding(each, "warning") for each in outcome.warnings)
        yield from (render_finding(each, "warning") for each in file.warnings)
    outcomes = [outcome for file in files for outcome in file.outcomes]
    passed = sum(outcome.passed for outcome in outcomes)
    rejected = sum(file.rejected is not None for file in files)
    counts = [f"{passed} passed"] if outcomes else []
    counts += [f"{len(outcomes) - passed} failed"] if passed < len(outcomes) else []
    counts += [f"{rejected} with mistakes"] if rejected else []
    yield f"{', '.join(counts) or '0 tests'} in {1000 * sum(each.seconds for each in outcomes):.1f} ms"


def _summary(outcome: Outcome) -> str:
    calls = len(outcome.record.calls)
    took = shown_duration(outcome.record.took_ms)
    return f"{calls} call{'' if calls == 1 else 's'}, {took} of virtual time"


def _documents(file: RunFile) -> Iterator[dict[str, Any]]:
    if file.rejected is not None:
        yield {
            "file": file.name,
            "outcome": "mistakes",
            "mistakes": [
                {"line": each.span.line, "column": each.span.column, "id": each.id, "message": each.message}
                | ({"hint": each.hint} if each.hint else {})
                for each in file.rejected.diagnostics
            ],
        }
    for outcome in file.outcomes:
        execution = outcome.record.execution
        yield {
            "file": file.name,
            "name": outcome.case.name,
            "line": outcome.case.span.line,
            "outcome": "passed" if outcome.passed else "failed",
            "status": str(execution.status),
            "error": execution.error,
            "output": execution.output,
            "path": outcome.record.entered,
            "calls": len(outcome.record.calls),
            "tookSeconds": outcome.record.took_ms / 1000,
            "failures": [_finding(each) for each in outcome.failures],
            "warnings": [_finding(each) for each in outcome.warnings],
        }


def _finding(finding: Finding) -> dict[str, Any]:
    document: dict[str, Any] = {
        "message": finding.message,
        "line": finding.place.span.line,
        "column": finding.place.span.column,
    }
    if finding.details:
        document["details"] = list(finding.details)
    if finding.definition is not None:
        document["definition"] = located(finding.definition)
    if finding.hint:
        document["hint"] = finding.hint
    return document
