"""/v1/flows: create, read, change, delete."""

from collections.abc import Mapping
from typing import Annotated

from fastapi import Depends, Query
from starlette.requests import Request
from starlette.responses import Response

from flowserver.api.rest.answers import answer, page_answer
from flowserver.api.rest.auth import Who
from flowserver.api.rest.bodies import json_body, read_definition
from flowserver.api.rest.described_bodies import definition_request, json_request
from flowserver.api.rest.models.deployed_flow import DeployedFlow
from flowserver.api.rest.models.flows import (
    CreateFlow,
    Flow,
    FlowPage,
    FlowQuery,
    FlowsQuery,
    FlowSummary,
    NewFlowQuery,
    PutFlow,
    UpdateFlow,
    UpdateFlowQuery,
)
from flowserver.api.rest.parameters import FlowName
from flowserver.api.rest.preconditions import IfMatch, IfNoneMatch, matches_any, read_precondition
from flowserver.api.rest.problems import problems
from flowserver.api.rest.route import Ops, rest_router
from flowserver.base.errors import (
    FlowAlreadyExists,
    FlowNotExists,
    InvalidArgument,
    MissingParameter,
    PreconditionFailed,
    UnsupportedMediaType,
)
from flowserver.operations.flows import Deployed, FlowChange
from flowserver.operations.preconditions import etag_of

router = rest_router("/flows", "flows")


@router.get("", summary="List flows", response_model=FlowPage, responses=problems())
async def list_flows(operations: Ops, page: Annotated[FlowsQuery, Query()], who: Who) -> Response:
    """Flows by name, all or those with a prefix, without their definitions."""
    prefix = who.names_within(page.name_prefix)
    found = await operations.flows.list(
        next_token=page.next_token, limit=page.limit, name_prefix=prefix, documents=False
    )
    return await page_answer(operations, found, "flows", FlowSummary.of)


@router.post(
    "",
    summary="Create a flow",
    response_model=DeployedFlow,
    status_code=201,
    responses=problems(MissingParameter, FlowAlreadyExists, UnsupportedMediaType),
    openapi_extra=definition_request(CreateFlow),
)
async def create_flow(request: Request, operations: Ops, query: Annotated[NewFlowQuery, Query()], who: Who) -> Response:
    """Create a flow from JSON, or from a bare definition, YAML or JSON, with `?name=` (and `?description=`).

    A definition that is text is kept byte for byte. An invalid definition is refused with all its `diagnostics`.
    """
    wanted = await read_definition(request, CreateFlow, query.model_dump(exclude={"strict"}))
    who.require_flow(wanted.name)
    deployed = await operations.flows.create(
        wanted.name,
        wanted.definition,
        description=wanted.description,
        retention_days=wanted.retention_days,
        on_retries_exhausted=wanted.on_retries_exhausted,
        strict=query.strict,
    )
    return _answer(deployed, {"Location": f"/v1/flows/{deployed.flow.name}"})


@router.get(
    "/{flow}",
    summary="Show a flow",
    response_model=Flow,
    responses=problems(FlowNotExists) | {304: {"description": "The flow has the entity tag of `If-None-Match`."}},
)
async def get_flow(flow: FlowName, operations: Ops, if_none_match: IfNoneMatch = None) -> Response:
    """The flow with its present definition, and its entity tag in the header `ETag`."""
    row = await operations.flows.describe(flow)
    headers = {"ETag": f'"{etag_of(row)}"'}
    if matches_any(if_none_match, etag_of(row)):
        return Response(status_code=304, headers=headers)
    return answer(Flow.of(row), headers=headers)


@router.put(
    "/{flow}",
    summary="Create or replace a flow",
    response_model=DeployedFlow,
    responses=problems(MissingParameter, PreconditionFailed, UnsupportedMediaType)
    | {201: {"model": DeployedFlow, "description": "The flow is new."}},
    response_description="The flow existed and has the definition now.",
    openapi_extra=definition_request(PutFlow),
)
async def put_flow(
    flow: FlowName,
    request: Request,
    operations: Ops,
    query: Annotated[FlowQuery, Query()],
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Give a flow this definition, whether it exists or not: for deployments, since it can be repeated.

    The body is JSON or a bare definition. What the body leaves out, an existing flow keeps as it is.
    Executions that run keep the definition that they were started with.

    With `If-Match` only the flow that you have read is replaced, and with `If-None-Match: *` none is.
    """
    wanted = await read_definition(request, PutFlow, query.model_dump(exclude={"strict"}))
    deployed = await operations.flows.put(
        flow,
        wanted.definition,
        description=wanted.description,
        kept=wanted.kept,
        on_retries_exhausted=wanted.on_retries_exhausted,
        precondition=read_precondition(if_match, if_none_match),
        strict=query.strict,
    )
    return _answer(deployed)


@router.patch(
    "/{flow}",
    summary="Change a flow",
    response_model=DeployedFlow,
    responses=problems(FlowNotExists, PreconditionFailed, UnsupportedMediaType),
    openapi_extra=json_request(UpdateFlow),
)
async def update_flow(
    flow: FlowName,
    operations: Ops,
    change: Annotated[UpdateFlow, Depends(json_body(UpdateFlow))],
    query: Annotated[UpdateFlowQuery, Query()],
    if_match: IfMatch = None,
) -> Response:
    """Change what the body names and leave the rest. Executions that run keep their definition."""
    wanted = FlowChange(
        definition=change.definition,
        description=change.description,
        kept=change.kept,
        on_retries_exhausted=change.on_retries_exhausted,
    )
    if wanted == FlowChange():
        fields = "`definition`, `description`, `retentionDays` or `onRetriesExhausted`"
        raise InvalidArgument(f"there is nothing to change: give {fields}")
    precondition = read_precondition(if_match, None)
    change_or_check = operations.flows.check if query.dry_run else operations.flows.update
    return _answer(await change_or_check(flow, wanted, precondition=precondition, strict=query.strict))


@router.delete(
    "/{flow}", summary="Delete a flow", status_code=204, responses=problems(FlowNotExists, PreconditionFailed)
)
async def delete_flow(flow: FlowName, operations: Ops, if_match: IfMatch = None) -> Response:
    """Delete a flow. Its running executions are stopped, and its executions can no longer be read.

    The name is free at once.
    """
    await operations.flows.delete(flow, precondition=read_precondition(if_match, None))
    return Response(status_code=204)


def _answer(deployed: Deployed, headers: Mapping[str, str] | None = None) -> Response:
    etag = {"ETag": f'"{etag_of(deployed.flow)}"'}
    return answer(DeployedFlow.of_change(deployed), 201 if deployed.is_new else 200, {**etag, **(headers or {})})
