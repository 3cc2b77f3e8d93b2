"""Paths of steps as texts: `pack[17].label`, `ship[1].book`, `check.refund`. Everything that compares two uses these.

The number of an iteration or branch is in brackets. `[]` is any number: `pack[].label`. A definition has its steps once
each, so there an iteration is `[]` and a branch has its number; `flowtests/step_paths.py` finds that path.
"""

import re
from collections.abc import Iterable
from typing import Final

_NAME: Final = r"[A-Za-z_][A-Za-z0-9_-]{0,127}(\[[0-9]{0,9}\])?"
STEP_PATTERN: Final = rf"^{_NAME}(\.{_NAME})*$"
"""A step's name or path. Names have neither dots nor brackets."""
_NUMBER: Final = re.compile(r"\[([0-9]*)\]")


def is_path(step: str) -> bool:
    """Whether it is more than a name."""
    return "." in step or "[" in step


def without_numbers(path: str) -> str:
    """The path with `[]` for every iteration and branch, as all paths that `agree` have it in common."""
    return _NUMBER.sub("[]", path)


def agree(one: str, other: str) -> bool:
    """Whether two paths can be of one step: they differ at most where one of them has `[]` for a number."""
    if without_numbers(one) != without_numbers(other):
        return False
    pairs = zip(_NUMBER.findall(one), _NUMBER.findall(other), strict=True)
    return all(mine == others or "" in (mine, others) for mine, others in pairs)


def folded(paths: Iterable[str]) -> list[str]:
    """`pack[].label (×100)` in place of paths that differ only in their numbers; other paths as they are."""
    groups: dict[str, list[str]] = {}
    for path in paths:
        groups.setdefault(without_numbers(path), []).append(path)
    return [each[0] if len(each) == 1 else f"{common} (×{len(each)})" for common, each in groups.items()]
