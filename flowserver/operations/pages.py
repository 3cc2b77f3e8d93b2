"""Pages: how many items, and where the next page starts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from flowserver.base.errors import InvalidArgument

LIMIT_DEFAULT = 60
"""Items on a page when the caller does not say, as the API documents."""

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Page(Generic[T_co]):
    """A page of a listing; `next_token` is None on the last one."""

    items: Sequence[T_co]
    next_token: str | None


def check_limit(limit: int | None, limit_max: int) -> int:
    """The page size to use; raises InvalidArgument outside 1..limit_max."""
    if limit is None:
        return LIMIT_DEFAULT
    if not 1 <= limit <= limit_max:
        raise InvalidArgument(f"Limit must be between 1 and {limit_max}")
    return limit
