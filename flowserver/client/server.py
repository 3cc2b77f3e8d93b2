"""Calls about the server itself."""

from flowserver.client.calls import get
from flowserver.client.exchanges import Conversation
from flowserver.client.listings import Listing
from flowserver.client.paths import function_path, path_of
from flowserver.client.server_results import AccessKey, AuditRecord, FunctionHealth, Node, Overview, Permissions


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


def audit(
    *,
    key: str | None = None,
    operation: str | None = None,
    object: str | None = None,
    result: str | None = None,
    from_time: str | None = None,
    to_time: str | None = None,
) -> Listing[AuditRecord]:
    """What was done by whom, and what was refused, the newest first.

    Only what was done with the key of that id, only that operation, only that object and its parts, only that result
    (`ok` or the code of an error), only from one instant (RFC 3339) on, and before the other.
    """
    query = {"key": key, "operation": operation, "object": object, "result": result, "from": from_time, "to": to_time}
    return Listing(path_of("audit"), "records", AuditRecord, query)


def functions_health() -> Listing[FunctionHealth]:
    """How the functions fare that the node which answers has called, by service and name."""
    return Listing(path_of("functions", "health"), "functions", FunctionHealth, {})


def function_health(name: str) -> Conversation[FunctionHealth]:
    """How SERVICE/FUNCTION fares on the node which answers."""
    return get(FunctionHealth, function_path(name, "health"))
