"""Findings of a file with their places in its text."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from flowserver.analysis.rules import Finding
from flowserver.editing.files import Definition, FlowTest
from flowserver.editing.texts import Extent, Text
from flowserver.flowtests.reading import Referents, read_test_file
from flowserver.language.diagnostics import DefinitionRejected, Diagnostic


@dataclass(frozen=True, slots=True)
class Mark:
    """A finding and where it is; `way` is a way through the flow that shows it."""

    found: Diagnostic
    extent: Extent
    way: tuple[tuple[Extent, str], ...] = ()

    @property
    def message(self) -> str:
        """The finding and its hint."""
        return self.found.message if self.found.hint is None else f"{self.found.message}\n{self.found.hint}"


def marks_of_definition(file: Definition) -> Iterator[Mark]:
    """What `flowserver validate` and `flowserver prove` find."""
    for found in file.proof.findings:
        yield _mark(found, file.text)


def marks_of_flow_test(file: FlowTest, path: Path, referents: Referents) -> Iterator[Mark]:
    """The mistakes of a flow test file."""
    try:
        read_test_file(path, file.text.text, file.limits, referents)
    except DefinitionRejected as rejected:
        for found in rejected.diagnostics:
            yield _mark(found, file.text)


def _mark(found: Diagnostic, text: Text) -> Mark:
    extent = text.extent_of(found.span)
    if extent.start == extent.end:  # behind the last line break, say: editors show no empty place
        extent = Extent(max(0, extent.start - 1), extent.end)
    steps = found.path if isinstance(found, Finding) else ()
    way = ((text.offset_of(step.line, step.column), step) for step in steps)
    return Mark(found, extent, tuple((Extent(at, at + len(step.name)), f"{step.name} {step.note}") for at, step in way))
