"""What `flowserver test` prints: a line for each test, findings with their places, coverage; or documents."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import typer

from flowserver.base.durations import shown_duration
from flowserver.cli.document_output import show_document
from flowserver.cli.printable import printable
from flowserver.cli.tables import aligned
from flowserver.flowtests.cases import Place
from flowserver.flowtests.coverage import FileCoverage, percent_of
from flowserver.flowtests.coverage_points import Kind
from flowserver.flowtests.findings import Finding, located, render_finding
from flowserver.flowtests.loading import Stamp
from flowserver.flowtests.outcomes import Outcome
from flowserver.language.diagnostics import DefinitionRejected, render
from flowserver.language.graph import Span

_SIGNS: Final = {True: "✔", False: "✘"}


@dataclass(frozen=True, slots=True)
class RunFile:
    """A file whose tests have run, or whose text has mistakes."""

    name: str
    text: str
    rejected: DefinitionRejected | None
    outcomes: tuple[Outcome, ...] = ()
    warnings: tuple[Finding, ...] = ()
    made_from: Mapping[Path, Stamp] = field(default_factory=dict)
    """The file itself and those that it names, as they were before they were read."""

    @property
    def mistakes(self) -> str:
        """Its mistakes as text; "" if it has none."""
        found = () if self.rejected is None else self.rejected.diagnostics
        return "\n".join(render(each, self.text, self.name) for each in found)


def show(files: Sequence[RunFile], coverage: Sequence[FileCoverage] | None, output: str) -> None:
    """Print what has come of the tests, and the coverage if it was measured."""
    if output == "name":
        for file in files:
            for outcome in file.outcomes:
                if not outcome.passed:
                    typer.echo(printable(f"{file.name}::{outcome.case.name}"))
    elif output != "table":
        tests = [document for file in files for document in _documents(file)]
        measured = None if coverage is None else [_coverage_document(each) for each in coverage]
        show_document(output, tests if measured is None else {"tests": tests, "coverage": measured})
    else:
        for line in _lines(files):
            typer.echo(printable(line))
        for line in () if coverage is None else _coverage_lines(coverage):
            typer.echo(printable(line))


def _lines(files: Sequence[RunFile]) -> Iterator[str]:
    for file in files:
        yield file.name
        if file.rejected is not None:
            yield file.mistakes
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
    has_ended = outcome.record.execution.stopped_at is not None
    time = f"{shown_duration(outcome.record.took_ms)} of virtual time" if has_ended else "not run to its end"
    return f"{calls} call{'' if calls == 1 else 's'}, {time}"


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
            "seconds": round(outcome.seconds, 6),
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


def _coverage_lines(coverage: Sequence[FileCoverage]) -> Iterator[str]:
    yield ""
    if not coverage:
        yield "no coverage: no definition was tested"
        return
    rows = [("COVERAGE", *(kind.upper() for kind in Kind), "")]
    for file in coverage:
        counts = ("-" if not total else f"{reached}/{total}" for reached, total in map(file.reached, Kind))
        rows.append((str(file.source.file), *counts, f"{percent_of([file]):.0f} %"))
    yield aligned(rows)
    for file in coverage:
        for span, text in _unreached(file):
            yield f"{_located(file, span)}: not reached: {text}"
        for span, text in file.nulls:
            yield f"{_located(file, span)}: null: {text}"


def _unreached(file: FileCoverage) -> Iterator[tuple[Span, str]]:
    return ((point.span, point.title) for point, count in file.counts if not count)


def _located(file: FileCoverage, span: Span) -> str:
    return located(Place(str(file.source.file), file.source.text, span))


def _coverage_document(file: FileCoverage) -> dict[str, Any]:
    return {
        "file": str(file.source.file),
        "percent": round(percent_of([file]), 2),
        **{str(kind): dict(zip(("reached", "total"), file.reached(kind), strict=True)) for kind in Kind},
        "notReached": [{"line": span.line, "column": span.column, "what": text} for span, text in _unreached(file)],
        "nulls": [{"line": span.line, "column": span.column, "what": text} for span, text in file.nulls],
    }
