"""Paths of steps for people: those that differ only in the numbers of iterations or branches are shown once."""

import re
from collections.abc import Iterable
from typing import Final

_NUMBER: Final = re.compile(r"\[[0-9]+\]")


def folded(paths: Iterable[str]) -> list[str]:
    """`pack[].label (100 iterations)` in place of paths that differ only in their numbers; other paths as they are."""
    groups: dict[str, list[str]] = {}
    for path in paths:
        groups.setdefault(_NUMBER.sub("[]", path), []).append(path)
    return [each[0] if len(each) == 1 else f"{general} ({len(each)} iterations)" for general, each in groups.items()]
