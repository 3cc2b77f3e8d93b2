"""/v1/flows: create, read, change, delete."""

from typing import Annotated

from fastapi import Depends, Query
from starlette.requests import Request
from starlette.responses import Response

from flowserver.api.rest.answers import answer, page_answer
from flowserver.api.rest.bodies import definition_request, json_body, json_request, read_definition
from flowserver.api.rest.models.base import PageQuery
from flowserver.api.rest.models.flows import (
    CreateFlow,
    Flow,
    FlowPage,
    FlowQuery,
    FlowSummary,
    NewFlowQuery,
    PutFlow,
    UpdateFlow,
)
from flowserver.api.rest.parameters import FlowName
from flowserver.api.rest.problems import problems
from flowserver.api.rest.routing import Ops, rest_router
from flowserver.base.errors import (
    FlowAlreadyExists,
    FlowNotExists,
    InvalidArgument,
    MissingParameter,
    UnsupportedMediaType,
)
from flowserver.operations.flows import FlowChange

router = rest_router("/flows", "flows")


@router.get("", summary="List flows", response_model=FlowPage, responses=problems())
async def list_flows(operations: Ops, page: Annotated[PageQuery, Query()]) -> Response:
    """All flows by name, without their definitions."""
    found = await operations.flows.list(next_token=page.next_token, limit=page.limit, documents=False)
    return await page_answer(operations, found, "flows", FlowSummary.of)


@router.post(
    "",
    summary="Create a flow",
    response_model=Flow,
    status_code=201,
    responses=problems(MissingParameter, FlowAlreadyExists, UnsupportedMediaType),
    openapi_extra=definition_request(CreateFlow),
)
async def create_flow(request: Request, operations: Ops, query: Annotated[NewFlowQuery, Query()]) -> Response:
    """Create a flow from JSON, or from a bare definition, YAML or JSON, with `?name=` (and `?description=`).

    A definition that is text is kept byte for byte. An invalid definition is refused with all its `diagnostics`.
    """
    wanted = await read_definition(request, CreateFlow, query.model_dump())
    flow = await operations.flows.create(
        wanted.name, wanted.definition, description=wanted.description, retention_days=wanted.retention_days
    )
    return answer(Flow.of(flow), 201, {"Location": f"/v1/flows/{flow.name}"})


@router.get("/{flow}", summary="Show a flow", response_model=Flow, responses=problems(FlowNotExists))
async def get_flow(flow: FlowName, operations: Ops) -> Response:
    """The flow with its present definition."""
    return answer(Flow.of(await operations.flows.describe(flow)))


@router.put(
    "/{flow}",
    summary="Create or replace a flow",
    response_model=Flow,
    responses=problems(MissingParameter, UnsupportedMediaType)
    | {201: {"model": Flow, "description": "The flow is new."}},
    response_description="The flow existed and has the definition now.",
    openapi_extra=definition_request(PutFlow),
)
async def put_flow(flow: FlowName, request: Request, operations: Ops, query: Annotated[FlowQuery, Query()]) -> Response:
    """Give a flow this definition, whether it exists or not: for deployments, since it can be repeated.

    The body is JSON or a bare definition. Without a description or `retentionDays` an existing flow keeps its own.
    Executions that run keep the definition that they were started with.
    """
    wanted = await read_definition(request, PutFlow, query.model_dump())
    row, is_new = await operations.flows.put(flow, wanted.definition, description=wanted.description, kept=wanted.kept)
    return answer(Flow.of(row), 201 if is_new else 200)


@router.patch(
    "/{flow}",
    summary="Change a flow",
    response_model=Flow,
    responses=problems(FlowNotExists, UnsupportedMediaType),
    openapi_extra=json_request(UpdateFlow),
)
async def update_flow(
    flow: FlowName, operations: Ops, change: Annotated[UpdateFlow, Depends(json_body(UpdateFlow))]
) -> Response:
    """Change what the body names and leave the rest. Executions that run keep their definition."""
    wanted = FlowChange(definition=change.definition, description=change.description, kept=change.kept)
    if wanted == FlowChange():
        raise InvalidArgument("there is nothing to change: give `definition`, `description` or `retentionDays`")
    return answer(Flow.of(await operations.flows.update(flow, wanted)))


@router.delete("/{flow}", summary="Delete a flow", status_code=204, responses=problems(FlowNotExists))
async def delete_flow(flow: FlowName, operations: Ops) -> Response:
    """Delete a flow. Its running executions are stopped, and its executions can no longer be read.

    The name is free at once.
    """
    await operations.flows.delete(flow)
    return Response(status_code=204)
