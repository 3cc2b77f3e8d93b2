"""Qualifiers, and the division of an alias's starts among one or two versions. Pure: no clock, no chance.

The version of a start follows from the execution's id, so a start that is repeated runs the same version.
"""

import hashlib
import re
from dataclasses import dataclass
from typing import Final

from flowserver.base.errors import FlowAliasNotExists, FlowServerError, FlowVersionNotExists
from flowserver.base.names import is_name

LATEST: Final = "LATEST"
"""The qualifier of a flow's own definition, as without a qualifier; no alias can have this name."""

WEIGHTS: Final = 100
"""What the weights of an alias come to: they are percentages."""

QUALIFIER_CHARACTERS: Final = 128
"""How much of a qualifier that is wrong an error shows."""

_VERSION: Final = re.compile(r"[1-9][0-9]{0,8}\Z")
_DIGITS: Final = re.compile(r"[0-9]+\Z")


@dataclass(frozen=True, slots=True)
class Route:
    """A version, and the percentage of starts that run it."""

    version: int
    weight: int


@dataclass(frozen=True, slots=True)
class Routing:
    """`other_weight` percent of starts run `other_version`, if there is one, and the rest `version`."""

    version: int
    other_version: int | None = None
    other_weight: int = 0

    @property
    def routes(self) -> tuple[Route, ...]:
        """One route for each version."""
        first = Route(self.version, WEIGHTS - self.other_weight)
        return (first,) if self.other_version is None else (first, Route(self.other_version, self.other_weight))

    def choose(self, execution_id: str) -> int:
        """The version that the execution of this id runs: always the same one for the same routing."""
        if self.other_version is None:
            return self.version
        drawn = int.from_bytes(hashlib.sha256(execution_id.encode()).digest()[:8]) % WEIGHTS
        return self.other_version if drawn < self.other_weight else self.version


def routing_of(routes: list[Route]) -> Routing:
    """The routing with these routes; raises ValueError, which says what is wrong with them."""
    if not 1 <= len(routes) <= 2:
        raise ValueError("an alias routes to one or two versions")
    if any(not 0 <= route.weight <= WEIGHTS for route in routes) or sum(each.weight for each in routes) != WEIGHTS:
        raise ValueError(f"the weights must be whole numbers of at least 0 that come to {WEIGHTS}")
    if len(routes) == 1:
        return Routing(routes[0].version)
    first, other = routes
    if first.version == other.version:
        raise ValueError("the two versions of an alias must differ")
    return Routing(first.version, other.version, other.weight)


def version_in(text: str) -> int | None:
    """The number of the version that the text names; None if it names none."""
    return int(text) if _VERSION.match(text) else None


def is_version(qualifier: str) -> bool:
    """Whether the qualifier names a version, not an alias: it has digits only."""
    return _DIGITS.match(qualifier) is not None


def is_qualifier(text: str) -> bool:
    """Whether the text may be a qualifier: LATEST, a version's number or an alias's name."""
    return is_name(text) or version_in(text) is not None


def is_alias_name(text: str) -> bool:
    """Whether the text may name an alias; it begins with a letter or `_`, so it cannot be a version."""
    return is_name(text) and text != LATEST


def no_version(flow_name: str, qualifier: str) -> FlowServerError:
    """The refusal of a qualifier that names no version and no alias."""
    if is_version(qualifier):
        return FlowVersionNotExists(f"flow {flow_name} has no version {qualifier[:QUALIFIER_CHARACTERS]}")
    return FlowAliasNotExists(f"flow {flow_name} has no alias {qualifier[:QUALIFIER_CHARACTERS]}")
