"""What is expected at a place of a text that is being written, and so is often no YAML at this moment.

A mark is put in the place of the word at the cursor, so that the text can be read, and is looked for in its values. If
the text cannot be read because of something after the cursor, what comes after its line is left out.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from flowserver.base.limits import Limits
from flowserver.editing.files import EditedFile
from flowserver.editing.outline import Outline
from flowserver.editing.texts import Extent, Text
from flowserver.editing.tree import Spot, Tree, read_tree
from flowserver.language.nodes import Entry, MapNode, ScalarNode

MARK: Final = "flowserver0cursor0mark"
_WORD: Final = re.compile(r"[\w.$\[\]*-]*\Z")
_REST_OF_WORD: Final = re.compile(r"[\w.$*-]*")
_OPENING: Final = {"{": "}", "[": "]"}
_QUOTES: Final = "'\""


@dataclass(frozen=True, slots=True)
class Cursor:
    """The place of the cursor: a key of a mapping, or a value; `word` is what is written of it, `extent` where."""

    spot: Spot
    """The mapping of the key, or the value."""
    key: Entry | None
    tree: Tree
    word: str
    extent: Extent
    is_quoted: bool = False

    @property
    def outline(self) -> Outline:
        """The steps of the text as it could be read."""
        return Outline(self.tree.root)


def cursor_at(file: EditedFile, offset: int) -> Cursor | None:
    """What is expected at an offset; None if that cannot be seen."""
    text = file.text
    if len(text.text.encode("utf-8", "surrogatepass")) > file.limits.definition_bytes_max:
        return None
    line = text.line_at(offset)
    before = text.text[line.start : offset]
    begun = _WORD.search(before)
    word = begun[0].lstrip("[") if begun else ""
    if before.rstrip(" ").endswith("-") and word == "-":
        word = ""
    start = offset - len(word)
    rest = _REST_OF_WORD.match(text.text, offset)
    end = offset if rest is None else min(rest.end(), line.end)
    quote = text.text[start - 1 : start] if text.text[start - 1 : start] in _QUOTES else ""
    for repaired in _repairs(text, Extent(start, end), line, quote):
        found = _find(repaired, file, file.limits)
        if found is not None:
            return Cursor(found[0], found[1], found[2], word, Extent(start, end), bool(quote))
    return None


def _repairs(text: Text, word: Extent, line: Extent, quote: str) -> Iterator[str]:
    """The text with the mark, in the ways in which it may be YAML."""
    before, after = text.text[: word.start], text.text[word.end : line.end]
    rest = text.text[line.end :]
    closing = quote if quote and quote not in after else ""
    is_key = after.lstrip().startswith(":") and not quote
    for mark in (MARK,) if is_key else (f"{MARK}: x", MARK):
        yield before + mark + closing + after + rest
        closed = before + mark + closing + after + _closers(before + after)
        yield closed + rest
        yield closed
        yield before + mark + quote + _closers(before)


def _closers(text: str) -> str:
    """The brackets that close those of the last block that are open."""
    open_brackets: list[str] = []
    for character in text[text.rfind("\n") + 1 :]:
        if character in _OPENING:
            open_brackets.append(_OPENING[character])
        elif open_brackets and character == open_brackets[-1]:
            open_brackets.pop()
    return "".join(reversed(open_brackets))


def _find(repaired: str, file: EditedFile, limits: Limits) -> tuple[Spot, Entry | None, Tree] | None:
    """The mark in the values of a text, where something can be expected."""
    tree = read_tree(Text(repaired), file.grammar, limits)
    for spot in () if tree is None else tree.spots():
        assert tree is not None
        if isinstance(spot.node, MapNode) and spot.kind is not None:
            for entry in spot.node.entries:
                if MARK in entry.name:
                    return spot, entry, tree
        elif isinstance(spot.node, ScalarNode) and MARK in spot.node.text and spot.around is not None:
            return spot, None, tree
    return None
