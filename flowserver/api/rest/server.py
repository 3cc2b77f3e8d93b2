"""/v1/permissions, /v1/nodes and /v1/keys: what a caller may do, and what serves it."""

from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from flowserver import __version__
from flowserver.api.rest.answers import answer, page_answer
from flowserver.api.rest.auth import Who
from flowserver.api.rest.models.server import AccessKey, AccessKeyPage, Node, NodePage, Permissions
from flowserver.api.rest.models.shared_types import PageQuery
from flowserver.api.rest.problems import problems
from flowserver.api.rest.route import Ops, rest_router

router = rest_router("", "server")


@router.get("/permissions", summary="Show permissions", response_model=Permissions, responses=problems())
async def get_permissions(who: Who) -> Response:
    """Who the caller is, and what it may do. While the server has no keys, every caller may do everything."""
    return answer(Permissions.of(who))


@router.get("/nodes", summary="List nodes", response_model=NodePage, responses=problems())
async def list_nodes(operations: Ops, page: Annotated[PageQuery, Query()]) -> Response:
    """The processes that serve this database, by id."""
    found = await operations.nodes.list(next_token=page.next_token, limit=page.limit)
    more = {"thisNode": operations.nodes.node_id, "version": __version__}
    return await page_answer(operations, found, "nodes", Node.of, **more)


@router.get("/keys", summary="List access keys", response_model=AccessKeyPage, responses=problems())
async def list_keys(operations: Ops, page: Annotated[PageQuery, Query()]) -> Response:
    """Access keys, the oldest first, without secrets and tokens. `flowserver keys` creates and disables them;
    sign-in links, which it also makes, create them."""
    found = await operations.nodes.list_keys(next_token=page.next_token, limit=page.limit)
    return await page_answer(operations, found, "keys", AccessKey.of)
