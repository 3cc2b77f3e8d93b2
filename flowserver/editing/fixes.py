"""Changes that an editor offers for a finding: what the hint says, or a comment that suppresses it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from flowserver.analysis.rules import RULES
from flowserver.editing.edits import Edit
from flowserver.editing.findings import Mark
from flowserver.editing.texts import Extent, Text
from flowserver.language.diagnostics import DIAGNOSTICS, Severity
from flowserver.language.hints import Hint

_MEANT: Final = re.compile(r"(?:did you mean|its path is) `([^`]+)`")
_WITHOUT_QUOTES: Final = re.compile(r"write (?:it|(true|false),?) without quotes")
_QUOTED: Final = re.compile("`([^`]+)`")
_WORD: Final = re.compile(r"""([\w.$-]+)|'[\w.$-]+'|"[\w.$-]+\"""")
_NOT_SUPPRESSED: Final = ("unused-ignore", "more-warnings")

REASON: Final = "TODO say why"
"""What the comment gives as its reason until you write a better one."""


@dataclass(frozen=True, slots=True)
class Fix:
    """A change for one finding; `is_preferred` if it is most probably right."""

    title: str
    mark: Mark
    edit: Edit
    is_preferred: bool = False


def fixes_of(mark: Mark, text: Text, *, is_definition: bool = True) -> Iterator[Fix]:
    """What could be done about a finding; comments suppress findings of definitions alone."""
    hint = mark.found.hint or ""
    raw = text.text[mark.extent.start : mark.extent.end]
    meant = _MEANT.search(hint) or _MEANT.search(mark.found.message)
    if meant and (extent := _misspelt(mark, raw)):
        yield Fix(f"Change to `{meant[1]}`", mark, Edit(extent, meant[1]), is_preferred=True)
    if hint == Hint.IN_QUOTES and raw and not raw.startswith(("'", '"')):
        quoted = f'"{raw}"' if _is_json(text) else "'" + raw.replace("'", "''") + "'"
        yield Fix("Write it in quotes", mark, Edit(mark.extent, quoted), is_preferred=True)
    if (plain := _WITHOUT_QUOTES.search(hint)) and raw[:1] in ("'", '"'):
        yield Fix("Write it without quotes", mark, Edit(mark.extent, plain[1] or raw[1:-1]), is_preferred=True)
    if mark.found.id == "unused-ignore":
        yield Fix("Remove the comment", mark, Edit(_comment(mark, text), ""))
    elif is_definition and _can_be_suppressed(mark) and not _is_json(text):
        yield _suppression(mark, text)


def _is_json(text: Text) -> bool:
    """Whether it may be JSON, which has no comments, and no other quotes than `"`."""
    return text.text.lstrip("\ufeff \t\r\n").startswith("{")


def _misspelt(mark: Mark, raw: str) -> Extent | None:
    """The place of the word that is misspelt: it is the first that the message quotes, or all that the place has."""
    quoted = _QUOTED.search(mark.found.message)
    start = mark.extent.start
    if quoted and raw.count(quoted[1]) == 1:
        at = start + raw.index(quoted[1])
        return Extent(at, at + len(quoted[1]))
    if not _WORD.fullmatch(raw):
        return None
    inset = 1 if raw[0] in ("'", '"') else 0
    return Extent(start + inset, mark.extent.end - inset)


def _can_be_suppressed(mark: Mark) -> bool:
    found = mark.found
    if found.id in _NOT_SUPPRESSED:
        return False
    return found.id in RULES or (found.id in DIAGNOSTICS and found.severity is Severity.WARNING)


def _suppression(mark: Mark, text: Text) -> Fix:
    """A comment above the line, which holds for it; above the first line of a step, for the whole step."""
    line = text.line_at(mark.extent.start)
    content = text.text[line.start : line.end]
    indent = content[: len(content) - len(content.lstrip(" "))]
    comment = f"{indent}# flowserver: ignore {mark.found.id} {REASON}\n"
    return Fix(f"Ignore `{mark.found.id}` here", mark, Edit(Extent(line.start, line.start), comment))


def _comment(mark: Mark, text: Text) -> Extent:
    """The comment with the blanks before it; its whole line if there is nothing else."""
    line = text.line_at(mark.extent.start)
    before = text.text[line.start : mark.extent.start]
    if before.strip():
        return Extent(line.start + len(before.rstrip()), line.end)
    after = text.text[line.end : line.end + 2]
    return Extent(line.start, line.end + (2 if after == "\r\n" else min(1, len(after))))
