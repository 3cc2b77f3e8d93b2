"""Counting by names that users choose: those beyond a bound are counted together."""

from typing import Final, TypeVar

OTHER: Final = "(other)"
"""What the others are called; no flow, step, function or queue may have this name."""

Name = TypeVar("Name", bound=str | None)


def count_bounded(counts: dict[Name | str, int], name: Name, names_max: int) -> None:
    """Count one more of this name, or of OTHER if it is new and there are `names_max` already."""
    counted = name if name in counts or len(counts) < names_max else OTHER
    counts[counted] = counts.get(counted, 0) + 1
