"""/v1/tasks: tasks that wait for a report, and the reports."""

from typing import Annotated

from fastapi import Depends, Query
from starlette.requests import Request
from starlette.responses import Response

from flowserver.api.rest.answers import answer, page_answer
from flowserver.api.rest.auth import Who
from flowserver.api.rest.bodies import json_body
from flowserver.api.rest.described_bodies import json_request
from flowserver.api.rest.models.tasks import TaskFailure, TaskPage, TaskQuery, TaskReceipt, TaskSuccess, WaitingTask
from flowserver.api.rest.problems import problems
from flowserver.api.rest.route import Ops, rest_router
from flowserver.base.errors import (
    ExecutionNotExists,
    FlowNotExists,
    MissingParameter,
    TaskAlreadyCompleted,
    TaskInvalidState,
    UnsupportedMediaType,
)
from flowserver.base.json_values import dump_json

router = rest_router("/tasks", "tasks")

REPORT_PROBLEMS = problems(MissingParameter, TaskAlreadyCompleted, TaskInvalidState, UnsupportedMediaType)


@router.get(
    "", summary="List waiting tasks", response_model=TaskPage, responses=problems(FlowNotExists, ExecutionNotExists)
)
async def list_tasks(operations: Ops, query: Annotated[TaskQuery, Query()], who: Who) -> Response:
    """Tasks that wait for a report with their token, those of the oldest executions first.

    A page may be short, or even empty, and have a `nextToken` all the same, if very many other steps wait: go on until
    `nextToken` is null. A key that is limited to some flows sees the tasks of these.
    """
    if query.flow is not None:
        who.require_flow(query.flow)
    page = await operations.tasks.list_waiting(
        query.flow,
        execution=query.execution,
        flow_prefix=who.names_within(None),
        older_than_seconds=query.older_than_seconds,
        next_token=query.next_token,
        limit=query.limit,
    )
    return await page_answer(operations, page, "tasks", WaitingTask.of)


@router.post(
    "/succeed",
    summary="Report success",
    response_model=TaskReceipt,
    responses=REPORT_PROBLEMS,
    openapi_extra=json_request(TaskSuccess),
)
async def report_task_succeeded(
    operations: Ops, request: Request, report: Annotated[TaskSuccess, Depends(json_body(TaskSuccess))], who: Who
) -> Response:
    """Settle a task that waits for a callback. A token settles its task once."""
    output, request_id = dump_json(report.output), request.state.request_id
    event_id = await operations.tasks.report_succeeded(report.task_token, output, request_id=request_id, caller=who)
    return answer(TaskReceipt(event_id=event_id))


@router.post(
    "/fail",
    summary="Report failure",
    response_model=TaskReceipt,
    responses=REPORT_PROBLEMS,
    openapi_extra=json_request(TaskFailure),
)
async def report_task_failed(
    operations: Ops, request: Request, report: Annotated[TaskFailure, Depends(json_body(TaskFailure))], who: Who
) -> Response:
    """Fail a task that waits for a callback, under an error that its `retry` and `catch` can match."""
    token, request_id = report.task_token, request.state.request_id
    event_id = await operations.tasks.report_failed(
        token, report.error, report.cause, request_id=request_id, caller=who
    )
    return answer(TaskReceipt(event_id=event_id))
