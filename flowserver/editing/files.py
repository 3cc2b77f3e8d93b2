"""Files that are being edited: definitions and flow tests, readable or not.

While a text is broken, such as in the middle of a word, what can be found in it is that of an earlier text that could
be read, with its places moved by the change since then. Everything is found when it is first asked for: a text that is
replaced at once costs nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Protocol, Self

from flowserver.analysis.proving import Proof, prove
from flowserver.base.limits import Limits
from flowserver.editing.facts import KnownStep, known_steps
from flowserver.editing.grammar import DEFINITION, FLOW_TEST, Grammar, attribute_of, text_of
from flowserver.editing.outline import Outline
from flowserver.editing.texts import Extent, Moves, Text
from flowserver.editing.tree import Found, Tree, read_tree
from flowserver.language.diagnostics import DefinitionRejected
from flowserver.language.graph import Span
from flowserver.language.nodes import Node
from flowserver.language.parser import parse


class EditedFile:
    """A text, its values, and those of an earlier text if it has none."""

    grammar: Grammar

    def __init__(self, text: str, limits: Limits, previous: Self | None = None) -> None:
        """`previous` is the file before the last change."""
        self.text = Text(text)
        self.limits = limits
        self._earlier = None if previous is None else previous._worth_keeping()

    def _worth_keeping(self) -> Self | None:
        """An earlier file that may be readable. It keeps none itself, so that never more than one is kept."""
        if "tree" not in self.__dict__:
            return self._earlier or self
        if self.tree is None:
            return self._earlier
        self._earlier = None
        return self

    @cached_property
    def tree(self) -> Tree | None:
        """The values; None if the text cannot be read."""
        return read_tree(self.text, self.grammar, self.limits)

    @cached_property
    def readable(self) -> Self | None:
        """This file, or an earlier one if this cannot be read."""
        return self if self.tree else self._earlier and self._earlier.readable

    @cached_property
    def moves(self) -> Moves:
        """From the text of the readable file to this one."""
        older = self.readable or self
        return Moves(older.text.text, self.text.text)

    def at(self, offset: int) -> Found | None:
        """What is at an offset of this text."""
        readable = self.readable
        if readable is None or readable.tree is None:
            return None
        return readable.tree.at(offset if readable is self else self.moves.to_older(offset))

    def extent(self, node: Node) -> Extent:
        """Where a value of the readable file is in this text."""
        return self.moved(node.span)

    def moved(self, span: Span) -> Extent:
        """Where a place of the readable file is in this text."""
        return self.moved_extent((self.readable or self).text.extent_of(span))

    def moved_extent(self, found: Extent) -> Extent:
        """Where an extent of the readable file is in this text."""
        if (self.readable or self) is self:
            return found
        start = self.moves.to_newer(found.start)
        return Extent(start, max(start, self.moves.to_newer(found.end)))


class Definition(EditedFile):
    """The text of a definition."""

    grammar = DEFINITION

    def __init__(
        self, text: str, limits: Limits, previous: "Definition | None" = None, *, lenient: bool = False
    ) -> None:
        """`lenient`: unknown attributes and empty ones are warnings."""
        super().__init__(text, limits, previous)
        self.lenient = lenient
        self._known_before: Mapping[str, KnownStep] = {}
        if previous is not None:
            self._known_before = previous.__dict__.get("known", previous._known_before)

    @cached_property
    def outline(self) -> Outline:
        """The steps of the readable file."""
        readable = self.readable
        tree = None if readable is None else readable.tree
        return Outline(None if tree is None else tree.root)

    @cached_property
    def proof(self) -> Proof:
        """All findings."""
        return prove(self.text.text, self.limits, lenient=self.lenient)

    def learn(self) -> None:
        """Find what is known of its data now, for a later text that is not valid."""
        assert self.known is not None

    @cached_property
    def known(self) -> Mapping[str, KnownStep]:
        """What is known of the data of its steps, by path; of the last valid definition if this is none."""
        try:
            return known_steps(parse(self.text.text, self.limits, allow_ref_tags=True, lenient=self.lenient).flow)
        except DefinitionRejected:
            return self._known_before


class FlowTest(EditedFile):
    """The text of a flow test file."""

    grammar = FLOW_TEST

    def __init__(self, text: str, limits: Limits, previous: "FlowTest | None" = None) -> None:
        bytes_max = limits.flow_test_bytes_max
        own = replace(limits, definition_bytes_max=bytes_max, definition_characters_max=4 * bytes_max)
        super().__init__(text, own, previous)

    @cached_property
    def flow(self) -> str:
        """The name of the definition's file, from this file's folder."""
        tree = None if self.readable is None else self.readable.tree
        return "" if tree is None else text_of(attribute_of(tree.root, "flow"))

    @cached_property
    def definitions(self) -> frozenset[str]:
        """The files of all definitions that it runs, from its folder."""
        tree = None if self.readable is None else self.readable.tree
        if tree is None:
            return frozenset()
        real = {text_of(spot.node) for spot in tree.spots() if spot.attribute == "real"}
        return frozenset({self.flow, *real} - {""})


class Surroundings(Protocol):
    """The other files, open in the editor or beside a file."""

    def definition(self, file: Path) -> Definition | None:
        """The definition in a file, each time the same object until it changes; None if there is none."""

    def flow_tests_of(self, file: Path) -> Iterable[tuple[Path, FlowTest]]:
        """The flow test files that run the definition in a file."""
