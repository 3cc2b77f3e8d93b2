"""The actions of published versions and aliases: their parameters and answers. Versions are decimal texts."""

import re
from typing import Final

from flowserver.api.rpc.parameters import Parameters
from flowserver.base.clock import format_instant
from flowserver.base.errors import InvalidArgument
from flowserver.base.json_values import InvalidJson, Json, JsonObject, load_json
from flowserver.machine.versions.routing import WEIGHTS, Route, version_in
from flowserver.operations.operations import Operations
from flowserver.store.versions.aliases import AliasRow
from flowserver.store.versions.versions import VersionRow

ROUTES: Final = "RoutingConfigurations"
FORM: Final = f'{ROUTES} must be the JSON text of a list such as [{{"Version": "1", "Weight": 100}}]'
_WEIGHT: Final = re.compile(r"[0-9]{1,3}\Z")


async def publish_flow_version(operations: Operations, given: Parameters) -> JsonObject:
    """PublishFlowVersion: a request that is repeated publishes nothing new."""
    flow_name = given.required("FlowName")
    row, _ = await operations.versions.publish(flow_name, description=given.text("Description") or "")
    return {"FlowName": flow_name, **_version_view(row)}


async def list_flow_versions(operations: Operations, given: Parameters) -> JsonObject:
    """ListFlowVersions, the newest first."""
    page = await operations.versions.list(
        given.required("FlowName"), next_token=given.text("NextToken"), limit=given.integer("Limit")
    )
    return _with_token({"FlowVersions": [_version_view(row) for row in page.items]}, page.next_token)


async def delete_flow_version(operations: Operations, given: Parameters) -> JsonObject:
    """DeleteFlowVersion."""
    await operations.versions.delete(given.required("FlowName"), given.required("FlowVersion"))
    return {}


async def create_flow_alias(operations: Operations, given: Parameters) -> JsonObject:
    """CreateFlowAlias; its answer is flat."""
    flow_name, routes = given.required("FlowName"), _routes(given.required(ROUTES))
    description = given.text("Description") or ""
    row = await operations.aliases.create(flow_name, given.required("Name"), routes, description=description)
    return {"FlowName": flow_name, **_alias_view(row)}


async def update_flow_alias(operations: Operations, given: Parameters) -> JsonObject:
    """UpdateFlowAlias: what is absent stays as it is; an empty description is cleared. Its answer is nested."""
    flow_name, name = given.required("FlowName"), given.required("Name")
    text = given.text(ROUTES)
    routes = None if text is None else _routes(text)
    row = await operations.aliases.update(flow_name, name, routes=routes, description=given.given("Description"))
    return {"Alias": _alias_view(row)}


async def describe_flow_alias(operations: Operations, given: Parameters) -> JsonObject:
    """DescribeFlowAlias."""
    return {"Alias": _alias_view(await operations.aliases.describe(given.required("FlowName"), given.required("Name")))}


async def list_flow_aliases(operations: Operations, given: Parameters) -> JsonObject:
    """ListFlowAliases, in which weights are texts."""
    page = await operations.aliases.list(
        given.required("FlowName"), next_token=given.text("NextToken"), limit=given.integer("Limit")
    )
    views: list[Json] = [_alias_view(row, weight=str) for row in page.items]
    return _with_token({"Aliases": views}, page.next_token)


async def delete_flow_alias(operations: Operations, given: Parameters) -> JsonObject:
    """DeleteFlowAlias."""
    await operations.aliases.delete(given.required("FlowName"), given.required("Name"))
    return {}


def _version_view(row: VersionRow) -> JsonObject:
    return {
        "Version": str(row.version),
        "Description": row.description,
        "CreatedTime": format_instant(row.created_at),
    }


def _alias_view(row: AliasRow, weight: type[int] | type[str] = int) -> JsonObject:
    return {
        "Name": row.name,
        "Description": row.description,
        ROUTES: [{"Version": str(each.version), "Weight": weight(each.weight)} for each in row.routing.routes],
        "CreatedTime": format_instant(row.created_at),
    }


def _with_token(body: JsonObject, next_token: str | None) -> JsonObject:
    """Clients page on until the token is absent."""
    return body if next_token is None else {**body, "NextToken": next_token}


def _routes(text: str) -> list[Route]:
    try:
        listed = load_json(text)
    except InvalidJson as error:
        raise InvalidArgument(f"{FORM}: {error}") from None
    if not isinstance(listed, list):
        raise InvalidArgument(FORM)
    return [_route(each) for each in listed]


def _route(given: Json) -> Route:
    """A route; version and weight may be numbers or texts, and the weight may be absent."""
    if not isinstance(given, dict):
        raise InvalidArgument(FORM)
    version, weight = version_in(str(given.get("Version"))), str(given.get("Weight", WEIGHTS))
    if version is None or not _WEIGHT.match(weight):
        raise InvalidArgument(FORM)
    return Route(version, int(weight))
