"""/v1/permissions, /v1/nodes and /v1/keys: what a caller may do, and what serves it."""

from typing import Annotated

from fastapi import Depends, Query
from fastapi.security import HTTPAuthorizationCredentials
from starlette.responses import Response

from flowserver import __version__
from flowserver.api.rest.answers import answer, page_answer
from flowserver.api.rest.auth import bearer
from flowserver.api.rest.models.server import AccessKey, AccessKeyPage, Node, NodePage, Permissions
from flowserver.api.rest.models.shared_types import PageQuery
from flowserver.api.rest.problems import problems
from flowserver.api.rest.route import Ops, rest_router
from flowserver.operations.permissions import PERMISSIONS

router = rest_router("", "server")


@router.get("/permissions", summary="Show permissions", response_model=Permissions, responses=problems())
async def get_permissions(
    operations: Ops, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]
) -> Response:
    """Who the caller is, and what it may do: today every caller may do everything."""
    is_open = await operations.access.is_open()
    token = None if is_open or credentials is None else credentials.credentials
    label = None if token is None else await operations.access.label_of(token)
    return answer(Permissions(key=label, open=is_open, may=list(PERMISSIONS)))


@router.get("/nodes", summary="List nodes", response_model=NodePage, responses=problems())
async def list_nodes(operations: Ops, page: Annotated[PageQuery, Query()]) -> Response:
    """The processes that serve this database, by id."""
    found = await operations.nodes.list(next_token=page.next_token, limit=page.limit)
    more = {"thisNode": operations.nodes.node_id, "version": __version__}
    return await page_answer(operations, found, "nodes", Node.of, **more)


@router.get("/keys", summary="List access keys", response_model=AccessKeyPage, responses=problems())
async def list_keys(operations: Ops, page: Annotated[PageQuery, Query()]) -> Response:
    """Access keys, the oldest first, without secrets and tokens. `flowserver keys` creates and disables them."""
    found = await operations.nodes.list_keys(next_token=page.next_token, limit=page.limit)
    return await page_answer(operations, found, "keys", AccessKey.of)
