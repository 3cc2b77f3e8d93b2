"""The next step for a text that is no YAML: the first of some corrections after which more of it can be read.

Knows the mistakes of people who type or copy definitions: brackets without quotes, lines that are indented wrongly,
several attributes in one line.
"""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

import yaml

from flowserver.language.check_cost import Work
from flowserver.language.diagnostics import shown
from flowserver.language.fields import KINDS
from flowserver.language.hints import Hint

TRIES_MAX: Final = 10
"""Corrections of one text that are tried."""

LINE_MAX: Final = 1_000
"""Longest line for which corrections are looked for, in characters: the patterns take quadratic time."""

_ABOVE_MAX: Final = 30  # lines above the mistake whose indentation is tried

_KNOWN: Final = frozenset(name for kind in KINDS for name in kind.fields)
_FREE: Final = frozenset(("cause", "condition", "error", "source"))  # they hold texts with anything in them
_KEY: Final = re.compile(r"(?P<indent> *(?:- +)*)(?P<key>[\w.-]+):(?= |$)")
_INNER: Final = re.compile(r"(?P<blanks>[ ,]+)(?P<key>[A-Za-z]+)$")
_TIGHT: Final = re.compile(r" *(?:- +)*[A-Za-z]+:(?=[^\s:])")
_IN_FLOW: Final = re.compile(
    r"(?:: +|[,\[] *(?=\$))(?P<value>[^\s\"'\[{,}\]](?:\[[^\]]*\]|\{[^}]*\}|[^,{}\[\]])*[^\s,{}]?)"
)
_IN_BLOCK: Final = re.compile(r"^ *+(?:(?:- +)++(?:[\w.-]+: +)?+|[\w.-]+: +)(?P<value>[^\s\"'{\[].*?) *(?= #|$)")
_QUOTED: Final = re.compile(r""""(?:[^"\\]|\\.)*"|'[^']*'""")
_CLOSING: Final = {"{": "}", "[": "]"}


class _Line(NamedTuple):
    number: int
    start: int
    text: str

    @property
    def indent(self) -> int:
        return len(self.text) - len(self.text.lstrip(" "))


class _Try(NamedTuple):
    """A correction: what to put in place of the text from `start` to `end`, and the hint that says so."""

    start: int
    end: int
    put: str
    hint: str


def syntax_hint(text: str, offset: int, work: Work, parser: Any) -> str | None:
    """What to do about the mistake at an offset; None if no correction that is known here helps."""
    if text[offset : offset + 1] == "\t":
        return Hint.TABS.of()
    for each in islice(_tries(text, offset), TRIES_MAX):
        fixed = text[: each.start] + each.put + text[each.end :]
        if _unread(fixed, work, parser) < len(text) - offset:
            return each.hint
    return None


def _unread(text: str, work: Work, parser: Any) -> int:
    """How many characters are left where the text stops being YAML; less than 0 if all of it is."""
    try:
        for _ in yaml.parse(text, Loader=parser):
            work.spend(1)
    except yaml.MarkedYAMLError as error:
        mark: Any = error.problem_mark
        return len(text) - int(mark.index)
    return -1


def _tries(text: str, offset: int) -> Iterator[_Try]:
    lines = _lines(text)
    at = max(index for index, line in enumerate(lines) if line.start <= min(offset, lines[-1].start))
    line = lines[at]
    above = [each for each in reversed(lines[max(0, at - _ABOVE_MAX) : at]) if _is_content(each)]
    if max(len(each.text) for each in (line, *above)) > LINE_MAX:
        return
    if above and (tight := _TIGHT.match(above[0].text)):
        put = tight[0].lstrip() + " …"
        yield _insert(above[0].start + tight.end(), " ", Hint.BLANK_AFTER_COLON.of(text=shown(put)))
    yield from _own_line(line, offset)
    yield from _unbalanced((line, *above[:1]))
    yield from _in_quotes(line, offset)
    yield from _indented(line, above, offset)


def _lines(text: str) -> list[_Line]:
    """The lines without their ends. Only `\\n` counts: other line ends are rare, and a hint is lost at worst."""
    found: list[_Line] = []
    start = 0
    for number, line in enumerate(text.split("\n"), start=1):
        found.append(_Line(number, start, line.rstrip("\r")))
        start += len(line) + 1
    return found


def _is_content(line: _Line) -> bool:
    return bool(line.text.strip()) and not line.text.lstrip().startswith("#")


