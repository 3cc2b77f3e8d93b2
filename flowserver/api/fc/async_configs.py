"""Configurations of asynchronous invocations, as Function Compute's clients set and see them."""

from flowserver.api.fc.answers import Answer, document
from flowserver.api.fc.requests import FcRequest
from flowserver.base.clock import format_instant
from flowserver.base.errors import PathNotSupported
from flowserver.base.json_values import JsonObject
from flowserver.operations.function_names import WITHOUT_SERVICE
from flowserver.operations.operations import Operations
from flowserver.store.invocations.async_configs import AsyncConfigRow


async def put_config(operations: Operations, request: FcRequest, names: dict[str, str]) -> Answer:
    """Set or replace a configuration; answers it."""
    return document(_shown(await operations.async_configs.put(**names, wanted=await request.json())))


async def get_config(operations: Operations, _: FcRequest, names: dict[str, str]) -> Answer:
    """Answer a configuration."""
    return document(_shown(await operations.async_configs.describe(**names)))


async def delete_config(operations: Operations, _: FcRequest, names: dict[str, str]) -> Answer:
    """Delete a configuration."""
    await operations.async_configs.delete(**names)
    return Answer(204)


async def list_configs(operations: Operations, request: FcRequest, names: dict[str, str]) -> Answer:
    """Answer a page of a function's configurations."""
    if names.pop("qualifier"):
        raise PathNotSupported("configurations are listed for all qualifiers of a service together")
    page = await operations.async_configs.list(
        **names, next_token=request.query.get("nextToken"), limit=request.number("limit")
    )
    shown: JsonObject = {"configs": [_shown(row) for row in page.items]}
    return document(shown if page.next_token is None else shown | {"nextToken": page.next_token})


def _shown(row: AsyncConfigRow) -> JsonObject:
    """A field that was not set is not shown."""
    return {
        "service": row.service or WITHOUT_SERVICE,
        "function": row.function,
        "qualifier": row.qualifier,
        "createdTime": format_instant(row.created_at),
        "lastModifiedTime": format_instant(row.modified_at),
        **row.document,
    }
