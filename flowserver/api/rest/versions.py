"""/v1/flows/{flow}/versions: publish, list, read, delete."""

from typing import Annotated

from fastapi import Depends, Query
from starlette.responses import Response

from flowserver.api.rest.answers import answer, page_answer
from flowserver.api.rest.bodies import json_body
from flowserver.api.rest.described_bodies import json_request
from flowserver.api.rest.models.shared_types import PageQuery
from flowserver.api.rest.models.versions import FlowVersion, FlowVersionPage, FlowVersionSummary, PublishVersion
from flowserver.api.rest.parameters import FlowName, VersionNumber
from flowserver.api.rest.preconditions import IfMatch, read_precondition
from flowserver.api.rest.problems import problems
from flowserver.api.rest.route import Ops, rest_router
from flowserver.base.errors import (
    FlowNotExists,
    FlowVersionInUse,
    FlowVersionNotExists,
    PreconditionFailed,
    UnsupportedMediaType,
)

router = rest_router("/flows/{flow}/versions", "versions")


@router.post(
    "",
    summary="Publish a version",
    response_model=FlowVersion,
    status_code=201,
    response_description="The version is new.",
    responses=problems(FlowNotExists, PreconditionFailed, UnsupportedMediaType)
    | {200: {"model": FlowVersion, "description": "The newest version has this definition and description already."}},
    openapi_extra=json_request(PublishVersion, required=False),
)
async def publish_flow_version(
    flow: FlowName,
    operations: Ops,
    publish: Annotated[PublishVersion, Depends(json_body(PublishVersion))],
    if_match: IfMatch = None,
) -> Response:
    """Publish the definition that the flow has now, under the next number.

    A request that is repeated publishes nothing new. `If-Match` takes the `ETag` of the flow, so that what is published
    is what you have read or deployed.
    """
    row, is_new = await operations.versions.publish(
        flow, description=publish.description, precondition=read_precondition(if_match, None)
    )
    location = f"/v1/flows/{flow}/versions/{row.version}"
    return answer(FlowVersion.of(row), 201 if is_new else 200, {"Location": location})


@router.get("", summary="List versions", response_model=FlowVersionPage, responses=problems(FlowNotExists))
async def list_flow_versions(flow: FlowName, operations: Ops, page: Annotated[PageQuery, Query()]) -> Response:
    """The flow's published versions, the newest first, without their definitions."""
    found = await operations.versions.list(flow, next_token=page.next_token, limit=page.limit)
    return await page_answer(operations, found, "versions", FlowVersionSummary.of)


@router.get(
    "/{version}",
    summary="Show a version",
    response_model=FlowVersion,
    responses=problems(FlowNotExists, FlowVersionNotExists),
)
async def get_flow_version(flow: FlowName, version: VersionNumber, operations: Ops) -> Response:
    """The version with its definition."""
    return answer(FlowVersion.of(await operations.versions.describe(flow, version)))


@router.delete(
    "/{version}",
    summary="Delete a version",
    status_code=204,
    responses=problems(FlowNotExists, FlowVersionNotExists, FlowVersionInUse),
)
async def delete_flow_version(flow: FlowName, version: VersionNumber, operations: Ops) -> Response:
    """Delete a version that no alias and no running execution uses. Its number is not used again."""
    await operations.versions.delete(flow, version)
    return Response(status_code=204)
