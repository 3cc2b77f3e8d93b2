"""Counts with a bound: the time for one does not grow with the table."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, func, select


@dataclass(frozen=True, slots=True)
class Count:
    """How many there are; with `at_least` there may be more."""

    count: int
    at_least: bool = False


def count_up_to(connection: Connection, query: Select[Any], most: int) -> Count:
    """How many rows an ordered query has, `most` at most."""
    some = query.limit(most + 1).subquery()
    found = connection.execute(select(func.count()).select_from(some)).scalar_one()
    return Count(min(found, most), found > most)
