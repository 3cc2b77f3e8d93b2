"""/v1/flows/{flow}/executions: start, list, read, stop."""

from typing import Annotated

from fastapi import Depends, Query
from starlette.responses import Response

from flowserver.api.rest.answers import answer, page_answer
from flowserver.api.rest.auth import Who
from flowserver.api.rest.bodies import json_body
from flowserver.api.rest.described_bodies import json_request
from flowserver.api.rest.models.executions import (
    AllExecutionsQuery,
    DescribeQuery,
    Execution,
    ExecutionPage,
    ExecutionQuery,
    ExecutionState,
    ExecutionSummary,
    StartExecution,
    StopExecution,
    StoppedExecution,
    WaitQuery,
)
from flowserver.api.rest.parameters import ExecutionName, FlowName, instant_of
from flowserver.api.rest.problems import problems
from flowserver.api.rest.route import Allowed, Ops, rest_router
from flowserver.base.errors import (
    ExecutionAlreadyCompleted,
    ExecutionAlreadyExists,
    ExecutionInputDiffers,
    ExecutionNotExists,
    ExecutionNotParked,
    FlowAliasNotExists,
    FlowNotExists,
    FlowVersionNotExists,
    UnsupportedMediaType,
)
from flowserver.base.json_values import dump_json
from flowserver.store.executions.listing_of_flow import ExecutionFilter
from flowserver.store.integrity.disk_reserve import DiskAlmostFull

router = rest_router("/flows/{flow}/executions", "executions")
all_executions = rest_router("/executions", "executions")


@router.post(
    "",
    summary="Start an execution",
    response_model=Execution,
    status_code=201,
    response_description="The execution is new.",
    responses=problems(
        FlowNotExists,
        FlowVersionNotExists,
        FlowAliasNotExists,
        ExecutionAlreadyExists,
        ExecutionInputDiffers,
        UnsupportedMediaType,
        DiskAlmostFull,
    )
    | {200: {"model": Execution, "description": "An execution of this name runs already; this is it."}},
    openapi_extra=json_request(StartExecution, required=False),
)
async def start_execution(
    flow: FlowName,
    operations: Ops,
    start: Annotated[StartExecution, Depends(json_body(StartExecution))],
    query: Annotated[WaitQuery, Query()],
    allowed: Allowed,
    who: Who,
) -> Response:
    """Start an execution of a flow; with `?wait=` seconds the reply comes when it has ended.

    A name makes the start idempotent: while an execution of that name runs, starting it again with the same input
    returns it. So a client that got no answer may simply ask again. With another input or qualifier the start is
    refused with 409, and once the execution has ended the name is refused, too. Without a name every request starts an
    execution of its own.

    With a `qualifier` the execution runs a published version of the flow. With a `callbackTaskToken` the caller needs
    the permission `tasks.report`, too: the end of the execution settles that task.
    """
    if start.callback_task_token is not None:
        await operations.tasks.check_reporter(start.callback_task_token, who)
    row, is_new = await operations.executions.start_or_find(
        flow,
        name=start.name,
        input_text="" if start.input is None else dump_json(start.input),
        callback_token=start.callback_task_token,
        qualifier=start.qualifier,
        must_be_same=True,
    )
    if query.wait:
        with allowed:
            row = await operations.executions.describe(flow, row.name, wait_seconds=query.wait)
    location = f"/v1/flows/{flow}/executions/{row.name}"
    return answer(Execution.of(row), 201 if is_new else 200, {"Location": location})


@router.get("", summary="List executions", response_model=ExecutionPage, responses=problems(FlowNotExists))
async def list_executions(flow: FlowName, operations: Ops, query: Annotated[ExecutionQuery, Query()]) -> Response:
    """Executions of a flow, the newest first, without their documents; with `endedFrom` or `endedTo` by their end.

    A page may be short, or even empty, and have a `nextToken` all the same, if the server has looked at very many
    executions that do not match: go on until `nextToken` is null.
    """
    return await _listed(operations, flow, query)


