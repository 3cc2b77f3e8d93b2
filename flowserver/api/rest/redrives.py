"""Redrives: of one execution, and of those of a flow that a filter finds."""

from typing import Annotated

from fastapi import Depends
from starlette.responses import Response

from flowserver.api.rest.answers import answer
from flowserver.api.rest.auth import Who
from flowserver.api.rest.bodies import json_body
from flowserver.api.rest.described_bodies import json_request
from flowserver.api.rest.models.executions import Execution
from flowserver.api.rest.models.redrives import ManyRedriven, RedriveExecution, RedriveMany, RedrivePreview, wished
from flowserver.api.rest.parameters import ExecutionName, FlowName, instant_of
from flowserver.api.rest.problems import problems
from flowserver.api.rest.route import Ops, rest_router
from flowserver.base.errors import (
    ExecutionNotExists,
    ExecutionNotRedrivable,
    FlowNotExists,
    ResourceThrottled,
    UnsupportedMediaType,
)
from flowserver.operations.redrive_plans import RedriveWish
from flowserver.operations.redrives import ExecutionEndReported
from flowserver.store.executions.listing_of_flow import ExecutionFilter
from flowserver.store.integrity.disk_reserve import DiskAlmostFull

router = rest_router("/flows/{flow}", "executions")


@router.post(
    "/executions/{execution}/redrive",
    summary="Redrive an execution",
    response_model=Execution | RedrivePreview,
    response_description="The execution, which runs again; or, with `dryRun`, what the redrive would do.",
    responses=problems(
        FlowNotExists,
        ExecutionNotExists,
        ExecutionNotRedrivable,
        ExecutionEndReported,
        ResourceThrottled,
        UnsupportedMediaType,
        DiskAlmostFull,
    )
    | {200: {"content": {"application/json": {"example": RedrivePreview.model_json_schema()["examples"][0]}}}},
    openapi_extra=json_request(RedriveExecution, required=False),
)
async def redrive_execution(
    flow: FlowName,
    execution: ExecutionName,
    operations: Ops,
    who: Who,
    redrive: Annotated[RedriveExecution, Depends(json_body(RedriveExecution))],
) -> Response:
    """Let an execution that failed, was stopped or timed out go on where it ended, or a step that waits for it.

    What succeeded is kept. The step that failed and those that were aborted run again: also single branches and
    iterations. The time limit counts from now, and the history goes on with `ExecutionRedriven`. With `dryRun` nothing
    changes, and the answer says what would run again, or why the execution cannot be redriven. A step that failed with
    its sub-flow continues the execution of that, unless `children` is `new`.
    """
    if redrive.dry_run:
        return answer(RedrivePreview.of(await operations.redrives.plan(flow, execution, redrive.wish, sees=who.sees)))
    return answer(Execution.of(await operations.redrives.redrive(flow, execution, redrive.wish, sees=who.sees)))


@router.post(
    "/redrive",
    summary="Redrive executions of a flow",
    response_model=ManyRedriven,
    responses=problems(FlowNotExists, ResourceThrottled, UnsupportedMediaType, DiskAlmostFull),
    openapi_extra=json_request(RedriveMany, required=False),
)
async def redrive_executions(
    flow: FlowName, operations: Ops, who: Who, redrive: Annotated[RedriveMany, Depends(json_body(RedriveMany))]
) -> Response:
    """Redrive executions that a filter finds, the newest first, a page with each request. A page ends early once
    `bulk_redrive_bytes_max` bytes were read for it.

    Go on with `nextToken` until it is null, as fast as the functions can take it. With a `clientToken` a request that
    got no answer may be repeated: what it has redriven is not redriven again. Without one, an execution that was
    redriven and has failed again meanwhile is.
    """
    wanted = ExecutionFilter(
        status=None if redrive.waiting_for_redrive else redrive.status,
        waiting_for_redrive=redrive.waiting_for_redrive,
        started_from=instant_of("startedFrom", redrive.started_from),
        started_to=instant_of("startedTo", redrive.started_to),
        name_prefix=redrive.name_prefix,
        names=redrive.executions,
    )
    done = await operations.redrives.redrive_many(
        flow,
        RedriveWish(
            from_step=redrive.from_,
            definition=wished(redrive.definition),
            client_token=redrive.client_token,
            children=redrive.children,
        ),
        wanted,
        error=redrive.error,
        next_token=redrive.next_token,
        limit=redrive.limit,
        sees=who.sees,
    )
    return answer(ManyRedriven.of(done))
