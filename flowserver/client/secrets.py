"""Calls about secrets. A value can be set, and never read."""

from flowserver.client.calls import get, send
from flowserver.client.exchanges import Conversation
from flowserver.client.listings import Listing
from flowserver.client.paths import path_of
from flowserver.client.results import Nothing, Secret


def secrets() -> Listing[Secret]:
    """Secrets by name, without their values."""
    return Listing(path_of("secrets"), "secrets", Secret, {})


def get_secret(name: str) -> Conversation[Secret]:
    """When a secret was set, and what refers to it."""
    return get(Secret, path_of("secrets", name))


def put_secret(name: str, value: str) -> Conversation[Secret]:
    """Create a secret, or replace its value."""
    return send(Secret, "PUT", path_of("secrets", name), {"value": value}, repeatable=True)


def delete_secret(name: str, *, force: bool = False) -> Conversation[Nothing]:
    """Delete a secret; with `force` also if something refers to it, whose calls fail then."""
    return send(Nothing, "DELETE", path_of("secrets", name), query={"force": True} if force else None)
