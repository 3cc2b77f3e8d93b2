"""Calls about the server itself."""

from flowserver.client.calls import get
from flowserver.client.exchanges import Conversation
from flowserver.client.listings import Listing
from flowserver.client.paths import function_path, path_of
from flowserver.client.server_results import AccessKey, FunctionHealth, Node, Overview, Permissions


def overview(*, failed_since: str | None = None) -> Conversation[Overview]:
    """What runs, what failed, what waits, and what a person should look at.

    Failures are counted from the quarter of an hour of `failed_since` (RFC 3339 with an offset), two days ago at most;
    without it, of the last day.
    """
    return get(Overview, path_of("overview"), failedSince=failed_since)


def permissions() -> Conversation[Permissions]:
    """Who this client is to the server, and what it may do."""
    return get(Permissions, path_of("permissions"))


def nodes() -> Listing[Node]:
    """The processes that serve the database, by id."""
    return Listing(path_of("nodes"), "nodes", Node, {})


def keys() -> Listing[AccessKey]:
    """Access keys without their secrets, the oldest first."""
    return Listing(path_of("keys"), "keys", AccessKey, {})


def functions_health() -> Listing[FunctionHealth]:
    """How the functions fare that the node which answers has called, by service and name."""
    return Listing(path_of("functions", "health"), "functions", FunctionHealth, {})


def function_health(name: str) -> Conversation[FunctionHealth]:
    """How SERVICE/FUNCTION fares on the node which answers."""
    return get(FunctionHealth, function_path(name, "health"))
