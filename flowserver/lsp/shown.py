"""What the protocol shows, made of what `flowserver.editing` finds."""

from pathlib import Path
from typing import Final

from lsprotocol import types

import flowserver
from flowserver.analysis.rules import RULES
from flowserver.editing.findings import Mark
from flowserver.editing.texts import Extent, Position, Text, Units
from flowserver.language.diagnostics import Severity

SOURCE: Final = "flowserver"

_DOCS: Final = Path(flowserver.__file__).parents[1] / "docs" / "reference"
"""The pages of a checkout; a wheel has none."""

_SEVERITIES: Final = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
}
_NEVER_RUNS: Final = "unreachable-step"


class Shown:
    """Places of one text, in the units of an editor."""

    def __init__(self, text: Text, units: Units) -> None:
        self._text = text
        self._units = units

    def position(self, offset: int) -> types.Position:
        """A place."""
        line, character = self._text.position_of(offset, self._units)
        return types.Position(line, character)

    def range(self, extent: Extent) -> types.Range:
        """A part of the text."""
        return types.Range(self.position(extent.start), self.position(extent.end))

    def offset(self, position: types.Position) -> int:
        """The offset of a place."""
        return self._text.offset_at(Position(position.line, position.character), self._units)

    def diagnostic(self, mark: Mark, uri: str) -> types.Diagnostic:
        """A finding."""
        found = mark.found
        way = [
            types.DiagnosticRelatedInformation(types.Location(uri, self.range(extent)), note)
            for extent, note in mark.way
        ]
        return types.Diagnostic(
            range=self.range(mark.extent),
            message=mark.message,
            severity=_SEVERITIES[found.severity],
            code=found.id,
            code_description=_page_of(found.id),
            source=SOURCE,
            tags=[types.DiagnosticTag.Unnecessary] if found.id == _NEVER_RUNS else None,
            related_information=way or None,
        )


def _page_of(id: str) -> types.CodeDescription | None:
    page = _DOCS / ("rules.md" if id in RULES else "diagnostics.md")
    return types.CodeDescription(page.as_uri()) if page.is_file() else None
