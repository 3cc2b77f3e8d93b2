"""The values of a file with their kinds: what is at an offset, and what is around it."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from flowserver.base.limits import Limits
from flowserver.editing.grammar import Grammar, Kind
from flowserver.editing.texts import Extent, Text
from flowserver.language.check_cost import Work
from flowserver.language.diagnostics import CheckingStopped, Report
from flowserver.language.nodes import Entry, ListNode, MapNode, Node
from flowserver.language.parser import REF_KEYS
from flowserver.language.source import read_source


@dataclass(frozen=True, slots=True)
class Spot:
    """A value and what is around it. `attribute` is the key that holds it, itself or as an entry of its list."""

    node: Node
    kind: Kind
    attribute: str = ""
    around: "Spot | None" = None
    """The mapping that has the attribute."""
    in_list: bool = False

    def ancestors(self) -> Iterator["Spot"]:
        """The mappings around it, the innermost first."""
        spot = self.around
        while spot is not None:
            yield spot
            spot = spot.around


@dataclass(frozen=True, slots=True)
class Found:
    """What is at an offset: a value, or a key of the mapping in `spot`."""

    spot: Spot
    key: Entry | None = None


class Tree:
    """A file as its values."""

    def __init__(self, root: Node, grammar: Grammar, text: Text) -> None:
        self.root = root
        self.text = text
        self._grammar = grammar

    @cached_property
    def top(self) -> Spot:
        """The whole file."""
        kind = self._grammar.root if isinstance(self.root, MapNode) else None
        return Spot(self.root, kind)

    def extent(self, node: Node) -> Extent:
        """Where a value is written; of an alias, where its anchor is."""
        return self.text.extent_of(node.span)

    def inner(self, spot: Spot) -> Iterator[Spot]:
        """The values in a value, one level down; those of a list have the list's attribute."""
        if isinstance(spot.node, MapNode):
            for entry in spot.node.entries:
                yield self._spot(entry.value, entry.name, spot, in_list=False)
        elif isinstance(spot.node, ListNode):
            for item in spot.node.items:
                yield self._spot(item, spot.attribute, spot.around, in_list=True)

    def _spot(self, node: Node, attribute: str, around: Spot | None, *, in_list: bool) -> Spot:
        kind: Kind = None
        if isinstance(node, MapNode) and around is not None:
            kind = self._grammar.inner(around.kind, attribute, node)
        return Spot(node, kind, attribute, around, in_list)

    def spots(self) -> Iterator[Spot]:
        """Every value, in no order that matters; an alias gives its values again."""
        todo = [self.top]
        while todo:
            spot = todo.pop()
            yield spot
            todo.extend(self.inner(spot))

    def at(self, offset: int) -> Found | None:
        """The innermost value or key at an offset."""
        spot = self.top
        if not self.extent(spot.node).holds(offset):
            return None
        while True:
            if key := self._key_at(spot, offset):
                return Found(spot, key)
            found = [each for each in self.inner(spot) if self.extent(each.node).holds(offset)]
            if not found:
                return Found(spot)
            spot = found[-1]  # of two that touch, the second, which begins here

    def _key_at(self, spot: Spot, offset: int) -> Entry | None:
        for entry in spot.node.entries if isinstance(spot.node, MapNode) else ():
            if self.text.extent_of(entry.key_span).holds(offset):
                return entry
        return None


def read_tree(text: Text, grammar: Grammar, limits: Limits) -> Tree | None:
    """The values of a text; None if it is no YAML, or has more than the limits allow."""
    try:
        root = read_source(text.text, limits, Report(lenient=True), Work(), REF_KEYS)
    except CheckingStopped:
        return None
    return Tree(root, grammar, text)
