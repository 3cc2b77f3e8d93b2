"""What the parser notes of each step list while it reads it, for the checks that need every list.

Names and gotos with their places, also of steps that were refused, so that one mistake does not look like two.
"""

from dataclasses import dataclass, field

from flowserver.language.graph import Span


@dataclass(frozen=True, slots=True)
class Located:
    """A name and where it is written."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class ListOutline:
    """One step list: a name for each step in order ("" if it has none), and every goto that stands in it."""

    names: list[Located] = field(default_factory=list)
    gotos: list[Located] = field(default_factory=list)
