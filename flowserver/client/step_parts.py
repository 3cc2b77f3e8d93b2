"""Attempts, visits and edges of a step, as results have them."""

import msgspec


class Attempt(msgspec.Struct, frozen=True):
    """One attempt of a task; `last` is None while it runs."""

    first: str
    last: str | None = None
    error: str | None = None


class Visit(msgspec.Struct, frozen=True):
    """One entry of a step; `last` is None while it runs."""

    first: str
    last: str | None = None
    status: str = ""
    attempts: list[Attempt] = []
    error: str | None = None


class Edge(msgspec.Struct, frozen=True):
    """Where control went from a step, and how often; `to` is None at the end of its list."""

    to: str | None
    kind: str
    index: int | None = None
    """The option, catch rule or branch; None for a default, and if the history does not record it."""
    count: int = 0
