"""/v1/flows/{flow}/aliases: create, list, read, change, delete."""

from typing import Annotated

from fastapi import Depends, Query
from starlette.responses import Response

from flowserver.api.rest.answers import answer, page_answer
from flowserver.api.rest.bodies import json_body
from flowserver.api.rest.described_bodies import json_request
from flowserver.api.rest.models.shared_types import PageQuery
from flowserver.api.rest.models.versions import (
    CreateAlias,
    FlowAlias,
    FlowAliasPage,
    PutAlias,
    UpdateAlias,
)
from flowserver.api.rest.parameters import AliasName, FlowName
from flowserver.api.rest.preconditions import IfMatch, IfNoneMatch, read_precondition
from flowserver.api.rest.problems import problems
from flowserver.api.rest.route import Ops, rest_router
from flowserver.base.errors import (
    FlowAliasAlreadyExists,
    FlowAliasNotExists,
    FlowNotExists,
    FlowVersionNotExists,
    InvalidArgument,
    MissingParameter,
    PreconditionFailed,
    UnsupportedMediaType,
)
from flowserver.operations.preconditions import etag_of_alias
from flowserver.store.versions.aliases import AliasRow

router = rest_router("/flows/{flow}/aliases", "aliases")


@router.post(
    "",
    summary="Create an alias",
    response_model=FlowAlias,
    status_code=201,
    responses=problems(
        MissingParameter, FlowNotExists, FlowVersionNotExists, FlowAliasAlreadyExists, UnsupportedMediaType
    ),
    openapi_extra=json_request(CreateAlias),
)
async def create_flow_alias(
    flow: FlowName, operations: Ops, wanted: Annotated[CreateAlias, Depends(json_body(CreateAlias))]
) -> Response:
    """Name one or two published versions. A start with the alias as its `qualifier` runs one of them.

    Which of two is chosen by the weights and the execution's id.
    """
    routes = [each.route for each in wanted.routes]
    row = await operations.aliases.create(flow, wanted.name, routes, description=wanted.description)
    return _answer(row, 201, {"Location": f"/v1/flows/{flow}/aliases/{row.name}"})


@router.get("", summary="List aliases", response_model=FlowAliasPage, responses=problems(FlowNotExists))
async def list_flow_aliases(flow: FlowName, operations: Ops, page: Annotated[PageQuery, Query()]) -> Response:
    """The flow's aliases by name."""
    found = await operations.aliases.list(flow, next_token=page.next_token, limit=page.limit)
    return await page_answer(operations, found, "aliases", FlowAlias.of)


@router.get(
    "/{alias}",
    summary="Show an alias",
    response_model=FlowAlias,
    responses=problems(FlowNotExists, FlowAliasNotExists),
)
async def get_flow_alias(flow: FlowName, alias: AliasName, operations: Ops) -> Response:
    """The alias, and its entity tag in the header `ETag`."""
    return _answer(await operations.aliases.describe(flow, alias))


@router.put(
    "/{alias}",
    summary="Create or replace an alias",
    response_model=FlowAlias,
    responses=problems(MissingParameter, FlowNotExists, FlowVersionNotExists, PreconditionFailed, UnsupportedMediaType)
    | {201: {"model": FlowAlias, "description": "The alias is new."}},
    response_description="The alias existed and has the routes now.",
    openapi_extra=json_request(PutAlias),
)
async def put_flow_alias(
    flow: FlowName,
    alias: AliasName,
    operations: Ops,
    wanted: Annotated[PutAlias, Depends(json_body(PutAlias))],
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Give an alias these routes, whether it exists or not: for deployments, since it can be repeated.

    Executions that run keep their version. Without a description an existing alias keeps its own.
    """
    row, is_new = await operations.aliases.put(
        flow,
        alias,
        [each.route for each in wanted.routes],
        description=wanted.description,
        precondition=read_precondition(if_match, if_none_match),
    )
    return _answer(row, 201 if is_new else 200)


@router.patch(
    "/{alias}",
    summary="Change an alias",
    response_model=FlowAlias,
    responses=problems(
        FlowNotExists, FlowAliasNotExists, FlowVersionNotExists, PreconditionFailed, UnsupportedMediaType
    ),
    openapi_extra=json_request(UpdateAlias),
)
async def update_flow_alias(
    flow: FlowName,
    alias: AliasName,
    operations: Ops,
    change: Annotated[UpdateAlias, Depends(json_body(UpdateAlias))],
    if_match: IfMatch = None,
) -> Response:
    """Change what the body names and leave the rest. Executions that run keep their version."""
    if change.routes is None and change.description is None:
        raise InvalidArgument("there is nothing to change: give `routes` or `description`")
    row = await operations.aliases.update(
        flow,
        alias,
        routes=None if change.routes is None else [each.route for each in change.routes],
        description=change.description,
        precondition=read_precondition(if_match, None),
    )
    return _answer(row)


@router.delete(
    "/{alias}",
    summary="Delete an alias",
    status_code=204,
    responses=problems(FlowNotExists, FlowAliasNotExists, PreconditionFailed),
)
async def delete_flow_alias(flow: FlowName, alias: AliasName, operations: Ops, if_match: IfMatch = None) -> Response:
    """Delete an alias. Executions that it has started go on; the versions stay."""
    await operations.aliases.delete(flow, alias, precondition=read_precondition(if_match, None))
    return Response(status_code=204)


def _answer(row: AliasRow, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    etag = {"ETag": f'"{etag_of_alias(row)}"'}
    return answer(FlowAlias.of(row), status, {**etag, **(headers or {})})
