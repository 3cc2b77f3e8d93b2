"""Tokens of pages that are more than a name: how each kind of list writes where its next page begins, and reads it."""

import base64
from typing import Final

from flowserver.base.errors import InvalidArgument
from flowserver.base.json_values import InvalidJson, dump_json_bytes, load_json
from flowserver.store.executions.listing_of_all_flows import AllCursor
from flowserver.store.executions.listing_of_flow import PageCursor
from flowserver.store.executions.waiting_tasks import ScopeKey
from flowserver.store.invocations.listing import Position

SCOPE_DIGITS_MAX: Final = 9
"""Numbers of scopes are 32-bit numbers."""


def cursor_of(token: str) -> PageCursor:
    """Where a page of a flow's executions begins: `NAME/START`, or `NAME` alone, like the cloud service's tokens."""
    name, slash, start = token.rpartition("/")
    return PageCursor(name, int(start)) if slash and is_small_number(start) else PageCursor(token)


def token_of(place: PageCursor) -> str:
    """The token from which `cursor_of` makes the cursor."""
    return place.name if place.started_at is None else f"{place.name}/{place.started_at}"


def event_id_of(token: str | None) -> int:
    """The event that a page begins with; raises InvalidArgument."""
    if token is None or token == "":
        return 1
    if not is_small_number(token):
        raise InvalidArgument("NextToken must be the id of an event")
    return int(token)


def is_small_number(text: str) -> bool:
    """Whether the text is a number from 0 that a 64-bit integer can hold."""
    return text.isascii() and text.isdigit() and len(text) < 16


def all_cursor_of(token: str) -> AllCursor:
    """The execution, by its start (or end) and id, before a page of those of all flows; raises InvalidArgument."""
    instant, _, execution_id = token.partition("/")
    if not (is_small_number(instant) and execution_id):
        raise InvalidArgument("NextToken must be that of a page before")
    return AllCursor(int(instant), execution_id)


def all_token_of(place: AllCursor) -> str:
    """The token from which `all_cursor_of` makes the cursor."""
    return f"{place.instant}/{place.execution_id}"


def scope_key_of(next_token: str | None) -> ScopeKey:
    """The task, by its scope, before a page of those that wait; raises InvalidArgument."""
    if next_token is None:
        return ScopeKey("", 0)
    number, colon, execution_id = next_token.partition(":")
    if not (colon and number.isascii() and number.isdigit() and len(number) <= SCOPE_DIGITS_MAX):
        raise InvalidArgument("this server did not give this nextToken")
    return ScopeKey(execution_id, int(number))


def scope_token_of(key: ScopeKey) -> str:
    """The token from which `scope_key_of` makes the key."""
    return f"{key.scope_id}:{key.execution_id}"


def position_token_of(position: Position) -> str:
    """The token from which `position_of` makes the position."""
    return base64.urlsafe_b64encode(dump_json_bytes(position)).decode()


def position_of(token: str) -> Position:
    """The invocation before a page, by its submission and key; raises InvalidArgument."""
    try:
        match load_json(base64.urlsafe_b64decode(token).decode()):
            case [int(created_at), str(key)] if "\0" not in key and abs(created_at) < 2**63:
                return created_at, key
    except (ValueError, InvalidJson):
        pass
    raise InvalidArgument("this server did not give this nextToken")
