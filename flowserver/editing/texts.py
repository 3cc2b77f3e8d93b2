"""Places in a text: offsets, the lines and columns of findings, and the positions of editors.

Findings count lines as YAML does and columns in characters, from 1, without a byte order mark. Editors count lines by
`\\n`, `\\r\\n` and `\\r` alone and columns in units of an encoding, from 0. Here both become offsets in characters.
"""

import re
from bisect import bisect_right
from enum import StrEnum
from typing import Final, NamedTuple

from flowserver.language.diagnostics import LINE_BREAK
from flowserver.language.graph import Span

_EDITOR_BREAK: Final = re.compile("\r\n|[\r\n]")
_BOM: Final = "\ufeff"


class Units(StrEnum):
    """The units in which an editor counts columns."""

    UTF_8 = "utf-8"
    UTF_16 = "utf-16"
    UTF_32 = "utf-32"

    def width(self, text: str) -> int:
        """How many units a text has."""
        match self:
            case Units.UTF_8:
                return len(text.encode("utf-8", "surrogatepass"))
            case Units.UTF_16:
                return len(text.encode("utf-16-le", "surrogatepass")) // 2
        return len(text)


class Position(NamedTuple):
    """A place as editors write it, from 0."""

    line: int
    character: int


class Extent(NamedTuple):
    """A part of a text; the end is exclusive."""

    start: int
    end: int

    def holds(self, offset: int) -> bool:
        """Whether the offset is in it, or right after it."""
        return self.start <= offset <= self.end


class Text:
    """A text, with its lines found once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._first = len(_BOM) if text.startswith(_BOM) else 0
        self._yaml_lines = [self._first, *(found.end() for found in LINE_BREAK.finditer(text, self._first))]
        self._lines = [0, *(found.end() for found in _EDITOR_BREAK.finditer(text))]

    def offset_of(self, line: int, column: int) -> int:
        """The offset of a place as findings write it; of the end for a place behind it."""
        if line > len(self._yaml_lines):
            return len(self.text)
        return min(self._yaml_lines[line - 1] + column - 1, len(self.text))

    def extent_of(self, span: Span) -> Extent:
        """Where a span is."""
        start = self.offset_of(span.line, span.column)
        return Extent(start, max(start, self.offset_of(span.end_line, span.end_column)))

    def position_of(self, offset: int, units: Units) -> Position:
        """The offset as an editor writes it."""
        line = bisect_right(self._lines, offset) - 1
        return Position(line, units.width(self.text[self._lines[line] : offset]))

    def offset_at(self, position: Position, units: Units) -> int:
        """The offset of an editor's position; of the end of its line, or of the text, for one behind it."""
        if position.line >= len(self._lines):
            return len(self.text)
        line = self.line_at(self._lines[max(0, position.line)])
        text = self.text[line.start : line.end]
        if units is Units.UTF_32:
            return line.start + min(max(0, position.character), len(text))
        left = position.character
        for index, character in enumerate(text):
            if left <= 0:
                return line.start + index
            left -= units.width(character)
        return line.end

    def line_at(self, offset: int) -> Extent:
        """The line of an offset, as editors count lines, without its break."""
        number = bisect_right(self._lines, offset) - 1
        start = self._lines[number]
        end = self._lines[number + 1] if number + 1 < len(self._lines) else len(self.text)
        return Extent(start, start + len(self.text[start:end].rstrip("\r\n")))


class Moves:
    """Where the characters of an older text are in a newer one, if the change between them is one place."""

    def __init__(self, older: str, newer: str) -> None:
        self._before = _common(older, newer)
        room = min(len(older), len(newer)) - self._before
        self._after = min(room, _common(older[::-1], newer[::-1]))
        self._older, self._newer = len(older), len(newer)

    def to_newer(self, offset: int) -> int:
        """The offset in the newer text; the begin of the change for one inside it."""
        return _moved(offset, self._before, self._after, self._older, self._newer)

    def to_older(self, offset: int) -> int:
        """The offset in the older text."""
        return _moved(offset, self._before, self._after, self._newer, self._older)


def _moved(offset: int, before: int, after: int, here: int, there: int) -> int:
    if offset <= before:
        return offset
    return offset + there - here if offset >= here - after else before


def _common(one: str, other: str) -> int:
    """How many characters both begin with, by halving."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
