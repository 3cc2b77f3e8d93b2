"""Writes that are tried again after a commit whose answer was lost: they recognize what their first try has made."""

from typing import TypeVar

R = TypeVar("R")


def is_own_row(wanted: R, found: R, earlier: tuple[R, bool] | None) -> bool:
    """Whether an earlier try of the same write has made the row that is in the way of `wanted`.

    `earlier` is what that try returned, for `Committer.write_once`: a row, and whether it was new.
    """
    return earlier is not None and earlier[1] and found == wanted
