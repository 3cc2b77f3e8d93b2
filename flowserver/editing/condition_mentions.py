"""The names of steps in the conditions of a flow test: where they are written, and how they are replaced."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from flowserver.editing.edits import Edit
from flowserver.editing.texts import Extent
from flowserver.editing.tree import Spot
from flowserver.flowtests.condition_names import NamedStep, steps_named_in
from flowserver.flowtests.fields import CLAIM, EXPECT, SIMULATION, UNDO
from flowserver.language.nodes import ScalarNode

_ATTRIBUTES: Final = ((CLAIM, ("if", "then")), (UNDO, ("when",)))


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition as it is written in a file, and one step that it names."""

    text: str
    extent: Extent
    named: NamedStep


def is_condition(spot: Spot) -> bool:
    """Whether a value is a condition of a run."""
    kind = None if spot.around is None else spot.around.kind
    if spot.in_list and spot.attribute == "always":
        return kind is EXPECT or kind is SIMULATION
    return any(kind is holder and spot.attribute in names for holder, names in _ATTRIBUTES)


def named_in(node: ScalarNode, extent: Extent, source: str) -> Iterator[tuple[Condition, Extent]]:
    """The names in a condition that is at an extent of a source text, each with its place there."""
    if not isinstance(node.value, str):
        return
    for named in steps_named_in(node.text):
        start = _start_of(named, node, source[extent.start : extent.end])
        if start is not None:
            start += extent.start
            yield Condition(node.text, extent, named), Extent(start, start + len(named.text))


def _start_of(named: NamedStep, node: ScalarNode, raw: str) -> int | None:
    """Where the name is in a scalar as it is written; None if its escapes hide that."""
    if node.inset is not None:
        return node.inset + named.start
    if raw.count(named.text) != node.text.count(named.text):
        return None
    start = -1
    for _ in range(node.text.count(named.text, 0, named.start) + 1):
        start = raw.find(named.text, start + 1)
    return start


def has_bare_key(conditions: Iterable[Condition]) -> bool:
    """Whether a name is a key without quotes, which cannot have a `-`."""
    return any(not each.named.is_quoted for each in conditions)


def written_anew(places: Iterable[tuple[Condition, int]], old: str, new: str, source: str) -> Edit:
    """The whole of one condition with `new` in the place of `old`, in brackets for bare keys.

    Each place is a name in it, with the offset in the name at which `old` begins.
    """
    changed = sorted(places, key=lambda place: place[0].named.start, reverse=True)
    text, extent = changed[0][0].text, changed[0][0].extent
    for each, offset in changed:
        start = each.named.start + offset
        before, after = text[:start], text[start + len(old) :]
        text = f"{before}{new}{after}" if each.named.is_quoted else f'{before[:-1]}["{new}"]{after}'
    quoted = text.strip().replace("'", "''")
    return Edit(extent, f"'{quoted}'" + ("\n" if source[: extent.end].endswith("\n") else ""))
