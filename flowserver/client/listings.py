"""Lists that the server gives in pages."""

from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

import msgspec

from flowserver.client.exchanges import Conversation, Request
from flowserver.client.results import Nothing, Result, typed

R = TypeVar("R", bound=Result)

Query = Mapping[str, str | int | bool | list[str] | None]
"""Parameters of a request; None is left out, and a list is repeated."""


class Listing(msgspec.Struct, Generic[R], frozen=True):
    """A list that the server gives in pages."""

    path: str
    key: str
    kind: type[R]
    query: Query


class Page(msgspec.Struct, Generic[R], frozen=True):
    """One page; `next_token` is None on the last."""

    items: Sequence[R]
    next_token: str | None


def page_of(listing: Listing[R], next_token: str | None) -> Conversation[Page[R]]:
    """One page of a listing."""
    query = given(listing.query) | ({"nextToken": next_token} if next_token else {})
    answer = yield Request(method="GET", path=listing.path, query=query, repeatable=True)
    found = typed(Nothing, answer.document).document
    items = [typed(listing.kind, each) for each in found.get(listing.key, ())]
    return Page(items, found.get("nextToken"))


def given(query: Query) -> dict[str, str | int | bool | list[str]]:
    """The parameters that have values."""
    return {name: value for name, value in query.items() if value is not None}
