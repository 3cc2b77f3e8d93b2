"""The headers If-Match and If-None-Match (RFC 9110, 13.1)."""

import re
from typing import Annotated

from fastapi import Header

from flowserver.base.errors import InvalidArgument
from flowserver.operations.preconditions import Precondition

ANY = "*"
_ETAGS = re.compile(r'\s*(?:W/)?"[^"]*"\s*(?:,\s*(?:W/)?"[^"]*"\s*)*')
_STRONG = re.compile(r'(?:^|[\s,])"([^"]*)"')
_EACH = re.compile(r'"([^"]*)"')

IfMatch = Annotated[
    str | None,
    Header(description="Change it only if it has this entity tag, the `ETag` of an earlier reply; `*`: any."),
]
IfNoneMatch = Annotated[
    str | None,
    Header(description="An entity tag that you know; in a PUT `*` alone is allowed: only create, replace nothing."),
]


def read_precondition(if_match: str | None, if_none_match: str | None) -> Precondition:
    """What a change asks for; raises InvalidArgument if a header is not in the form that RFC 9110 gives it."""
    if if_none_match is not None and if_none_match.strip() != ANY:
        raise InvalidArgument("If-None-Match of a PUT must be *: it creates the flow, or fails if that exists")
    etags = None
    if if_match is not None and if_match.strip() != ANY:
        _check("If-Match", if_match)
        etags = frozenset(_STRONG.findall(if_match))
    return Precondition(etags, must_exist=if_match is not None, must_be_new=if_none_match is not None)


def matches_any(if_none_match: str | None, etag: str) -> bool:
    """Whether the header of a GET names the entity tag, weak or strong; raises InvalidArgument."""
    if if_none_match is None or if_none_match.strip() == ANY:
        return if_none_match is not None
    _check("If-None-Match", if_none_match)
    return etag in _EACH.findall(if_none_match)


def _check(name: str, value: str) -> None:
    if not _ETAGS.fullmatch(value):
        raise InvalidArgument(f'{name} must be * or entity tags in double quotes, such as "5c1b6c34"')
