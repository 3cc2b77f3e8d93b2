"""What the parser records of each step list while it reads it, for the checks that need every list.

It holds names and gotos with their places, also those of refused steps, so that one mistake is not reported twice.
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
    """One step list: a name for each step in order ("" if it has none), and every goto in it."""

    names: list[Located] = field(default_factory=list)
    gotos: list[Located] = field(default_factory=list)