@all_executions.get(
    "", summary="List executions of all flows", response_model=ExecutionPage, responses=problems(FlowNotExists)
)
async def list_all_executions(operations: Ops, query: Annotated[AllExecutionsQuery, Query()], who: Who) -> Response:
    """Executions of all flows, the newest first, without their documents; with `flow` those of this one.

    With `endedFrom` or `endedTo` those that ended last come first.

    A page may be short, or even empty, and have a `nextToken` all the same, if the server has looked at very many
    executions that do not match: go on until `nextToken` is null.

    A key that is limited to some flows sees the executions of these.
    """
    if query.flow is not None:
        who.require_flow(query.flow)
    return await _listed(operations, query.flow, query, who.names_within(None))


async def _listed(operations: Ops, flow: str | None, query: ExecutionQuery, flow_prefix: str | None = None) -> Response:
    wanted, token, limit = _filter(query), query.next_token, query.limit
    if flow is None or wanted.is_by_end:
        page = await operations.executions.list_all(
            wanted, next_token=token, limit=limit, flow_name=flow, flow_prefix=flow_prefix
        )
    else:
        page = await operations.executions.list(flow, wanted, next_token=token, limit=limit, documents=False)
    return await page_answer(operations, page, "executions", ExecutionSummary.of)


def _filter(query: ExecutionQuery) -> ExecutionFilter:
    return ExecutionFilter(
        status=query.status,
        started_from=instant_of("startedFrom", query.started_from),
        started_to=instant_of("startedTo", query.started_to),
        ended_from=instant_of("endedFrom", query.ended_from),
        ended_to=instant_of("endedTo", query.ended_to),
        name_prefix=query.name_prefix,
        parked=query.parked,
        waiting_for_redrive=query.waiting_for_redrive,
        qualifier=query.qualifier,
    )


@router.get(
    "/{execution}",
    summary="Show an execution",
    response_model=Execution | ExecutionState,
    response_description="The execution; with `documents=false` without its documents.",
    responses=problems(FlowNotExists, ExecutionNotExists)
    | {200: {"content": {"application/json": {"example": Execution.model_json_schema()["examples"][0]}}}},
)
async def get_execution(
    flow: FlowName,
    execution: ExecutionName,
    operations: Ops,
    query: Annotated[DescribeQuery, Query()],
    allowed: Allowed,
    who: Who,
) -> Response:
    """The execution as it is, or, with `?wait=` seconds, as it is when it has ended or the time is over.

    With `?currentSteps=true` it shows also the steps that it is at, and what each of them waits for. With
    `?documents=false` it leaves out input, output and definition: for clients that ask often. They stay the same until
    `status` or `redriveCount` changes.
    """
    with allowed:
        row = await operations.executions.describe(flow, execution, wait_seconds=query.wait, documents=query.documents)
        current = await operations.current_steps.find(row, sees=who.sees) if query.current_steps else None
        return answer((Execution if query.documents else ExecutionState).of(row, current))


@router.post(
    "/{execution}/stop",
    summary="Stop an execution",
    response_model=StoppedExecution,
    responses=problems(FlowNotExists, ExecutionNotExists, ExecutionAlreadyCompleted, UnsupportedMediaType),
    openapi_extra=json_request(StopExecution, required=False),
)
async def stop_execution(
    flow: FlowName,
    execution: ExecutionName,
    operations: Ops,
    stop: Annotated[StopExecution, Depends(json_body(StopExecution))],
    who: Who,
) -> Response:
    """Stop a running execution for good, with the sub-flows that it owns. A flow that waits for it can catch the error.

    `runningSubFlows` names the independent sub-flows that run on.
    """
    row = await operations.executions.stop(flow, execution, error=stop.error, cause=stop.cause)
    left = await operations.executions.independent_sub_flows(row, who.flows)
    return answer(StoppedExecution.of(row).model_copy(update={"running_sub_flows": tuple(left)}))


@router.post(
    "/{execution}/restart",
    summary="Restart a parked execution",
    response_model=Execution,
    responses=problems(FlowNotExists, ExecutionNotExists, ExecutionAlreadyCompleted, ExecutionNotParked),
)
async def restart_execution(flow: FlowName, execution: ExecutionName, operations: Ops) -> Response:
    """Continue an execution that the server has parked (`parkedError`), once the cause is removed.

    It continues at the same step, and completed work is not repeated. If the cause still exists, the reply shows the
    execution parked again.
    """
    return answer(Execution.of(await operations.executions.unpark(flow, execution)))