def _insert(at: int, put: str, hint: str) -> _Try:
    return _Try(at, at, put, hint)


def _own_line(line: _Line, offset: int) -> Iterator[_Try]:
    """`- type: pass name: a` and `steps: - type: pass`."""
    first = _KEY.match(line.text)
    if first is None:
        return
    indent = len(first["indent"])
    before = line.text[: offset - line.start]
    if line.text.startswith("- ", len(before)) and before.rstrip().endswith(":"):
        put = "\n" + indent * " "
        yield _Try(line.start + len(before.rstrip()), offset, put, Hint.LIST_BELOW.of(text=shown(first["key"] + ":")))
    inner = _INNER.search(before, first.end())
    if inner and inner["key"] in _KNOWN and first["key"] in _KNOWN - _FREE:
        hint = Hint.OWN_LINE.of(name=inner["key"], other=first["key"])
        yield _Try(line.start + inner.start(), line.start + inner.start("key"), "\n" + indent * " ", hint)


def _in_quotes(line: _Line, offset: int) -> Iterator[_Try]:
    for pattern, has_brackets in ((_IN_FLOW, True), (_IN_BLOCK, False)):
        for found in pattern.finditer(line.text):
            start, end = found.span("value")
            if not start <= offset - line.start <= end:
                continue
            quoted = "'" + found["value"].rstrip().replace("'", "''") + "'"
            hint = Hint.QUOTE_BRACKETS if has_brackets and set("{[") & set(found["value"]) else Hint.QUOTE
            length = len(found["value"].rstrip())
            yield _Try(line.start + start, line.start + start + length, quoted, hint.of(text=shown(quoted)))


def _indented(line: _Line, above: list[_Line], offset: int) -> Iterator[_Try]:
    """A line, or the first line of the text, that is indented unlike those with which it belongs."""
    key = _KEY.match(line.text)
    if not above or (key and offset - line.start > key.end()):
        return
    first = above[-1]
    if first.indent and not line.indent and line.text.strip():
        yield _Try(first.start, first.start + first.indent, "", Hint.NO_INDENT.of(line=first.number))
    is_item = line.text.lstrip().startswith("- ")
    tried = {line.indent}
    for other in above:
        named = _KEY.match(other.text)
        columns = [other.indent] if is_item == other.text.lstrip().startswith("- ") else []
        if named and not is_item:
            columns.insert(0, len(named["indent"]))
        for column in columns:
            if column in tried:
                continue
            tried.add(column)
            name = named["key"] if named and not is_item else "-"
            hint = Hint.INDENT.of(blanks=column, other=shown(name), line=other.number)
            if not column:
                hint = Hint.NO_INDENT.of(line=line.number)
            yield _Try(line.start, line.start + line.indent, column * " ", hint)


def _unbalanced(lines: tuple[_Line, ...]) -> Iterator[_Try]:
    """Brackets and quotes of a line that nothing closes, and brackets that close nothing."""
    for line in lines:
        plain = _QUOTED.sub(lambda found: "x" * len(found[0]), line.text)
        end = line.start + len(line.text.rstrip())
        for quote in ('"', "'"):
            if quote in plain:
                words = {"mark": shown(quote), "line": line.number, "closing": shown(quote)}
                hint = Hint.NOT_CLOSED.of(column=plain.index(quote) + 1, **words)
                yield _insert(line.start + len(line.text.rstrip("]} ")), quote, hint)
                yield _insert(end, quote, hint)
        opened: list[tuple[int, str]] = []
        for column, character in enumerate(plain, start=1):
            if character in _CLOSING:
                opened.append((column, character))
            elif character in _CLOSING.values() and not opened:
                at = line.start + column - 1
                yield _Try(at, at + 1, "", Hint.NOT_OPENED.of(mark=shown(character)))
            elif character in _CLOSING.values():
                if _CLOSING[opened[-1][1]] != character:
                    yield _closed(line, opened, line.start + column - 1, 1)
                opened.pop()
        if opened:
            yield _closed(line, opened, end, len(opened))


def _closed(line: _Line, opened: list[tuple[int, str]], at: int, count: int) -> _Try:
    """The last `count` brackets that are open, closed at an offset."""
    closing = "".join(_CLOSING[character] for _, character in reversed(opened[-count:]))
    column, mark = opened[-1]
    hint = Hint.NOT_CLOSED.of(mark=shown(mark), line=line.number, column=column, closing=shown(closing))
    return _insert(at, closing, hint)
