"""What `flowserver sim` prints: a line for each flow, broken properties with their places and stories; or documents."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import typer

from flowserver.base.durations import shown_duration
from flowserver.cli.document_output import show_document
from flowserver.cli.finding_output import counted
from flowserver.cli.printable import printable
from flowserver.cli.tables import aligned
from flowserver.flowtests.cases import Place
from flowserver.flowtests.findings import located
from flowserver.flowtests.simulating.fault_coverage import FaultCoverage
from flowserver.flowtests.simulating.faults import Fault
from flowserver.flowtests.simulating.simulation import Failure, Simulation
from flowserver.flowtests.simulating.story import StoryLine
from flowserver.flowtests.step_paths import step_at
from flowserver.language.diagnostics import DefinitionRejected, excerpt, render

NOT_MET_MAX: Final = 5
"""Tasks that are named because a fault did not meet them."""


@dataclass(frozen=True, slots=True)
class SimulatedFile:
    """A flow that was simulated, or whose text, or that of its test file, has mistakes."""

    name: str
    text: str
    rejected: DefinitionRejected | None
    simulation: Simulation | None = None

    @property
    def mistakes(self) -> str:
        """Its mistakes as text; "" if it has none."""
        found = () if self.rejected is None else self.rejected.diagnostics
        return "\n".join(render(each, self.text, self.name) for each in found)


def show(files: Sequence[SimulatedFile], output: str, run: int | None) -> None:
    """Print what the simulations have found; with `run` the story of the run of that number."""
    if output == "name":
        for file in files:
            if file.simulation is not None and file.simulation.errors:
                typer.echo(printable(file.name))
    elif output != "table":
        show_document(output, [_document(file) for file in files])
    else:
        for file in files:
            for line in _lines(file, run):
                typer.echo(printable(line))


def _lines(file: SimulatedFile, run: int | None) -> Iterator[str]:
    if file.simulation is None:
        yield file.mistakes
        return
    simulation = file.simulation
    for failure in simulation.failures:
        yield from _failure_lines(file.name, simulation, failure, is_repeated=run is not None)
    if run is not None:
        yield f"  run {run}:"
        yield from _story_lines(simulation.story)
    yield f"{file.name}: {_summary(simulation)}"
    yield from _coverage_lines(simulation.coverage)
    if simulation.undone_by:
        pairs = ", ".join(f"{done} by {undo}" for done, undo in simulation.undone_by)
        yield f"  checked to be undone, by their names: {pairs}"


def _coverage_lines(coverage: FaultCoverage | None) -> Iterator[str]:
    """Which tasks met which kinds of faults."""
    if coverage is None or not (coverage.possible or coverage.not_called):
        return
    missing = coverage.missing
    complete = len(coverage.possible) - len(missing)
    left = [f"{path} met no {', '.join(kinds)}" for path, kinds in missing.items()]
    left += [f"no run calls {path}" for path in coverage.not_called]
    shown = left[:NOT_MET_MAX] + ([f"and {len(left) - NOT_MET_MAX} others"] if len(left) > NOT_MET_MAX else [])
    total = len(coverage.possible) + len(coverage.not_called)
    yield "; ".join([f"  {complete} of {counted(total, 'task')} met each kind of fault", *shown])


def _failure_lines(name: str, simulation: Simulation, failure: Failure, *, is_repeated: bool) -> Iterator[str]:
    property_place = None if failure.span is None else simulation.file.place(failure.span)
    place = place_of(simulation, failure) or property_place
    where = located(place) if place is not None else name
    yield f"{where}: {failure.severity}[{failure.property}]: {failure.message}"
    if place is not None:
        yield from excerpt(place.text, place.span)
    if property_place is not None and place != property_place:
        yield f"  {located(property_place)}: the property in the test file"
    if not is_repeated:
        yield f"  {_often(failure, simulation)}; the shortest:"
        yield from _story_lines(failure.story)


def place_of(simulation: Simulation, failure: Failure) -> Place | None:
    """The step that a failure is about, in the definition; None if it is about none."""
    source = simulation.file.source
    step = None if failure.path is None else step_at(source.flow, failure.path)
    return None if step is None else source.place(step.span)


def _often(failure: Failure, simulation: Simulation) -> str:
    if failure.count == 1:
        return f"run {failure.first} of {simulation.runs} breaks it"
    return f"{failure.count} of {simulation.runs} runs break it, run {failure.first} first"


def _story_lines(story: Sequence[StoryLine]) -> Iterator[str]:
    rows = [(shown_duration(each.after_ms), f"line {each.line}" if each.line else "", each.text) for each in story]
    yield from (f"    {line}" for line in aligned(rows).splitlines())


def _summary(simulation: Simulation) -> str:
    ends = ", ".join(f"{count:,} {status}" for status, count in simulation.statuses.most_common())
    faults = simulation.faults.total()
    errors = len(simulation.errors)
    warnings = len(simulation.failures) - errors
    found = [f"{errors} broken" if errors else "no property broken"]
    found += [counted(warnings, "warning")] if warnings else []
    found += [f"{simulation.cut_short:,} runs too long to follow"] if simulation.cut_short else []
    runs = (
        f"{simulation.runs:,} run{'' if simulation.runs == 1 else 's'} with {faults:,} faults, seed {simulation.seed}"
    )
    return f"{', '.join(found)}; {runs}: {ends}"


def _document(file: SimulatedFile) -> dict[str, Any]:
    simulation = file.simulation
    if simulation is None:
        diagnostics = () if file.rejected is None else file.rejected.diagnostics
        mistakes = [
            {"line": each.span.line, "column": each.span.column, "id": each.id, "message": each.message}
            for each in diagnostics
        ]
        return {"file": file.name, "mistakes": mistakes}
    document: dict[str, Any] = {
        "file": file.name,
        "seed": simulation.seed,
        "runs": simulation.runs,
        "statuses": dict(simulation.statuses),
        "faults": dict(simulation.faults),
        "tooLong": simulation.cut_short,
        "undoneBy": [{"step": done, "by": undo} for done, undo in simulation.undone_by],
        "failures": [_failure_document(simulation, each) for each in simulation.failures],
    }
    if simulation.coverage is not None:
        document["notMet"] = {
            path: [str(kind) for kind in kinds] for path, kinds in simulation.coverage.missing.items()
        }
        document["notCalled"] = simulation.coverage.not_called
    return document | ({"story": _story_document(simulation.story)} if simulation.story else {})


def _failure_document(simulation: Simulation, failure: Failure) -> dict[str, Any]:
    place = place_of(simulation, failure)
    return {
        "property": failure.property,
        "severity": str(failure.severity),
        "message": failure.message,
        "step": failure.path,
        "place": None if place is None else located(place),
        "count": failure.count,
        "firstRun": failure.first,
        "input": failure.run.case.input,
        "faults": [_fault_document(each) for each in dict.fromkeys(failure.run.calls.faults)],
        "story": _story_document(failure.story),
    }


def _fault_document(fault: Fault) -> dict[str, Any]:
    return {
        "fault": str(fault.kind),
        "step": fault.place.path,
        "entry": fault.place.entry,
        "call": fault.place.call,
        "detail": str(fault.detail),
        "times": fault.times,
    }


def _story_document(story: Sequence[StoryLine]) -> list[dict[str, Any]]:
    return [{"seconds": each.after_ms / 1000, "line": each.line or None, "text": each.text} for each in story]
