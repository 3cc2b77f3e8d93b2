"""What a test run finds: failures, and warnings of mocks without use, with their places."""

from collections.abc import Iterator
from dataclasses import dataclass

from flowserver.flowtests.cases import Place
from flowserver.language.diagnostics import excerpt


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence, its place in the test file and, where there is one, the place in the definition it is about."""

    message: str
    place: Place
    definition: Place | None = None
    hint: str | None = None
    details: tuple[str, ...] = ()
    """Further lines."""


class CaseStopped(Exception):
    """The case cannot go on."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


def render_finding(finding: Finding, severity: str = "failed") -> str:
    """The finding as plain text: place, sentence, the lines of the test file and of the definition."""
    return "\n".join(_lines(finding, severity))


def _lines(finding: Finding, severity: str) -> Iterator[str]:
    place = finding.place
    yield f"{located(place)}: {severity}: {finding.message}"
    yield from excerpt(place.text, place.span)
    yield from (f"      {line}" for line in finding.details)
    if finding.definition is not None:
        yield f"  {located(finding.definition)}: the step in the definition"
        yield from excerpt(finding.definition.text, finding.definition.span)
    if finding.hint:
        yield f"  hint: {finding.hint}"


def located(place: Place) -> str:
    """`FILE:LINE:COLUMN`."""
    return f"{place.file}:{place.span.line}:{place.span.column}"
