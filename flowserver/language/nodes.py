"""Located YAML values: what `source` reads and the rest of the package parses. Plain data.

Aliases are followed: one node can appear in several places. Nodes compare by identity, because following
aliases in a comparison could take exponential time.
"""

from dataclasses import dataclass

from flowserver.base.json_values import Json
from flowserver.language.graph import Span


@dataclass(frozen=True, slots=True, eq=False)
class ScalarNode:
    """A text, number, boolean or null.

    `text` is the scalar as written, without quotes. `inset` is how many columns after the start of the span the
    text begins if it equals the source text character by character, else None. `is_ref` marks the tag `!Ref`.
    """

    value: str | int | float | bool | None
    text: str
    span: Span
    inset: int | None = None
    is_ref: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class ListNode:
    """A YAML sequence."""

    items: tuple["Node", ...]
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One key and its value; `name` is the key's text."""

    name: str
    key_span: Span
    value: "Node"


@dataclass(frozen=True, slots=True, eq=False)
class MapNode:
    """A YAML mapping; names are unique."""

    entries: tuple[Entry, ...]
    span: Span


Node = ScalarNode | ListNode | MapNode


def to_json(node: Node) -> Json:
    """The node's value as JSON; its depth is bounded by the limit on definitions."""
    if isinstance(node, ScalarNode):
        return node.value
    if isinstance(node, ListNode):
        return [to_json(item) for item in node.items]
    return {entry.name: to_json(entry.value) for entry in node.entries}
