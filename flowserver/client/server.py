"""Calls about the server itself."""

from flowserver.client.calls import get
from flowserver.client.exchanges import Conversation
from flowserver.client.paths import path_of
from flowserver.client.server_results import Overview


def overview(*, failed_since: str | None = None) -> Conversation[Overview]:
    """What runs, what failed, what waits, and what a person should look at.

    Failures are counted from the quarter of an hour of `failed_since` (RFC 3339 with an offset), two days ago at most;
    without it, of the last day.
    """
    return get(Overview, path_of("overview"), failedSince=failed_since)
