"""Calls about published versions of flows, and aliases that divide starts among them."""

from collections.abc import Mapping

from flowserver.client.calls import get, send
from flowserver.client.exchanges import Conversation, Request, json_content
from flowserver.client.listings import Listing
from flowserver.client.paths import path_of
from flowserver.client.results import Alias, Nothing, Version, typed


def versions(flow: str) -> Listing[Version]:
    """The published versions of a flow, the newest first, without their definitions."""
    return Listing(path_of("flows", flow, "versions"), "versions", Version, {})


def get_version(flow: str, version: int) -> Conversation[Version]:
    """A version with its definition."""
    return get(Version, path_of("flows", flow, "versions", str(version)))


def publish_version(flow: str, description: str = "") -> Conversation[Version]:
    """Publish the flow's present definition under the next number. Not repeated when its answer is lost.

    The newest version is returned, and is not new, if it has this definition and description already.
    """
    body = json_content({"description": description})
    headers = {"content-type": "application/json"}
    answer = yield Request(method="POST", path=path_of("flows", flow, "versions"), content=body, headers=headers)
    return typed(Version, answer.document, isNew=answer.status == 201)


def delete_version(flow: str, version: int) -> Conversation[Nothing]:
    """Delete a version; raises Conflict while an alias leads to it."""
    return send(Nothing, "DELETE", path_of("flows", flow, "versions", str(version)))


def aliases(flow: str) -> Listing[Alias]:
    """The aliases of a flow by name."""
    return Listing(path_of("flows", flow, "aliases"), "aliases", Alias, {})


def get_alias(flow: str, name: str) -> Conversation[Alias]:
    """An alias."""
    return get(Alias, path_of("flows", flow, "aliases", name))


def create_alias(flow: str, name: str, routes: Mapping[int, int], description: str = "") -> Conversation[Alias]:
    """Create an alias. `routes` has the weight of each version, one or two of them, which come to 100."""
    body = {"name": name, "routes": _routes(routes), "description": description}
    return send(Alias, "POST", path_of("flows", flow, "aliases"), body)


def put_alias(flow: str, name: str, routes: Mapping[int, int], description: str | None = None) -> Conversation[Alias]:
    """Give an alias these routes, whether it exists or not."""
    described = {} if description is None else {"description": description}
    body = {"routes": _routes(routes), **described}
    return send(Alias, "PUT", path_of("flows", flow, "aliases", name), body, repeatable=True)


def update_alias(
    flow: str, name: str, routes: Mapping[int, int] | None = None, description: str | None = None
) -> Conversation[Alias]:
    """Change the routes or the description of an alias that exists."""
    given = {"routes": None if routes is None else _routes(routes), "description": description}
    body = {key: value for key, value in given.items() if value is not None}
    return send(Alias, "PATCH", path_of("flows", flow, "aliases", name), body, repeatable=True)


def delete_alias(flow: str, name: str) -> Conversation[Nothing]:
    """Delete an alias; its versions stay."""
    return send(Nothing, "DELETE", path_of("flows", flow, "aliases", name))


def _routes(routes: Mapping[int, int]) -> list[dict[str, int]]:
    return [{"version": version, "weight": weight} for version, weight in routes.items()]
